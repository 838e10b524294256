"""The store in PostgreSQL: one schema of a database. Visits are written in batches, each one transaction."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

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
from recrawl.record.store.leases import Lease
from recrawl.record.store.postgres.adapters import clean
from recrawl.record.store.postgres.batches import ArrayUpsert, CopyInsert, CopyUpdate, columns, columns_of
from recrawl.record.store.postgres.cluster.links import insert_links, insert_requisites
from recrawl.record.store.postgres.connection import REFUSALS, PostgresConnection
from recrawl.record.store.postgres.leases import Fence, PostgresLeases
from recrawl.record.store.postgres.schema import STEPS, applied, has_steps, migrate
from recrawl.record.store.postgres.tables import (
    PostgresChecks,
    PostgresMeta,
    PostgresOutbox,
    PostgresPages,
    PostgresVisits,
)
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.record.store.postgres.writer_lock import WriterLock
from recrawl.record.store.sql.base import insert
from recrawl.record.store.sql.store import SqlStore, heeded_pages, unlisted_pages

_WARCS = ArrayUpsert("warcs", columns(id=int, name=str, length=int), ("id",))
_SITES = ArrayUpsert("sites", columns_of(SiteRow), ("id",))
_FRAMES = ArrayUpsert("frames", columns(site=int, data=bytes), ("site",))
_LINKS = ArrayUpsert("links", columns(page=int, targets=bytes), ("page",))
_FEEDS = ArrayUpsert("feeds", columns_of(FeedRow), ("site", "url"))
_REQUISITES = ArrayUpsert("requisites", columns_of(RequisiteRow), ("id",))
_PAGE_REQUISITES = ArrayUpsert("page_requisites", columns(page=int, level=int, requisites=bytes), ("page",))
_HOSTS = ArrayUpsert("requisite_hosts", columns_of(HostRow), ("origin",))
_PAGES = CopyInsert("pages", columns_of(NewPage))
_VISITS = CopyInsert("visits", columns_of(VisitRow))
_VERSIONS = CopyInsert("versions", columns_of(VersionRow))
_REQUISITE_VERSIONS = CopyInsert("requisite_versions", columns_of(RequisiteVersion))
_SCREENSHOTS = CopyInsert("screenshots", columns_of(ScreenshotRow))
_STATES = CopyUpdate("pages", columns_of(PageState), "id")
_UNCHANGED = CopyUpdate("pages", columns_of(UnchangedPage), "id")
_LISTED = CopyUpdate("pages", columns(listed=int, id=int), "id")
# Signals add up, also within a batch: one row at a time.
_HINT = f"""{insert("hints AS h", HintRow._fields)} ON CONFLICT (page, kind, shard) DO UPDATE SET
    seen = excluded.seen, value = excluded.value, signals = least(1000, h.signals + excluded.signals)"""
_SOURCE = f"""{insert("sources AS h", SourceRow._fields)} ON CONFLICT (site, kind) DO UPDATE SET
    seen = greatest(h.seen, excluded.seen), signals = h.signals + excluded.signals, ignored = excluded.ignored,
    problem = excluded.problem"""


class PostgresStore(SqlStore):
    """A schema of a PostgreSQL database."""

    _meta_table = PostgresMeta
    _page_table = PostgresPages
    _visit_table = PostgresVisits
    _outbox_table = PostgresOutbox
    _check_table = PostgresChecks
    _refusals = (ValueError, OverflowError, TypeError, struct.error, *REFUSALS)

    def __init__(
        self,
        target: PostgresTarget,
        *,
        create: bool = False,
        shared: bool = False,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Connect. `shared`: read only, and threads may hand it on, one at a time; `changed` is called after writes."""
        self.db = PostgresConnection(target, changed)
        with contextlib.ExitStack() as failing:
            failing.callback(self.db.close)
            if create or len(applied(self.db, STEPS)) < len(STEPS):
                migrate(self.db, STEPS)
            if shared:
                self.db.read_only()
            failing.pop_all()
        self._open_tables(self.db)
        self.leases = PostgresLeases(self.db)
        self._cluster = ""
        """The schema of the cluster to which the store belongs, if it writes under a lease."""

    def fence(self, lease: Lease) -> None:
        """Write from now on only while this lease is not taken over; then `LeaseLost`, and nothing is written."""
        self.db.fence = Fence(lease)
        self._cluster = lease.schema

    def lock(self, what: str, wait: Callable[[str], bool]) -> None:
        WriterLock(self.db, what, wait)

    def _write(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        db = self.db
        _WARCS.run(db, warcs)
        _SITES.run(db, batch.sites)
        _FRAMES.run(db, batch.frames)
        _PAGES.run(db, batch.pages)
        _VISITS.run(db, batch.visits)
        _VERSIONS.run(db, batch.versions)
        _STATES.run(db, batch.states)
        _UNCHANGED.run(db, batch.unchanged)
        _LINKS.run(db, batch.links)
        _REQUISITES.run(db, batch.requisites.rows)
        _REQUISITE_VERSIONS.run(db, [version for version, _ in batch.requisites.versions])
        _PAGE_REQUISITES.run(db, batch.requisites.pages)
        _HOSTS.run(db, batch.requisites.hosts)
        _SCREENSHOTS.run(db, [row for row, _ in batch.screenshots])
        if recorded := heeded_pages(batch):
            db.run("UPDATE hints SET signals = 0 WHERE page = ANY (%s) AND signals > 0", (recorded,))
        db.executemany(_HINT, batch.hints)
        db.executemany(_SOURCE, batch.sources)
        _FEEDS.run(db, batch.feeds)
        _LISTED.run(db, batch.listed)
        if removed := unlisted_pages(batch):
            db.run("DELETE FROM hints WHERE page = ANY (%s) AND kind IN ('lastmod', 'changefreq')", (removed,))

        if batch.outbox:
            insert_links(db, self._cluster, batch.outbox)
        if batch.requisites.outbox:
            insert_requisites(db, self._cluster, batch.requisites.outbox)

    def append(self, table: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.db.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)", types, rows)

    def storable(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(clean(value) if isinstance(value, str) else value for value in row)

    def after_copy(self) -> None:
        for table in ("reasons", "outbox"):
            self.db.run(
                f"""SELECT setval(pg_get_serial_sequence('{self.db.target.schema}.{table}', 'id'),
                                  (SELECT coalesce(max(id), 0) + 1 FROM {table}), false)"""
            )

    def close(self) -> None:
        self.db.close()


def is_taken(target: PostgresTarget) -> bool:
    """Whether the schema holds a repository already."""
    with contextlib.closing(PostgresConnection(target)) as db:
        return has_steps(db)
