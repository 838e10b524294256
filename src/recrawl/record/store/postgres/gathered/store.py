"""The store of a cluster: its shards, read as one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from recrawl.errors import UsageError
from recrawl.record.rows import Batch
from recrawl.record.store.postgres.gathered.connection import WORKERS_WRITE, GatheredConnection
from recrawl.record.store.postgres.gathered.order import VisitOrder, make_order
from recrawl.record.store.postgres.gathered.tables import (
    GatheredLinks,
    GatheredListings,
    GatheredMarks,
    GatheredMeta,
    GatheredPages,
    GatheredPushes,
    GatheredReports,
    GatheredSites,
    GatheredSummaries,
    GatheredVisits,
    Shards,
)
from recrawl.record.store.postgres.gathered.views import make_views
from recrawl.record.store.postgres.leases import PostgresLeases
from recrawl.record.store.postgres.schema import STEPS, applied, has_steps
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.record.store.protocol import NumberedTable


class GatheredStore(PostgresStore):
    """All shards of a cluster. Pages are written by the workers of the shards alone."""

    def __init__(
        self,
        target: PostgresTarget,
        shards: int,
        *,
        shared: bool = False,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Connect; `target` names the schema of the cluster's tables. `shared` and `changed` as in `PostgresStore`."""
        self.db: GatheredConnection = GatheredConnection(target, changed)
        with contextlib.ExitStack() as failing:
            failing.callback(self.db.close)
            _prepare(self.db, target, shards)
            if shared:
                self.db.read_only()
            failing.pop_all()
        self.shards = Shards(self.db, shards)
        self.order = VisitOrder(self.db, shards, writable=not shared)
        self._open_tables(self.db)
        self._gather(self.db)
        self.leases = PostgresLeases(self.db)

    def _gather(self, db: GatheredConnection) -> None:
        shards, order = self.shards, self.order
        self.meta = meta = GatheredMeta(db)
        self.pages = pages = GatheredPages(db, meta)
        self.links = links = GatheredLinks(db)
        self.sites = sites = GatheredSites(db)
        self.marks = marks = GatheredMarks(db, meta)
        self.pushes = pushes = GatheredPushes(db)
        self.summaries = GatheredSummaries(db)
        self.visits = visits = GatheredVisits(db)
        self.reports = reports = GatheredReports(db)
        self.listings = listings = GatheredListings(db)
        meta.shards = pages.shards = links.shards = marks.shards = pushes.shards = sites.shards = shards
        visits.order = reports.order = listings.order = order

    def lock(self, what: str, wait: Callable[[str], bool]) -> None:
        del wait
        raise UsageError(f"{WORKERS_WRITE}; '{what}' is not possible here")

    def commit(self, batch: Batch, warcs: Iterable[tuple[int, str, int]]) -> None:
        del batch, warcs
        raise UsageError(WORKERS_WRITE)

    def next_id(self, table: NumberedTable) -> int:
        """A number after those of all rows; for visits the one after the visit that was recorded last."""
        return self.order.newest() + 1 if table == "visits" else super().next_id(table)

    def count(self, table: NumberedTable) -> int:
        if table == "visits":
            return self.order.count()
        if table == "requisites":  # several shards may know one
            return int(self.db.run("SELECT count(DISTINCT key) FROM requisites").fetchone()[0])
        schemas = map(self.shards.schema, range(self.shards.count))
        parts = (f"(SELECT coalesce(max(id) + 1, 0) FROM {schema}.{table})" for schema in schemas)
        return int(self.db.run(f"SELECT {' + '.join(parts)}").fetchone()[0])


def _prepare(db: GatheredConnection, target: PostgresTarget, shards: int) -> None:
    """Make the tables of the whole and the views, or renew them after the tables of the shards have changed."""
    if not has_steps(db) or len(applied(db, STEPS)) < len(STEPS):
        PostgresStore(db.target, create=True).close()
    make_order(db)
    make_views(db, target.schema, shards, lambda: _migrate_shards(target, shards))


def _migrate_shards(target: PostgresTarget, shards: int) -> None:
    for shard in range(shards):
        PostgresStore(target.of_shard(shard), create=True).close()
