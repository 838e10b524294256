"""What the SQL stores share: one attribute for each group of tables, transactions, numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from recrawl.errors import RefusedRows, RepositoryError
from recrawl.model import Outcome
from recrawl.record.rows import Batch
from recrawl.record.store.channels import HintTable, KeyProofTable, OutboxTable, PushTable, SubscriptionTable
from recrawl.record.store.checks import Checks
from recrawl.record.store.leases import Lease
from recrawl.record.store.marks import MarkTable
from recrawl.record.store.protocol import NumberedTable, Store
from recrawl.record.store.reports import Listings, Reports, SummaryTable
from recrawl.record.store.requisites import RequisiteTable
from recrawl.record.store.site_tables import CycleTable, MetaTable, SiteTable, WarcTable
from recrawl.record.store.sql.base import Connection, Transaction, insert
from recrawl.record.store.sql.checks import SqlChecks
from recrawl.record.store.sql.listings import SqlListings
from recrawl.record.store.sql.reports import SqlReports
from recrawl.record.store.sql.tables.erasing import SqlErasing
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
from recrawl.record.store.tables import LinkTable, PageTable, ScreenshotTable, VersionTable, VisitTable

_NO_LONGER_LISTED = 2


def heeded_pages(batch: Batch) -> list[int]:
    """Pages whose signals a visit of the batch has used up."""
    return [row.page for row in batch.visits if row.hints and row.outcome != Outcome.FAILED]


def unlisted_pages(batch: Batch) -> list[int]:
    """Pages that the sitemaps no longer list."""
    return [page for state, page in batch.listed if state == _NO_LONGER_LISTED]


class _NotKept(Exception):
    """Ends a transaction that only tries what the database takes."""


class SqlStore(Store):
    """A store of SQL tables; implementations open the connection and write batches."""

    _refusals: tuple[type[Exception], ...]
    """What the database and its adapter raise for values that they cannot take."""

    _meta_table: type[SqlMeta] = SqlMeta
    _page_table: type[SqlPages] = SqlPages
    _visit_table: type[SqlVisits] = SqlVisits
    _outbox_table: type[SqlOutbox] = SqlOutbox
    _check_table: type[SqlChecks]

    def _open_tables(self, db: Connection) -> None:
        self.connection = db
        self.meta: MetaTable = self._meta_table(db)
        self.marks: MarkTable = SqlMarks(db, self.meta)
        self.pages: PageTable = self._page_table(db, self.meta)
        self.visits: VisitTable = self._visit_table(db)
        self.versions: VersionTable = SqlVersions(db)
        self.screenshots: ScreenshotTable = SqlScreenshots(db)
        self.links: LinkTable = SqlLinks(db)
        self.sites: SiteTable = SqlSites(db)
        self.cycles: CycleTable = SqlCycles(db)
        self.warcs: WarcTable = SqlWarcs(db)
        self.hints: HintTable = SqlHints(db)
        self.pushes: PushTable = SqlPushes(db)
        self.outbox: OutboxTable = self._outbox_table(db)
        self.subscriptions: SubscriptionTable = SqlSubscriptions(db)
        self.key_proofs: KeyProofTable = SqlKeyProofs(db)
        self.requisites: RequisiteTable = SqlRequisites(db)
        self.summaries: SummaryTable = SqlSummaries(db)
        self.reports: Reports = SqlReports(db)
        self.listings: Listings = SqlListings(db)
        self.checks: Checks = self._check_table(db)
        self.erasing = SqlErasing(db)

    def commit(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        try:
            with Transaction(self.connection):
                self._write(batch, warcs)
        except self._refusals as error:
            raise RefusedRows(f"the database refuses a batch: {type(error).__name__}: {error}") from error

    def refusal(self, batch: Batch) -> str:
        try:
            with suppress(_NotKept), Transaction(self.connection):
                self._write(batch, ())
                raise _NotKept
        except self._refusals as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _write(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        """Write the rows of a batch, in a transaction that has begun."""
        raise NotImplementedError

    def append(self, table: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Append rows to a table as they are; `types` are those of PostgreSQL."""
        del types
        self.connection.executemany(insert(table, columns), rows)

    def storable(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """A row as the store gives it back."""
        return row

    def after_copy(self) -> None:
        """Number new rows after those that were copied."""

    def lock(self, what: str, wait: Callable[[str], bool]) -> None:
        """The lock of the folder is enough for a store in it."""

    def compact(self) -> None:
        raise RepositoryError("only a store in an SQLite file can be written anew without what was deleted")

    def fence(self, lease: Lease) -> None:
        raise RepositoryError(f"shard {lease.shard} is in an SQLite file: only shards in PostgreSQL have leases")

    def scan(self) -> AbstractContextManager[None]:
        return nullcontext()  # a server has its own memory

    def transaction(self) -> Transaction:
        return Transaction(self.connection)

    def next_id(self, table: NumberedTable) -> int:
        last = self.connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0]
        return 0 if last is None else int(last) + 1

    def count(self, table: NumberedTable) -> int:
        return self.next_id(table)  # rows are numbered from 0 and never removed
