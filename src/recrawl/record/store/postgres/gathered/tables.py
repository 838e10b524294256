"""The methods that differ where shards are read as one: writes that must reach a shard, and reading in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from recrawl.columns import Ints
from recrawl.record.rows import PushRow, Row
from recrawl.record.store.division.packed import repacked_frame
from recrawl.record.store.postgres.gathered.connection import GatheredConnection
from recrawl.record.store.postgres.gathered.order import VisitOrder
from recrawl.record.store.postgres.gathered.views import shard_schema
from recrawl.record.store.postgres.tables import PostgresMeta, PostgresPages, PostgresVisits
from recrawl.record.store.sql.base import Transaction
from recrawl.record.store.sql.listings import SqlListings
from recrawl.record.store.sql.reports import SqlReports
from recrawl.record.store.sql.tables.marks import SqlMarks
from recrawl.record.store.sql.tables.pushes import SqlPushes
from recrawl.record.store.sql.tables.sites import SqlSites
from recrawl.record.store.sql.tables.summaries import SqlSummaries
from recrawl.record.store.sql.tables.versions import SqlLinks

_BY_NUMBER = frozenset({"shared-texts", "unindexable"})
"""Values of shards that are JSON objects by number of a site or page; the whole has those of all shards."""


class Shards:
    """How many there are, their schemas, and statements for the shard that a number belongs to."""

    def __init__(self, db: GatheredConnection, count: int) -> None:
        self.count = count
        self._db = db

    def schema(self, shard: int) -> str:
        """The schema of a shard."""
        return shard_schema(self._db.cluster, shard)

    def by_shard(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        """Numbers of the whole as numbers of their shards."""
        found: dict[int, list[int]] = {}
        for number in numbers:
            found.setdefault(number % self.count, []).append(number // self.count)
        return found

    def at(self, shards: Ints, numbers: Ints) -> Ints:
        """Numbers of shards as numbers of the whole."""
        return numbers * self.count + shards

    def run(self, sql: str, numbers: Iterable[int], *values: Any) -> None:
        """Run a statement in every shard that has one of these numbers: `{schema}`, then the values, then the array."""
        with Transaction(self._db):
            for shard, own in self.by_shard(numbers).items():
                self._db.run(sql.format(schema=self.schema(shard)), (*values, own))


class GatheredMeta(PostgresMeta):
    """Single values of the whole."""

    shards: Shards

    def get(self, name: str, default: Any) -> Any:
        if name not in _BY_NUMBER:
            return super().get(name, default)
        whole: dict[str, Any] = {}
        for shard in range(self.shards.count):
            sql = f"SELECT value FROM {self.shards.schema(shard)}.meta WHERE name = ?"
            text = self._value(sql, (name,))
            rows = json.loads(json.loads(text)) if text else {}
            whole |= {str(int(number) * self.shards.count + shard): row for number, row in rows.items()}
        return json.dumps(whole)


class GatheredSites(SqlSites):
    """The sites of all shards; the members of a frame are pages of the whole."""

    shards: Shards

    def frame(self, site: int) -> bytes | None:
        data = super().frame(site)
        return None if data is None else repacked_frame(data, site % self.shards.count, self.shards)


class GatheredPages(PostgresPages):
    """The pages of all shards."""

    shards: Shards

    def check_now(self, pages: Iterable[int]) -> None:
        self.shards.run(f"UPDATE {{schema}}.pages SET {self._check_now} AND id = ANY (%s)", pages)


class GatheredLinks(SqlLinks):
    """The links of all pages; a link across shards is in none of them."""

    shards: Shards

    def of_pages(self, pages: Iterable[int]) -> dict[int, bytes]:
        return {page: self._whole(page, targets) for page, targets in super().of_pages(pages).items()}

    def below(self, page: int) -> Iterator[tuple[int, bytes]]:
        return ((page, self._whole(page, targets)) for page, targets in super().below(page))

    def _whole(self, page: int, targets: bytes) -> bytes:
        own = np.frombuffer(targets, "<i4").astype("i8")
        return (own * self.shards.count + page % self.shards.count).astype("<i4").tobytes()


class GatheredMarks(SqlMarks):
    """Requests go to the shards; tags, read marks and saved filters belong to the whole."""

    shards: Shards

    def request(self, pages: Iterable[int], at: float) -> None:
        self.shards.run(
            "INSERT INTO {schema}.requests SELECT page, %s FROM unnest(%s::bigint[]) page ON CONFLICT DO NOTHING",
            pages,
            at,
        )

    def mark_all_read(self) -> int:
        with Transaction(self._db):
            self._db.execute("DELETE FROM read_up_to")
            self._db.execute("INSERT INTO read_up_to SELECT shard, max(id) FROM visits GROUP BY shard")
            self._db.execute("DELETE FROM change_marks")
        return int(self._value("SELECT coalesce(max(value), -1) FROM read_up_to"))


class GatheredPushes(SqlPushes):
    """A push goes to the shard of its site."""

    shards: Shards

    def put(self, row: PushRow) -> bool:
        parts = urlsplit(row.url)
        site = self._value("SELECT id FROM sites WHERE origin = ?", (f"{parts.scheme}://{parts.netloc}",))
        if site is None:
            return False
        schema = self.shards.schema(site % self.shards.count)
        sql = f"INSERT INTO {schema}.pushes ({', '.join(row._fields)}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        return self._db.execute(sql, row).rowcount > 0


class GatheredSummaries(SqlSummaries):
    """The summaries that the shards have written."""

    def write_sites(self, sites: Iterable[Row]) -> None:
        """Shards write those of their sites."""


class InOrder:
    """Reads the visits of all shards in the order in which they were recorded."""

    _db: Any
    order: VisitOrder

    def rows_after(self, visit: int, limit: int, read: Callable[[int, int], list[Row]]) -> list[Row]:
        """Rows of the blocks after a visit; `read` takes the visit before the first one and a limit."""
        found: list[Row] = []
        for block in self.order.after(visit):
            with self._db.within(block):
                found += read(block.low, limit - len(found))
            if len(found) >= limit:
                break
        return found


class GatheredVisits(InOrder, PostgresVisits):
    """The visits of all shards."""

    def after(self, visit: int, limit: int) -> list[Row]:
        return self.rows_after(visit, limit, super().after)

    def before(self, visit: int, count: int) -> int:
        return self.order.before(visit, count)


class GatheredReports(InOrder, SqlReports):
    """Queries for people over all shards."""

    def visits_after(self, visit: int, limit: int) -> list[Row]:
        return self.rows_after(visit, limit, super().visits_after)


class GatheredListings(InOrder, SqlListings):
    """Blocks of the tables of all shards."""

    def changes_after(self, visit: int, site: str, limit: int) -> list[Row]:
        read = super().changes_after
        return self.rows_after(visit, limit, lambda low, size: read(low, site, size))

    def deliveries_after(self, visit: int, site: str, limit: int) -> list[Row]:
        read = super().deliveries_after
        return self.rows_after(visit, limit, lambda low, size: read(low, site, size))

    def deliveries(self, visit: int, site: str) -> int:
        count = 0
        for block in self.order.after(visit):
            with self._db.within(block):
                count += super().deliveries(block.low, site)
        return count

    def visits_after(self, visit: int, since: float, site: str, limit: int) -> list[Row]:
        read = super().visits_after
        return self.rows_after(visit, limit, lambda low, size: read(low, since, site, size))
