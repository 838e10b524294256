"""New numbers for the rows of all shards of a cluster in one store: dense, in the order of their numbers in the whole.

Visits get their places in the order in which they were recorded. What several shards know, requisites and reasons, gets
one number.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from recrawl.columns import Ints
from recrawl.record.store.postgres.gathered.store import GatheredStore

_ROWS = 1 << 16


class MappedNumbering:
    """Old numbers, sorted, and the new number of each: 16 bytes per row.

    >>> rows = MappedNumbering(np.array([1, 4, 6]), np.array([0, 1, 0]))
    >>> rows.at(np.zeros(4), np.array([4, 6, 5, -1])).tolist()
    [1, 0, -1, -1]
    """

    def __init__(self, old: Ints, new: Ints) -> None:
        self._old = old
        self._new = new

    def at(self, shards: Ints, numbers: Ints) -> Ints:
        """The new numbers of rows, -1 where there is none; there is one shard."""
        del shards
        if not len(self._old):
            return np.full(len(numbers), -1, np.int64)
        places = np.minimum(np.searchsorted(self._old, numbers), len(self._old) - 1)
        return np.where(self._old[places] == numbers, self._new[places], -1)


class VisitPlaces:
    """The places of visits in the order in which they were recorded, from the blocks of the shards."""

    def __init__(self, blocks: Ints, shards: int) -> None:
        """`blocks` has a column for each block: place, shard, first visit, number of visits; in the order of places."""
        self._shards = shards
        self._of_shard = [blocks[:, blocks[1] == shard] for shard in range(shards)]

    def at(self, shards: Ints, numbers: Ints) -> Ints:
        """The places of visits, -1 for what is none."""
        del shards
        found = np.full(len(numbers), -1, np.int64)
        for shard, (place, _, first, visits) in enumerate(self._of_shard):
            here = np.flatnonzero((numbers >= 0) & (numbers % self._shards == shard))
            if not len(here) or not len(place):
                continue
            own = numbers[here] // self._shards
            block = np.maximum(np.searchsorted(first, own, side="right") - 1, 0)
            inside = (own >= first[block]) & (own < first[block] + visits[block])
            found[here] = np.where(inside, place[block] + own - first[block], -1)
        return found


class JoinedNumbers:
    """The new numbers of all rows of a cluster."""

    def __init__(self, source: GatheredStore) -> None:
        self._source = source
        self.shards = source.shards.count
        self.sites, self.pages, self.versions = (self._dense(it) for it in ("sites", "pages", "versions"))
        self.screenshots, self.requisite_versions = (self._dense(it) for it in ("screenshots", "requisite_versions"))
        self.warcs = self._dense("warcs")
        source.order.notice()
        self.blocks = np.array(
            source.db.run("SELECT place, shard, first, visits FROM visit_blocks ORDER BY place").fetchall(), np.int64
        ).reshape(-1, 4)
        self.visits = VisitPlaces(self.blocks.T, self.shards)
        # The shard that has requested a requisite comes first, as for readers of the cluster.
        self.requisites, self.first_requisites = self._merged(
            "SELECT id, key FROM requisites ORDER BY version >= 0 DESC, target >= 0 DESC, id"
        )
        self.reasons, self.first_reasons = self._merged("SELECT id, hashtextextended(text, 0) FROM reasons ORDER BY id")

    def places(self, kind: str, numbers: list[int]) -> list[int]:
        """The new numbers of rows of a table."""
        found: Ints = getattr(self, kind).at(np.zeros(len(numbers)), np.array(numbers, np.int64))
        return [int(it) for it in found]

    def first_visits(self, cycles: list[int]) -> list[int]:
        """The place of the first visit of each cycle; that of the next one if it made none."""
        rows = self._source.db.run("SELECT cycle, shard, min(id) FROM visits GROUP BY cycle, shard").fetchall()
        first: dict[int, int] = {}
        for (cycle, _, _), place in zip(rows, self.places("visits", [row[2] for row in rows]), strict=True):
            first[cycle] = min(place, first.get(cycle, place))
        found, later = [], self._source.order.count()
        for cycle in reversed(cycles):
            later = first.get(cycle, later)
            found.append(later)
        return found[::-1]

    def _dense(self, table: str) -> MappedNumbering:
        rows = iter(self._source.connection.stream(f"SELECT id FROM {table} ORDER BY id"))
        blocks = []
        while block := [row[0] for row in islice(rows, _ROWS)]:
            blocks.append(np.array(block, np.int64))
        old = np.concatenate(blocks) if blocks else np.empty(0, np.int64)
        return MappedNumbering(old, np.arange(len(old)))

    def _merged(self, sql: str) -> tuple[MappedNumbering, Ints]:
        """Rows with the same name get one number; and the rows that are copied, one for each name."""
        rows = np.fromiter(self._source.connection.stream(sql), np.dtype([("id", np.int64), ("name", np.int64)]))
        _, first, same = np.unique(rows["name"], return_index=True, return_inverse=True)
        chosen = rows["id"][first]
        copied, order = np.sort(chosen), np.argsort(rows["id"])
        return MappedNumbering(rows["id"][order], np.searchsorted(copied, chosen[same])[order]), copied
