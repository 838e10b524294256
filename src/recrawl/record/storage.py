"""The repository on disk: a folder with settings, store, archive and index.

    recrawl.toml   settings, seeds, filters (read by the command line, not here)
    recrawl.db     sites, pages, visits, versions, links, cycles; or
    store.toml     the PostgreSQL database that holds them
    archive/       bodies, as *.warc.gz or *.warc.zst; with
    archive.toml   the object store that holds the finished ones, and the models
    index/         full text
    models/        memory of policies and clusters of similar pages (written by `crawl`)

A commit writes in this order: bodies to the archive, synced to disk; one transaction in the store; the index. A crash
in between leaves bytes that the store does not know (truncated when the next writer opens the repository) or documents
that the index lacks (indexed again by the next writer, from the visit `indexed` on). The files in models/ can be
rebuilt from store and archive: they may be missing or outdated.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from recrawl.durable_files import replace_file
from recrawl.errors import (
    DamagedIndex,
    DamagedRecord,
    NoRepository,
    RefusedRows,
    RepositoryError,
    StorageFailure,
)
from recrawl.record.archive import GZIP, Place, WarcArchive
from recrawl.record.blobs.cache import ARCHIVE
from recrawl.record.blobs.remote import claim, open_remote
from recrawl.record.blobs.target import write_archive_target
from recrawl.record.index_files import INDEXED, indexed_up_to, mark_indexed
from recrawl.record.lock import Lock
from recrawl.record.refusals import RefusedVisit, leave_out
from recrawl.record.rows import Batch, RequisiteVersion, ScreenshotRow, VersionRow
from recrawl.record.shards.archive import gathered_archive
from recrawl.record.store import Store, create_store, has_store, location, open_store
from recrawl.record.store.leases import Lease
from recrawl.record.store.location import shards_of
from recrawl.record.unindexable import Unindexable
from recrawl.record.warc import Headers, WarcInfo, read_body, read_resource, read_shown, warc_date

if TYPE_CHECKING:
    from recrawl.record.index import Document, Index

SETTINGS = location.SETTINGS
_Placed = TypeVar("_Placed", RequisiteVersion, ScreenshotRow)


def find(start: Path) -> Path:
    """The repository in this folder or in the nearest folder above it."""
    for folder in (start, *start.resolve().parents):
        if (folder / SETTINGS).is_file() and has_store(folder):
            return folder
    raise NoRepository(f"there is no recrawl repository in {start.resolve()} or above it: make one with 'recrawl init'")


def create(folder: Path, settings: str, store: str = "", archive: str = "") -> None:
    """Create a repository with these settings in a folder, which may exist; `store` is the URL of a PostgreSQL database
    and `archive` that of an object store, if not all of it is to be in the folder."""
    if (folder / SETTINGS).exists():  # it is written last
        raise RepositoryError(f"there is already a repository in {folder}")
    target = claim(folder, archive) if archive else None
    create_store(folder, store)
    if target is not None:
        write_archive_target(folder, target)
    (folder / ARCHIVE).mkdir(exist_ok=True)
    replace_file(folder / SETTINGS, settings)


class Storage:
    """An open repository, for reading; call `writing` before commits."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self.folder = folder
        self.store: Store = open_store(folder, shared=shared)
        shards = shards_of(folder)
        self.remote = None if shards else open_remote(folder, self.store)
        self.archive = gathered_archive(folder, self.store, shards) if shards else self._open_archive(1 << 30, ())
        self._index: Index | None = None
        self._lock: Lock | None = None
        self.failed = False
        """Whether a commit has failed: how much of it was written is not known, so nothing more is written."""
        self._index_partial = False
        self.index_problem = ""
        """Why the index was dropped, if it was damaged."""

    @cached_property
    def unindexable(self) -> Unindexable:
        """The pages that the index cannot have."""
        return Unindexable(self.store)

    @property
    def index(self) -> Index:
        """The full-text index, opened on first use; a reader never creates one."""
        if self._index is None:
            from recrawl.record.index import Index  # lazy: loads tantivy, which most commands that read do not need

            folder = self.folder / "index"
            self._index = Index(folder if self._lock is not None or folder.is_dir() else None)
        return self._index

    def writing(
        self,
        what: str,
        wait: Callable[[str], bool],
        *,
        roll_bytes: int,
        info: WarcInfo,
        archive_format: str = GZIP,
        lease: Lease | None = None,
    ) -> None:
        """Become the only writer: lock, migrate the schema, truncate what a crash left uncommitted.

        `info` are the fields of the first record of every new archive file. With a lease, nothing is written after
        another worker has taken it over.
        """
        self._lock_folder(what, wait)
        self.store.close()
        self.store = open_store(self.folder, create=True)
        if lease is not None:
            self.store.fence(lease)
        self.store.lock(what, wait)
        self.remote = open_remote(self.folder, self.store)
        self.archive = self._open_archive(roll_bytes, info, archive_format)
        if not self.archive.names and self.store.next_id("versions"):
            raise StorageFailure(f"{self.folder}: the store has lost its list of archive files; restore it from a copy")
        self.archive.mend(self.store.warcs.lengths())
        if self.remote is not None:
            self.remote.begin()
        self._drop_old_index()

    def lock(self, what: str, wait: Callable[[str], bool], lease: Lease | None = None) -> None:
        """Take the lock, and leave everything as it is. With a lease, nothing is written after it is taken over."""
        self._lock_folder(what, wait)
        if lease is not None:
            self.store.fence(lease)
        self.store.lock(what, wait)

    def _lock_folder(self, what: str, wait: Callable[[str], bool]) -> None:
        if self._lock is None:
            self._lock = Lock(self.folder / "lock", what, wait)

    def _drop_old_index(self) -> None:
        """Delete an index that has an old schema or is damaged; all pages are indexed again."""
        try:
            if (self.folder / "index").is_dir():
                if self.index.current:
                    return
                self.index_problem = "the index was made by an earlier version"
        except DamagedIndex as error:
            self.index_problem = str(error)
        self.drop_index()

    def drop_index(self) -> None:
        """Delete the index; the next `reindex` makes it anew."""
        if self.store.meta.get(INDEXED, -1) != -1:
            self.store.meta.set(INDEXED, -1)  # first: a crash during reindexing must not count as done
        self._index, self._index_partial = None, False
        shutil.rmtree(self.folder / "index", ignore_errors=True)

    def refresh(self) -> None:
        """Read the names of archive files created since; for readers that stay open."""
        self.archive.names.update(self.store.warcs.names())

    def _open_archive(self, roll_bytes: int, info: WarcInfo, archive_format: str = GZIP) -> WarcArchive:
        warcs, cache = self.store.warcs, None if self.remote is None else self.remote.cache
        folder, names = self.folder / ARCHIVE, warcs.names()
        archive = WarcArchive(
            folder, names, roll_bytes=roll_bytes, info=info, cache=cache, archive_format=archive_format
        )
        archive.stored = warcs.stored()
        return archive

    def commit(self, batch: Batch, bodies: list[tuple[VersionRow, bytes]]) -> list[RefusedVisit]:
        """Record a batch; `bodies` are its versions, each with its WARC records.

        What the database refuses of it is left out of the batch: visits of that page become failures, and are returned.
        After a failure nothing more is recorded: what was written of the batch is truncated by the next writer.
        """
        if self.failed:
            raise StorageFailure("an earlier write failed: run the command again")
        self.failed = True
        for version, blob in bodies:
            it = self.archive.append(blob, version.at)  # then as `_replace`, in a fourth of its time
            batch.versions.append(VersionRow._make((*version[:9], it.file, it.start, it.length, *version[12:])))
        for blob, at in batch.records:
            self.archive.append(blob, at)
        batch.screenshots = [(self._placed(row, blob), b"") for row, blob in batch.screenshots]
        files = batch.requisites
        files.versions = [(self._placed(version, blob), b"") for version, blob in files.versions]
        written = self.archive.sync()
        if self.remote is not None:
            self.remote.before_commit(self.archive)
        refused: list[RefusedVisit] = []
        try:
            self.store.commit(batch, written)
        except RefusedRows as error:
            refused = leave_out(self.store, batch, str(error.__cause__))
            self.store.commit(batch, written)
        if self.remote is not None:
            self.remote.after_commit(self.archive)
        self._index_batch(batch)
        self.failed = False
        return refused

    def finish(self) -> str:
        """Put archive files and models into the object store, if there is one, at the end of a command that writes.

        Returns a sentence if that failed: they wait in the folder, and the next writer puts them.
        """
        if self.remote is None or self.failed:
            return ""
        self.remote.finish(self.archive)
        if not self.remote.problem:
            return ""
        files = len(self.archive.waiting())
        waiting = f"{files} archive {'file waits' if files == 1 else 'files wait'}" if files else "models wait"
        return f"{self.remote.problem}; {waiting} in the folder for the next command that writes"

    def _placed(self, version: _Placed, blob: bytes) -> _Placed:
        if not blob:
            return version
        place = self.archive.append(blob, version.at)
        return version._replace(warc=place.file, start=place.start, length=place.length)

    def _index_batch(self, batch: Batch) -> None:
        try:
            for page in batch.removals:
                self.index.remove(page)
                self.unindexable.forget(page)
            for document in batch.documents:
                self.index_document(document)
        except DamagedIndex as error:
            self._give_up_index(error)

    def index_document(self, document: Document, problem: str = "") -> None:
        """Put a page into the index; one that it refuses, or that has a `problem`, is listed and left out."""
        if problem:
            self.index.remove(document.page)
        problem = problem or self.index.put(document)
        if problem:
            self.unindexable.note(document.page, problem)
        else:
            self.unindexable.forget(document.page)

    def commit_index(self, last_visit: int) -> None:
        """Make everything up to this visit searchable."""
        try:
            if self._index is not None:
                self._index.commit()
        except DamagedIndex as error:
            self._give_up_index(error)
        if not self._index_partial:
            mark_indexed(self.folder / "index", last_visit)
            self.store.meta.set(INDEXED, last_visit)

    def _give_up_index(self, error: DamagedIndex) -> None:
        """The index turned out to be damaged: begin a new one, which the next writer completes."""
        self.index_problem = str(error)
        self.drop_index()
        self._index_partial = True

    def body(self, version: VersionRow, *, plain: bool = False) -> tuple[int, Headers, bytes]:
        """Status, headers and body of a version; `DamagedRecord` if its record is not what was written.

        The body of a rendered page is what it showed after its scripts had run; `plain` gives the one that was sent.
        """
        place = Place(version.warc, version.start, version.length)
        try:
            blob = self.archive.read(place)
            status, headers, body = read_body(blob)
        except (OSError, ValueError, KeyError) as error:
            raise DamagedRecord(self._lost(version, str(error))) from error
        if hashlib.sha1(body, usedforsecurity=False).digest() != version.payload:
            raise DamagedRecord(self._lost(version, "its checksum is wrong"))
        return (status, headers, body) if plain else read_shown(blob)

    def screenshot(self, row: ScreenshotRow) -> bytes:
        """A screenshot as PNG; `DamagedRecord` if its record is not what was written."""
        try:
            picture = read_resource(self.archive.read(Place(row.warc, row.start, row.length)))
        except (OSError, ValueError, KeyError) as error:
            raise DamagedRecord(f"the record of the screenshot of {warc_date(row.at)} is damaged: {error}") from error
        if hashlib.sha1(picture, usedforsecurity=False).digest() != row.payload:
            raise DamagedRecord(f"the record of the screenshot of {warc_date(row.at)} has a wrong checksum")
        return picture

    def _lost(self, version: VersionRow, problem: str) -> str:
        """What is wrong with the record of a version, in a sentence."""
        url = self.store.pages.get(version.page).url
        if not version.length and version.start < 0:
            return f"the body of {url} of {warc_date(version.at)} was thinned out"
        if not version.length:
            return f"the body of {url} of {warc_date(version.at)} is lost: 'recrawl check' found its record damaged"
        name = self.archive.names.get(version.warc, f"file {version.warc}")
        return (
            f"the record of {url} of {warc_date(version.at)}, in archive/{name} at byte {version.start}, is damaged "
            f"({problem[:100]}): restore the file from a copy, or mark what is lost with 'recrawl check --repair'"
        )

    def unindexed(self) -> list[int]:
        """Pages with updates that the index lacks: after a crash, or because another machine has indexed them."""
        mark = indexed_up_to(self.folder / "index", int(self.store.meta.get(INDEXED, -1)))
        return self.store.visits.pages_updated_since(mark)

    def partly_indexed(self) -> dict[int, float]:
        """The pages of an index that was interrupted when it was made, with the times of their versions."""
        known = int(self.store.meta.get(INDEXED, -1))
        return dict(self.index.pages()) if indexed_up_to(self.folder / "index", known) == -1 else {}

    def close(self) -> None:
        """Close everything; what was committed stays."""
        try:
            if self._index is not None:
                self._index.close()
        except DamagedIndex as error:
            self._give_up_index(error)
        finally:
            self.archive.close()
            if self.remote is not None:
                self.remote.close()
            self.store.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> Storage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
