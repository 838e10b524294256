"""The store in SQLite: one file in WAL mode. Visits are written in batches, each one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from recrawl.errors import RepositoryError, StorageFailure
from recrawl.model import Outcome
from recrawl.record.requisite_rows import HostRow, RequisiteRow, RequisiteVersion
from recrawl.record.rows import Batch, FeedRow, HintRow, NewPage, PageState, SiteRow, SourceRow, VersionRow, VisitRow
from recrawl.record.schema.migrations import STEPS, check, migrate
from recrawl.record.screenshot_rows import ScreenshotRow
from recrawl.record.store.channels import HintTable, KeyProofTable, OutboxTable, PushTable, SubscriptionTable
from recrawl.record.store.checks import Checks
from recrawl.record.store.marks import MarkTable
from recrawl.record.store.protocol import NumberedTable, Store
from recrawl.record.store.reports import Listings, Reports, SummaryTable
from recrawl.record.store.requisites import RequisiteTable
from recrawl.record.store.site_tables import CycleTable, MetaTable, SiteTable, WarcTable
from recrawl.record.store.sql.base import Transaction, insert, upsert
from recrawl.record.store.sql.listings import SqlListings
from recrawl.record.store.sql.reports import SqlReports
from recrawl.record.store.sql.tables.hints import SqlHints
from recrawl.record.store.sql.tables.marks import SqlMarks
from recrawl.record.store.sql.tables.outbox import SqlOutbox
from recrawl.record.store.sql.tables.pages import SqlPages
from recrawl.record.store.sql.tables.pushes import SqlPushes
from recrawl.record.store.sql.tables.requisites import SqlRequisites
from recrawl.record.store.sql.tables.sites import SqlCycles, SqlMeta, SqlSites
from recrawl.record.store.sql.tables.subscriptions import SqlKeyProofs, SqlSubscriptions
from recrawl.record.store.sql.tables.summaries import SqlSummaries
from recrawl.record.store.sql.tables.versions import SqlLinks, SqlScreenshots, SqlVersions, SqlWarcs
from recrawl.record.store.sql.tables.visits import SqlVisits
from recrawl.record.store.sqlite.checks import SqliteChecks
from recrawl.record.store.sqlite.connection import connect, translated
from recrawl.record.store.tables import LinkTable, PageTable, ScreenshotTable, VersionTable, VisitTable

_WARC = upsert("warcs", ("id", "name", "length"), ("id",))
_SITE = upsert("sites", SiteRow._fields, ("id",))
_NEW_PAGE = insert("pages", NewPage._fields)
_VISIT = insert("visits", VisitRow._fields)
_VERSION = insert("versions", VersionRow._fields)
_STATE = f"UPDATE pages SET {', '.join(f'{name} = ?' for name in PageState._fields[:-1])} WHERE id = ?"
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
_NO_LONGER_LISTED = 2


class SqliteStore(Store):
    """The file `recrawl.db`."""

    def __init__(self, path: Path, *, create: bool = False, shared: bool = False) -> None:
        """Open the file. `shared`: read only, and threads may hand it on, one at a time."""
        self.path = path
        try:
            self.db = connect(path, shared=shared, writing=create)
            self.db.executescript("PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY")
            if create:
                self.db.execute("PRAGMA journal_mode = WAL")
                migrate(self.db)
            elif len(check(self.db)) < len(STEPS):
                migrate(self.db)
            if shared:
                self.db.executescript("PRAGMA cache_size = -16384; PRAGMA query_only = ON")
        except sqlite3.DatabaseError as error:
            if isinstance(found := translated(error, str(path)), StorageFailure):
                raise found from error
            raise RepositoryError(f"{path} cannot be used as a recrawl database: {error}") from error
        self.meta: MetaTable = SqlMeta(self.db)
        self.marks: MarkTable = SqlMarks(self.db, self.meta)
        self.pages: PageTable = SqlPages(self.db)
        self.visits: VisitTable = SqlVisits(self.db)
        self.versions: VersionTable = SqlVersions(self.db)
        self.screenshots: ScreenshotTable = SqlScreenshots(self.db)
        self.links: LinkTable = SqlLinks(self.db)
        self.sites: SiteTable = SqlSites(self.db)
        self.cycles: CycleTable = SqlCycles(self.db)
        self.warcs: WarcTable = SqlWarcs(self.db)
        self.hints: HintTable = SqlHints(self.db)
        self.pushes: PushTable = SqlPushes(self.db)
        self.outbox: OutboxTable = SqlOutbox(self.db)
        self.subscriptions: SubscriptionTable = SqlSubscriptions(self.db)
        self.key_proofs: KeyProofTable = SqlKeyProofs(self.db)
        self.requisites: RequisiteTable = SqlRequisites(self.db)
        self.summaries: SummaryTable = SqlSummaries(self.db)
        self.reports: Reports = SqlReports(self.db)
        self.listings: Listings = SqlListings(self.db)
        self.checks: Checks = SqliteChecks(self.db)

    def commit(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        run = self.db.executemany
        with Transaction(self.db):
            run(_WARC, warcs)
            run(_SITE, batch.sites)
            run(_FRAME, batch.frames)
            run(_NEW_PAGE, batch.pages)
            run(_VISIT, batch.visits)
            run(_VERSION, batch.versions)
            run(_STATE, batch.states)
            run(_LINKS, batch.links)
            run(_REQUISITE, batch.requisites.rows)
            run(_REQUISITE_VERSION, (version for version, _ in batch.requisites.versions))
            run(_PAGE_REQUISITES, batch.requisites.pages)
            run(_HOST, batch.requisites.hosts)
            run(_SCREENSHOT, (row for row, _ in batch.screenshots))
            recorded = ((row.page,) for row in batch.visits if row.hints and row.outcome != Outcome.FAILED)
            run("UPDATE hints SET signals = 0 WHERE page = ? AND signals > 0", recorded)
            run(_HINT, batch.hints)
            run(_SOURCE, batch.sources)
            run(_FEED, batch.feeds)
            run("UPDATE pages SET listed = ? WHERE id = ?", batch.listed)
            removed = ((page,) for state, page in batch.listed if state == _NO_LONGER_LISTED)
            run("DELETE FROM hints WHERE page = ? AND kind IN ('lastmod', 'changefreq')", removed)

    def transaction(self) -> Transaction:
        return Transaction(self.db)

    def next_id(self, table: NumberedTable) -> int:
        last = self.db.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
        return 0 if last is None else int(last) + 1

    def close(self) -> None:
        self.db.close()
