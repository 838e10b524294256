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
from recrawl.record.store.sqlite.base import Transaction, insert
from recrawl.record.store.sqlite.checks import SqliteChecks
from recrawl.record.store.sqlite.connection import connect, translated
from recrawl.record.store.sqlite.listings import SqliteListings
from recrawl.record.store.sqlite.reports import SqliteReports
from recrawl.record.store.sqlite.tables.hints import SqliteHints
from recrawl.record.store.sqlite.tables.marks import SqliteMarks
from recrawl.record.store.sqlite.tables.outbox import SqliteOutbox
from recrawl.record.store.sqlite.tables.pages import SqlitePages
from recrawl.record.store.sqlite.tables.pushes import SqlitePushes
from recrawl.record.store.sqlite.tables.requisites import SqliteRequisites
from recrawl.record.store.sqlite.tables.sites import SqliteCycles, SqliteMeta, SqliteSites
from recrawl.record.store.sqlite.tables.subscriptions import SqliteKeyProofs, SqliteSubscriptions
from recrawl.record.store.sqlite.tables.summaries import SqliteSummaries
from recrawl.record.store.sqlite.tables.versions import SqliteLinks, SqliteScreenshots, SqliteVersions, SqliteWarcs
from recrawl.record.store.sqlite.tables.visits import SqliteVisits
from recrawl.record.store.tables import LinkTable, PageTable, ScreenshotTable, VersionTable, VisitTable

_REPLACE = "INSERT OR REPLACE"
_WARC = insert("warcs", ("id", "name", "length"), _REPLACE)
_SITE = insert("sites", SiteRow._fields, _REPLACE)
_NEW_PAGE = insert("pages", NewPage._fields)
_VISIT = insert("visits", VisitRow._fields)
_VERSION = insert("versions", VersionRow._fields)
_STATE = f"UPDATE pages SET {', '.join(f'{name} = ?' for name in PageState._fields[:-1])} WHERE id = ?"
_FRAME = insert("frames", ("site", "data"), _REPLACE)
_LINKS = insert("links", ("page", "targets"), _REPLACE)
_HINT = f"""{insert("hints", HintRow._fields)} ON CONFLICT DO UPDATE SET seen = excluded.seen, value = excluded.value,
    signals = min(1000, signals + excluded.signals)"""
_SOURCE = f"""{insert("sources", SourceRow._fields)} ON CONFLICT DO UPDATE SET seen = max(seen, excluded.seen),
    signals = signals + excluded.signals, ignored = excluded.ignored, problem = excluded.problem"""
_FEED = insert("feeds", FeedRow._fields, _REPLACE)
_REQUISITE = insert("requisites", RequisiteRow._fields, _REPLACE)
_REQUISITE_VERSION = insert("requisite_versions", RequisiteVersion._fields)
_PAGE_REQUISITES = insert("page_requisites", ("page", "level", "requisites"), _REPLACE)
_HOST = insert("requisite_hosts", HostRow._fields, _REPLACE)
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
        self.meta: MetaTable = SqliteMeta(self.db)
        self.marks: MarkTable = SqliteMarks(self.db)
        self.pages: PageTable = SqlitePages(self.db)
        self.visits: VisitTable = SqliteVisits(self.db)
        self.versions: VersionTable = SqliteVersions(self.db)
        self.screenshots: ScreenshotTable = SqliteScreenshots(self.db)
        self.links: LinkTable = SqliteLinks(self.db)
        self.sites: SiteTable = SqliteSites(self.db)
        self.cycles: CycleTable = SqliteCycles(self.db)
        self.warcs: WarcTable = SqliteWarcs(self.db)
        self.hints: HintTable = SqliteHints(self.db)
        self.pushes: PushTable = SqlitePushes(self.db)
        self.outbox: OutboxTable = SqliteOutbox(self.db)
        self.subscriptions: SubscriptionTable = SqliteSubscriptions(self.db)
        self.key_proofs: KeyProofTable = SqliteKeyProofs(self.db)
        self.requisites: RequisiteTable = SqliteRequisites(self.db)
        self.summaries: SummaryTable = SqliteSummaries(self.db)
        self.reports: Reports = SqliteReports(self.db)
        self.listings: Listings = SqliteListings(self.db)
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
