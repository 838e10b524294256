"""The order in which the visits of all shards were recorded.

A reader that goes on where it stopped needs an order in which nothing comes before what it has read. Numbers of the
whole have none: one shard is further than another. So blocks of consecutive visits get places, in the order in which
they are noticed; a shard records its visits in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from recrawl.record.store.postgres.gathered.connection import Block, GatheredConnection
from recrawl.record.store.postgres.gathered.views import own_schema, shard_schema
from recrawl.record.store.sql.base import Transaction

_TABLES = """CREATE TABLE IF NOT EXISTS {own}.visit_blocks (
    place BIGINT PRIMARY KEY, shard BIGINT NOT NULL, first BIGINT NOT NULL, visits BIGINT NOT NULL,
    UNIQUE (shard, first)
);
CREATE TABLE IF NOT EXISTS {own}.read_up_to (shard BIGINT PRIMARY KEY, value BIGINT NOT NULL)"""


def make_order(db: GatheredConnection) -> None:
    """Make the tables that only the whole has."""
    own = own_schema(db.cluster)
    if db.run("SELECT to_regclass(%s)", (f"{own}.read_up_to",)).fetchone()[0] is None:
        db.run(_TABLES.format(own=own))


class VisitOrder:
    """The table `visit_blocks`."""

    def __init__(self, db: GatheredConnection, shards: int, *, writable: bool) -> None:
        """A reader that cannot write sees what others have noticed."""
        self._db = db
        self._shards = shards
        self._writable = writable
        self._newest = " UNION ALL ".join(
            f"(SELECT {shard} AS shard, max(id) + 1 AS visits FROM {shard_schema(db.cluster, shard)}.visits)"
            for shard in range(shards)
        )

    def count(self) -> int:
        """The number of visits of all shards."""
        return int(self._db.run(f"SELECT coalesce(sum(visits), 0)::bigint FROM ({self._newest}) n").fetchone()[0])

    def newest(self) -> int:
        """The visit that was recorded last; -1 if there is none."""
        self.notice()
        return self._at(self._end() - 1)

    def before(self, visit: int, count: int) -> int:
        """The visit that was recorded so many visits before one; -1 if there are fewer."""
        return self._at(self._place(visit) - count)

    def after(self, visit: int) -> Iterator[Block]:
        """What was recorded after a visit (-1: everything), in order."""
        self.notice()
        place = self._place(visit)
        sql = "SELECT place, shard, first, visits FROM visit_blocks WHERE place + visits > %s ORDER BY place"
        for start, shard, first, visits in self._db.run(sql, (place + 1,)).fetchall():
            skipped = max(0, place + 1 - start)
            low, high = first + skipped - 1, first + visits - 1
            yield Block(shard, low * self._shards + shard, high * self._shards + shard)

    def notice(self) -> None:
        """Give places to the visits that have none yet."""
        if not self._writable or not self._unnoticed():
            return
        with Transaction(self._db):
            self._db.run("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"{self._db.cluster} visits",))
            place = self._end()
            for shard, first, visits in self._unnoticed():
                self._db.run("INSERT INTO visit_blocks VALUES (%s, %s, %s, %s)", (place, shard, first, visits))
                place += visits

    def _unnoticed(self) -> list[tuple[int, int, int]]:
        """Shard, first visit and number of visits of what has no place."""
        sql = f"""SELECT n.shard, coalesce(b.noticed, 0), n.visits - coalesce(b.noticed, 0) FROM ({self._newest}) n
            LEFT JOIN (SELECT shard, max(first + visits) AS noticed FROM visit_blocks GROUP BY shard) b USING (shard)
            WHERE n.visits > coalesce(b.noticed, 0) ORDER BY n.shard"""
        return self._db.run(sql).fetchall()

    def _end(self) -> int:
        return int(self._db.run("SELECT coalesce(max(place + visits), 0) FROM visit_blocks").fetchone()[0])

    def _place(self, visit: int) -> int:
        """The place of a visit; one that has none yet comes after all others."""
        if visit < 0:
            return -1
        number, shard = divmod(visit, self._shards)
        sql = (
            "SELECT place, first, visits FROM visit_blocks WHERE shard = %s AND first <= %s ORDER BY first DESC LIMIT 1"
        )
        found = self._db.run(sql, (shard, number)).fetchone()
        if found is None or number >= found[1] + found[2]:
            return self._end() - 1
        return int(found[0] + number - found[1])

    def _at(self, place: int) -> int:
        if place < 0:
            return -1
        sql = "SELECT place, shard, first FROM visit_blocks WHERE place <= %s ORDER BY place DESC LIMIT 1"
        start, shard, first = self._db.run(sql, (place,)).fetchone()
        return int((first + place - start) * self._shards + shard)
