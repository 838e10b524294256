"""Check a repository: the database by itself, the archive against the database, the index against the database.

Nothing is changed here but in `repair_*`, which need the lock. What a crash leaves behind (bytes that no commit knows,
pages that wait to be indexed) is no problem: the next writing command sees to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recrawl.errors import DamagedIndex, StorageFailure
from recrawl.record.archive_check import Member, members
from recrawl.record.blobs.remote import RemoteFiles
from recrawl.record.index_files import damage
from recrawl.record.storage import Storage
from recrawl.record.store.checks import StoredVersion
from recrawl.record.store.site_tables import WarcTable
from recrawl.record.unindexable import unindexable_pages
from recrawl.record.warc import warc_date

_RESTORE = "restore recrawl.db from a copy, or import the WARC files in archive/ into a new repository"


@dataclass(slots=True)
class CheckProblem:
    """Something that is wrong."""

    part: str
    """database, archive or index."""
    what: str
    repaired: str = ""
    """What was done about it; empty if nothing."""


@dataclass(slots=True)
class Findings:
    """What a check has found so far."""

    problems: list[CheckProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is no problem but worth knowing."""
    records: int = 0
    bytes: int = 0
    lost: dict[str, list[int]] = field(default_factory=lambda: {"page": [], "requisite": [], "screenshot": []})
    """By kind: versions and screenshots whose record is not sound."""
    sound_ends: dict[int, int] = field(default_factory=dict)
    """By file that is too short: where its last sound record ends."""

    damaged_objects: list[str] = field(default_factory=list)
    """Archive files that the object store should have, but does not."""

    away: bool = False
    """Whether the object store could not be reached, so that nothing of the archive may be repaired."""

    def add(self, part: str, what: str) -> None:
        """Note a problem."""
        self.problems.append(CheckProblem(part, what))

    def of(self, part: str) -> list[CheckProblem]:
        """The problems of a part."""
        return [problem for problem in self.problems if problem.part == part]


def check_database(storage: Storage, findings: Findings) -> bool:
    """Check the file and its tables; returns whether the other parts can be checked against it."""
    checks = storage.store.checks
    try:
        broken = checks.integrity()
        for complaint in broken:
            findings.add("database", f"recrawl.db is damaged: {complaint}")
        for found in checks.inconsistencies():
            findings.add("database", f"{found.rows:,} {found.what}")
    except StorageFailure as error:
        findings.add("database", str(error))
        return False
    return not broken


def repair_database(storage: Storage, findings: Findings) -> bool:
    """Rebuild what can be computed from the rest; returns whether the other parts can be repaired."""
    checks = storage.store.checks
    try:
        if checks.integrity():
            checks.rebuild_indexes()
        checks.repair()
        left = {*checks.integrity(), *(found.what for found in checks.inconsistencies())}
    except StorageFailure:
        left = {problem.what for problem in findings.of("database")}
    for problem in findings.of("database"):
        if not any(words in problem.what for words in left):
            problem.repaired = "computed again from the other tables"
    if left:
        findings.notes.append(f"the database cannot be repaired: {_RESTORE}")
    return not left


def check_archive(storage: Storage, findings: Findings, go_on: Callable[[], None] = lambda: None) -> None:
    """Check every record of every file, and that the versions are where the database says.

    `go_on` is called before each file; it raises to end the check.
    """
    names, lengths = storage.store.warcs.names(), storage.store.warcs.lengths()
    try:
        if storage.remote is not None:
            _check_objects(storage.remote, findings, storage.store.warcs)
        for file, name in sorted(names.items()):
            go_on()
            _check_file(storage, findings, file, storage.archive.path(name), lengths[file])
    except StorageFailure as error:  # the object store is away: nothing is known about the files there
        findings.add("archive", str(error))
        findings.away = True
        return
    for path in sorted(storage.archive.folder.glob("recrawl-*.warc.*")):
        if path.name not in names.values():
            findings.notes.append(f"archive/{path.name} is not in the database: a crash came before its first commit")
    lost = storage.store.checks.lost()
    if lost:
        findings.notes.append(f"{lost:,} versions are marked as lost")


def _check_objects(remote: RemoteFiles, findings: Findings, warcs: WarcTable) -> None:
    """Check that the object store has what was put there."""
    names, lengths, stored = warcs.names(), warcs.lengths(), warcs.stored()
    for file in sorted(stored):
        size = remote.size(names[file])
        if size < lengths[file]:
            found = "is missing" if size < 0 else f"has {size:,} bytes instead of {lengths[file]:,}"
            findings.add("archive", f"{names[file]} {found} in {remote.blobs.name}")
            findings.damaged_objects.append(names[file])
    if waiting := len(names.keys() - stored):
        findings.notes.append(f"{waiting:,} archive files wait to be put into {remote.blobs.name}")


def _check_file(storage: Storage, findings: Findings, file: int, path: Path, length: int) -> None:
    size = path.stat().st_size if path.exists() else -1
    if size < 0:
        findings.add("archive", f"archive/{path.name} is missing")
    elif size < length:
        findings.add("archive", f"archive/{path.name} has {size:,} bytes instead of {length:,}")
    elif size > length:
        findings.notes.append(f"archive/{path.name} has {size - length:,} bytes that were never committed")
    end = 0
    wanted = storage.store.checks.versions_of(file)
    for member in _joined(wanted, members(path, min(max(0, size), length)), findings):
        findings.records += not member.problem
        findings.bytes += member.end - member.start
        if member.problem:
            findings.add("archive", f"archive/{path.name}: the record at byte {member.start:,} {member.problem}")
        else:
            end = member.end
    if size < length:
        findings.sound_ends[file] = end


def _joined(wanted: Iterator[StoredVersion], found: Iterator[Member], findings: Findings) -> Iterator[Member]:
    """Pass the members on; note the versions that have no sound response at their place."""
    version = next(wanted, None)
    for member in found:
        while version is not None and version.start < member.start:
            _lost(findings, version)
            version = next(wanted, None)
        if version is not None and version.start == member.start:
            if (
                member.problem
                or member.kind != ("resource" if version.kind == "screenshot" else "response")
                or member.payload != version.payload
            ):
                _lost(findings, version)
            version = next(wanted, None)
        yield member
    while version is not None:
        _lost(findings, version)
        version = next(wanted, None)


def _lost(findings: Findings, version: StoredVersion) -> None:
    findings.lost[version.kind].append(version.id)
    what = "screenshot" if version.kind == "screenshot" else "version"
    findings.add("archive", f"the {what} of {version.url} of {warc_date(version.at)} cannot be read")


def repair_archive(storage: Storage, findings: Findings) -> None:
    """Cut torn files after their last sound record, and mark the versions that are lost."""
    if findings.away:
        return
    checks, names = storage.store.checks, storage.store.warcs.names()
    checks.mark_lost(findings.lost["page"])
    checks.mark_requisites_lost(findings.lost["requisite"])
    checks.mark_screenshots_lost(findings.lost["screenshot"])
    for name in findings.damaged_objects:
        if storage.remote is not None and storage.remote.put_again(name):
            for problem in findings.of("archive"):
                if problem.what.startswith(name):
                    problem.repaired = "put again from the copy in the folder"
    for file, end in findings.sound_ends.items():
        checks.set_length(file, end)
        with (storage.archive.folder / names[file]).open("ab") as torn:
            torn.truncate(end)
    for problem in findings.of("archive"):
        if "cannot be read" in problem.what:
            problem.repaired = "marked as lost; the next visit downloads the page in full"
        elif problem.repaired:
            continue
        elif "the record at byte" in problem.what:
            problem.repaired = "left as it is; nothing refers to it any more"
        else:
            problem.repaired = "cut after the last sound record"


def check_index(storage: Storage, findings: Findings, refused: Mapping[int, bytes]) -> None:
    """Check the files of the index, and that it holds the pages that it must, and no others.

    `refused` is the digest of the text that many pages of a site suddenly share: of those, an older text is indexed.
    """
    folder = storage.folder / "index"
    waiting = set(storage.unindexed())
    if waiting:
        findings.notes.append(f"{len(waiting):,} pages wait to be indexed by the next writing command")
    problem = damage(folder, thorough=True) if folder.is_dir() else ""
    if problem:
        findings.add("index", f"the index is damaged: {problem}")
        return
    try:
        found = dict(storage.index.pages()) if folder.is_dir() else {}
        number = len(storage.index) if folder.is_dir() else 0
    except DamagedIndex as error:
        findings.add("index", str(error))
        return
    if number != len(found):
        findings.add("index", f"{number - len(found):,} pages are in the index twice")
    missing, left_out = 0, unindexable_pages(storage.store)
    if left_out:
        findings.notes.append(f"{len(left_out):,} pages are left out of the index: 'recrawl status' names them")
    for page in storage.store.checks.indexed_pages():
        at = found.pop(page.page, None)
        if page.page not in waiting and page.page not in left_out and page.digest != refused.get(page.site):
            missing += page.expected if at is None else at < page.earliest - 1e-3
    if missing:
        findings.add("index", f"{missing:,} pages are missing in the index, or there with an older version")
    extra = len(found.keys() - waiting)
    if extra:
        findings.add("index", f"{extra:,} pages in the index that should not be found")
