"""Check a repository and repair it, as `recrawl check` does; and bring one of an older version up to date."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.figures import renew
from recrawl.crawl.reports.summaries import catch_up
from recrawl.crawl.visits.shared_text import refused_texts
from recrawl.errors import DiskFull, StorageFailure
from recrawl.record.check import (
    CheckProblem,
    Findings,
    check_archive,
    check_database,
    check_index,
    repair_archive,
    repair_database,
)
from recrawl.record.storage import Storage
from recrawl.record.store import open_store
from recrawl.record.store.leases import Lease
from recrawl.record.store.location import shards_of
from recrawl.repository.opening import Notify, prepare
from recrawl.settings import Settings

__all__ = ["CheckProblem", "CheckReport", "check", "unusable", "upgrade"]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check of database, archive and index has found."""

    problems: tuple[CheckProblem, ...] = ()
    notes: tuple[str, ...] = ()
    """What is no problem but worth knowing, such as what a crash has left for the next writing command."""
    pages: int = 0
    visits: int = 0
    versions: int = 0
    records: int = 0
    """Sound records of the archive."""
    bytes: int = 0
    """Bytes of the archive that were read."""

    @property
    def clean(self) -> bool:
        """Whether there is no problem, or all of them were repaired."""
        return all(problem.repaired for problem in self.problems)

    def as_dict(self) -> dict[str, Any]:
        """As `recrawl check --json` prints it."""
        problems = [{"part": it.part, "what": it.what, "repaired": it.repaired} for it in self.problems]
        names = ("pages", "visits", "versions", "records", "bytes")
        checked = {name: getattr(self, name) for name in names}
        return {"clean": self.clean, "problems": problems, "notes": list(self.notes), "checked": checked}

    @classmethod
    def of(cls, row: dict[str, Any]) -> CheckReport:
        """The report that `as_dict` has described."""
        problems = tuple(CheckProblem(**problem) for problem in row["problems"])
        return cls(problems, tuple(row["notes"]), **row["checked"])


def check(
    folder: Path,
    values: Settings,
    options: CrawlOptions,
    *,
    repair: bool,
    truth: bool = False,
    erased: bool = False,
    texts: Sequence[str] = (),
    wait: Callable[[str], bool],
    tell: Notify,
    lease: Lease | None = None,
    go_on: Callable[[], None] = lambda: None,
) -> CheckReport:
    """Check all parts against each other, with `truth` all against the archive; `repair` mends what can be mended.

    With `erased`, every file is read for what was erased, and for `texts`. Holds the lock meanwhile.

    The shard of a cluster is repaired under a lease. `go_on` is called now and then; it raises to end the check.
    """
    findings = Findings()
    counts = (0, 0, 0)
    try:
        with Storage(folder) as storage:
            if repair or os.access(folder, os.W_OK):  # on a read-only file system nobody writes
                storage.lock("check", wait, lease)
            sound = check_database(storage, findings)
            if sound:
                counts = storage.store.checks.counts()
                check_archive(storage, findings, go_on)
                if options.index:
                    check_index(storage, findings, refused_texts(storage.store))
                if truth:
                    from recrawl.repository.truth import check_truth  # lazy: loads the parser

                    check_truth(storage, options, findings, go_on)
            if sound and (erased or texts):
                from recrawl.repository.erased_check import check_erased  # lazy: few checks need it

                check_erased(storage, findings, texts, go_on)
            if repair:
                _repair(storage, values, options, findings, tell, lease)
    except DiskFull:  # no fault of the repository
        raise
    except StorageFailure as error:
        findings.add("database", str(error))
    return CheckReport(
        tuple(findings.problems), tuple(findings.notes), *counts, records=findings.records, bytes=findings.bytes
    )


def _repair(
    storage: Storage, values: Settings, options: CrawlOptions, findings: Findings, tell: Notify, lease: Lease | None
) -> None:
    if not repair_database(storage, findings):
        return
    repair_archive(storage, findings)
    if findings.of("index"):
        storage.drop_index()
    prepare(storage, "check", options, values, tell=tell, lease=lease)
    if waiting := storage.finish():
        tell(waiting)
    for problem in findings.of("index"):
        problem.repaired = "rebuilt from database and archive"


def unusable(error: StorageFailure) -> CheckReport:
    """The report on a repository that cannot even be opened."""
    return CheckReport((CheckProblem("database", str(error)),))


def upgrade(folder: Path, now: float) -> None:
    """Bring a repository that an older version wrote up to date: the schema and the summaries."""
    with contextlib.closing(open_store(folder, create=True)) as opened:
        if shards_of(folder):  # workers write the summaries of their shards
            renew(opened, now)
        else:
            catch_up(opened, now)
