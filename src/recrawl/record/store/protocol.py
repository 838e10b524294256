"""The protocol of the store: what every implementation offers. SQL is behind it and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol

from recrawl.record.rows import Batch
from recrawl.record.store.channels import HintTable, KeyProofTable, OutboxTable, PushTable, SubscriptionTable
from recrawl.record.store.checks import Checks
from recrawl.record.store.leases import Lease
from recrawl.record.store.marks import MarkTable
from recrawl.record.store.reports import Listings, Reports, SummaryTable
from recrawl.record.store.requisites import RequisiteTable
from recrawl.record.store.site_tables import CycleTable, MetaTable, SiteTable, WarcTable
from recrawl.record.store.tables import LinkTable, PageTable, ScreenshotTable, VersionTable, VisitTable

if TYPE_CHECKING:
    from recrawl.record.store.sql.tables.erasing import SqlErasing

NumberedTable = Literal[
    "sites", "pages", "visits", "versions", "cycles", "requisites", "requisite_versions", "screenshots"
]


class Store(Protocol):
    """All facts of a repository. Nothing here decides anything."""

    meta: MetaTable
    marks: MarkTable
    pages: PageTable
    visits: VisitTable
    versions: VersionTable
    screenshots: ScreenshotTable
    links: LinkTable
    sites: SiteTable
    cycles: CycleTable
    warcs: WarcTable
    hints: HintTable
    pushes: PushTable
    outbox: OutboxTable
    subscriptions: SubscriptionTable
    key_proofs: KeyProofTable
    requisites: RequisiteTable
    summaries: SummaryTable
    reports: Reports
    listings: Listings
    checks: Checks
    erasing: SqlErasing

    def lock(self, what: str, wait: Callable[[str], bool]) -> None:
        """Become the only writer of a store outside the folder, until `close`; `RepositoryBusy` if another one is.

        `wait` is called between attempts with the name of the holder; it returns False to give up.
        """

    def compact(self) -> None:
        """Write the file anew without what was deleted from it."""

    def fence(self, lease: Lease) -> None:
        """Write from now on only while this lease is not taken over; then `LeaseLost`, and nothing is written."""

    def commit(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        """Record a batch: all of it or nothing, durable on return. `warcs` are number, name and length of files.

        `RefusedRows` if a value of the batch is none that the database can hold.
        """

    def refusal(self, batch: Batch) -> str:
        """Why the database would refuse a batch; empty if it would not. Nothing is recorded."""

    def transaction(self) -> AbstractContextManager[None]:
        """Commit at the end of the `with` block, or roll back if it raises."""

    def next_id(self, table: NumberedTable) -> int:
        """The first free number of a table."""

    def count(self, table: NumberedTable) -> int:
        """The number of rows that a table has ever had; known without counting."""

    def scan(self) -> AbstractContextManager[None]:
        """Cache little in the `with` block, which reads all pages once: the cache would fill with what it reads."""

    def close(self) -> None:
        """Close the store; everything committed stays."""
