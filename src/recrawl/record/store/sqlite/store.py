"""The store in SQLite: one file in WAL mode. Visits are written in batches, each one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recrawl.child_processes import return_freed_memory
from recrawl.errors import RepositoryError, StorageFailure
from recrawl.record.rows import (
    Batch,
    FeedRow,
    HintRow,
    HostRow,
    NewPage,
    PageState,
    RequisiteRow,
    RequisiteVersion,
    ScreenshotRow,
    SiteRow,
    SourceRow,
    UnchangedPage,
    VersionRow,
    VisitRow,
)
from recrawl.record.schema.migrations import STEPS, check, migrate
from recrawl.record.store.sql.base import insert, upsert
from recrawl.record.store.sql.store import SqlStore, heeded_pages, unlisted_pages
from recrawl.record.store.sqlite.checks import SqliteChecks
from recrawl.record.store.sqlite.connection import connect, translated

_CACHE = "PRAGMA cache_size = -16384"
"""A larger one saves no CPU time: the system keeps the file in memory, too."""
_LITTLE_CACHE = "PRAGMA cache_size = -4096; PRAGMA shrink_memory"
"""For a scan of all pages."""
_WARC = upsert("warcs", ("id", "name", "length"), ("id",))
_SITE = upsert("sites", SiteRow._fields, ("id",))
_NEW_PAGE = insert("pages", NewPage._fields)
_VISIT = insert("visits", VisitRow._fields)
_VERSION = insert("versions", VersionRow._fields)
_STATE, _UNCHANGED = (
    f"UPDATE pages SET {', '.join(f'{name} = ?' for name in row._fields[:-1])} WHERE id = ?"
    for row in (PageState, UnchangedPage)
)
_FRAME = upsert("frames", ("site", "data"), ("site",))
_LINKS = upsert("links", ("page", "targets"), ("page",))
_HINT = f"""{insert("hints", HintRow._fields)} ON CONFLICT DO UPDATE SET seen = excluded.seen, value = excluded.value,
    signals = min(1000, signals + excluded.signals)"""
_SOURCE = f"""{insert("sources", SourceRow._fields)} ON CONFLICT DO UPDATE SET seen = max(seen, excluded.seen),
    signals = signals + excluded.signals, ignored = excluded.ignored, problem = excluded.problem"""
_FEED = upsert("feeds", FeedRow._fields, ("site", "url"))
_REQUISITE = upsert("requisites", RequisiteRow._fields, ("id",))
_REQUISITE_VERSION = insert("requisite_versions", RequisiteVersion._fields)
_PAGE_REQUISITES = upsert("page_requisites", ("page", "level", "requisites"), ("page",))
_HOST = upsert("requisite_hosts", HostRow._fields, ("origin",))
_SCREENSHOT = insert("screenshots", ScreenshotRow._fields)


class SqliteStore(SqlStore):
    """The file `recrawl.db`."""

    _check_table = SqliteChecks
    _refusals = (
        ValueError,  # half of a surrogate pair
        OverflowError,
        TypeError,
        sqlite3.IntegrityError,
        sqlite3.DataError,
        sqlite3.InterfaceError,
        sqlite3.ProgrammingError,
    )

    def __init__(self, path: Path, *, create: bool = False, shared: bool = False) -> None:
        """Open the file. `shared`: read only, and threads may hand it on, one at a time."""
        self.path = path
        try:
            self.db = connect(path, shared=shared, writing=create)
            self.db.executescript(f"PRAGMA synchronous = FULL; {_CACHE}; PRAGMA temp_store = MEMORY")
            if create:
                self.db.executescript("PRAGMA journal_mode = WAL; PRAGMA secure_delete = FAST")
                migrate(self.db)
            elif len(check(self.db)) < len(STEPS):
                migrate(self.db)
            if shared:
                self.db.executescript("PRAGMA cache_size = -16384; PRAGMA query_only = ON")
        except sqlite3.DatabaseError as error:
            if isinstance(found := translated(error, str(path)), StorageFailure):
                raise found from error
            raise RepositoryError(f"{path} cannot be used as a recrawl database: {error}") from error
        self._open_tables(self.db)

    def _write(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        run = self.db.executemany
        run(_WARC, warcs)
        run(_SITE, batch.sites)
        run(_FRAME, batch.frames)
        run(_NEW_PAGE, batch.pages)
        run(_VISIT, batch.visits)
        run(_VERSION, batch.versions)
        run(_STATE, batch.states)
        run(_UNCHANGED, batch.unchanged)
        run(_LINKS, batch.links)
        run(_REQUISITE, batch.requisites.rows)
        run(_REQUISITE_VERSION, (version for version, _ in batch.requisites.versions))
        run(_PAGE_REQUISITES, batch.requisites.pages)
        run(_HOST, batch.requisites.hosts)
        run(_SCREENSHOT, (row for row, _ in batch.screenshots))
        recorded = ((page,) for page in heeded_pages(batch))
        run("UPDATE hints SET signals = 0 WHERE page = ? AND signals > 0", recorded)
        run(_HINT, batch.hints)
        run(_SOURCE, batch.sources)
        run(_FEED, batch.feeds)
        run("UPDATE pages SET listed = ? WHERE id = ?", batch.listed)
        removed = ((page,) for page in unlisted_pages(batch))
        run("DELETE FROM hints WHERE page = ? AND kind IN ('lastmod', 'changefreq')", removed)

    @contextmanager
    def scan(self) -> Iterator[None]:
        self.db.executescript(_LITTLE_CACHE)
        return_freed_memory()
        try:
            yield
        finally:
            self.db.executescript(_CACHE)
            return_freed_memory()

    def compact(self) -> None:
        self.db.executescript("PRAGMA temp_store = FILE; VACUUM; PRAGMA temp_store = MEMORY")
        busy, *_ = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StorageFailure(
                f"{self.path}-wal still has what was deleted, as another process is reading it: run the command again"
            )

    def close(self) -> None:
        self.db.close()
