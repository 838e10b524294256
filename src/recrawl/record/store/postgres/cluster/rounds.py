"""The journal of a cycle over shards: arrivals, what was asked, what was offered, what may be taken.

A round has three steps, each one transaction that a crash leaves done or not done:

    arrive   a shard is ready for the next round: the totals of its pages, and the visits that it gives back
    ask      the coordinator asks the shards that have arrived (`present`) for offers
    settle   it divides the visits of the round among those that have offered

A shard that arrives while a round is asked takes part in the next. Rows are written once and never changed, so that a
coordinator or a worker that is started again reads what was decided and goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recrawl.record.store.postgres.cluster.channels import channels
from recrawl.record.store.postgres.connection import PostgresConnection
from recrawl.record.store.sql.base import Transaction


class RoundRow(NamedTuple):
    """A round that was asked."""

    round: int
    stage: str
    visits: int
    """Maximum visits of this round."""
    left: int
    """What is left of the budget, the visits of this round included."""
    returned: int
    """Visits that shards have given back since the last round."""
    totals: bytes
    present: list[int]
    settled: bool


class Arrival(NamedTuple):
    """A shard in a round."""

    round: int
    shard: int
    totals: bytes
    returned: int
    """Visits that it gives back, of all rounds before."""
    offer: bytes | None


class RoundJournal:
    """The tables `rounds`, `offers` and `cuts`."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db
        self._wake_shards, self._wake_coordinator = (f"NOTIFY {channel}" for channel in channels(db.target.schema))

    def next_round(self, run: int) -> int:
        """The number of the round that is asked next."""
        found = self._db.run("SELECT count(*) FROM rounds WHERE run = %s", (run,)).fetchone()
        return int(found[0])

    def arrive(self, run: int, round_: int, shard: int, *, totals: bytes, returned: int) -> bool:
        """A shard is ready for a round; False if that was asked meanwhile."""
        with Transaction(self._db):
            self._db.run("SELECT 1 FROM runs WHERE id = %s FOR SHARE", (run,))
            if self.next_round(run) != round_:
                return False
            self._db.run(
                "INSERT INTO offers VALUES (%s, %s, %s, %s, %s, NULL) ON CONFLICT (run, round, shard) DO NOTHING",
                (run, round_, shard, totals, returned),
            )
            self._db.run(self._wake_coordinator)
        return True

    def offer(self, run: int, round_: int, shard: int, offer: bytes) -> None:
        """What a shard offers in a round that was asked."""
        self._db.run(
            "UPDATE offers SET offer = %s WHERE run = %s AND round = %s AND shard = %s AND offer IS NULL",
            (offer, run, round_, shard),
        )
        self._db.run(self._wake_coordinator)

    def arrivals(self, run: int, round_: int) -> dict[int, Arrival]:
        """The shards of a round."""
        sql = "SELECT round, shard, totals, returned, offer FROM offers WHERE run = %s AND round = %s ORDER BY shard"
        return {row[1]: Arrival(*row) for row in self._db.run(sql, (run, round_))}

    def ask(self, run: int, row: RoundRow) -> bool:
        """Ask the shards in `row.present`; False if others have arrived meanwhile: look again."""
        with Transaction(self._db):
            self._db.run("SELECT 1 FROM runs WHERE id = %s FOR UPDATE", (run,))
            if sorted(self.arrivals(run, row.round)) != row.present:
                return False
            self._db.run(
                "INSERT INTO rounds VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                (run, row.round, row.stage, row.visits, row.left, row.returned, row.totals, row.present),
            )
            self._db.run(self._wake_shards)
        return True

    def settle(self, run: int, round_: int, offered: Iterable[int], cuts: Mapping[int, tuple[int, int]]) -> bool:
        """Record the cuts of the shards that have offered; False if others have offered meanwhile: look again."""
        with Transaction(self._db):
            sql = "SELECT shard, offer IS NOT NULL FROM offers WHERE run = %s AND round = %s FOR UPDATE"
            if sorted(shard for shard, made in self._db.run(sql, (run, round_)) if made) != sorted(offered):
                return False
            self._db.run("UPDATE rounds SET settled = true WHERE run = %s AND round = %s", (run, round_))
            for shard, (threshold, quota) in cuts.items():
                self._db.run("INSERT INTO cuts VALUES (%s, %s, %s, %s, %s)", (run, round_, shard, threshold, quota))
            self._db.run(self._wake_shards)
        return True

    def rounds(self, run: int) -> list[RoundRow]:
        """All rounds that were asked, in their order."""
        sql = """SELECT round, stage, visits, rest, returned, totals, present, settled FROM rounds WHERE run = %s
            ORDER BY round"""
        return [RoundRow(*row) for row in self._db.run(sql, (run,))]

    def get(self, run: int, round_: int) -> RoundRow | None:
        """A round; None if it was not asked."""
        sql = """SELECT round, stage, visits, rest, returned, totals, present, settled FROM rounds
            WHERE run = %s AND round = %s"""
        found = self._db.run(sql, (run, round_)).fetchone()
        return None if found is None else RoundRow(*found)

    def of_shard(self, run: int, shard: int) -> list[Arrival]:
        """The rounds in which a shard has arrived, in their order."""
        sql = "SELECT round, shard, totals, returned, offer FROM offers WHERE run = %s AND shard = %s ORDER BY round"
        return [Arrival(*row) for row in self._db.run(sql, (run, shard))]

    def cut(self, run: int, round_: int, shard: int) -> tuple[int, int] | None:
        """Threshold and quota of a shard in a round; None if there are none."""
        sql = "SELECT threshold, quota FROM cuts WHERE run = %s AND round = %s AND shard = %s"
        found = self._db.run(sql, (run, round_, shard)).fetchone()
        return None if found is None else (found[0], found[1])

    def forget(self, run: int) -> None:
        """Remove the journal of a finished run."""
        for table in ("cuts", "offers", "rounds"):
            self._db.run(f"DELETE FROM {table} WHERE run = %s", (run,))
