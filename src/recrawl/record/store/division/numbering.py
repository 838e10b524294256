"""New numbers for the rows of a table that is divided: each shard counts its own from 0, in their old order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Ints

NOBODY = -1
Owners = NDArray[np.int16]
Locals = NDArray[np.int32]


class Numbering:
    """Which shard owns each row of a table, and the number of the row there: 6 bytes per row.

    >>> rows = Numbering(np.array([1, 0, 1], np.int16), 2)
    >>> rows.local.tolist(), rows.whole([0, 1, 2, -1]), rows.before([2, 0]).tolist()
    ([0, 0, 1], [1, 0, 3, -1], [[1, 1], [0, 0]])
    """

    def __init__(self, owner: Owners, shards: int) -> None:
        """`owner` has the shard of each old number, `NOBODY` where there is no row."""
        self.owner = owner
        self.shards = shards

    @cached_property
    def local(self) -> Locals:
        """The new number of each row in its shard: dense, and in the order of the old numbers."""
        order = np.argsort(self.owner, kind="stable")
        ranks = np.arange(len(self.owner)) - np.searchsorted(self.owner[order], self.owner[order])
        found = np.empty(len(self.owner), np.int32)
        found[order] = ranks
        return found

    def at(self, shards: Ints, numbers: Ints) -> Ints:
        """The new numbers of rows, each in the shard that refers to it; -1 where another shard owns it."""
        known = (numbers >= 0) & (numbers < len(self.owner))
        places = np.where(known, numbers, 0)
        if not len(self.owner):
            return np.full(len(numbers), -1, np.int64)
        own = known & (self.owner[places] == shards)
        return np.where(own, self.local[places], -1).astype(np.int64)

    def whole(self, numbers: Sequence[int]) -> list[int]:
        """Old numbers as those of the cluster: number in the shard times the number of shards, plus the shard."""
        places = np.asarray(numbers, np.int64)
        known = (places >= 0) & (places < len(self.owner))
        if not len(self.owner):
            return [-1] * len(places)
        safe = np.where(known, places, 0)
        joined = self.local[safe].astype(np.int64) * self.shards + self.owner[safe]
        return [int(it) for it in np.where(known & (self.owner[safe] >= 0), joined, -1)]

    def before(self, numbers: Sequence[int]) -> Ints:
        """How many rows with a lower old number each shard owns: a row of the array for each of the numbers."""
        found, counts, place = np.zeros((len(numbers), self.shards), np.int64), np.zeros(self.shards, np.int64), 0
        for row in np.argsort(numbers, kind="stable").tolist():
            owned = self.owner[place : max(place, numbers[row])]
            counts = counts + np.bincount(owned[owned >= 0], minlength=self.shards)
            found[row], place = counts, max(place, numbers[row])
        return found


class SharedNumbering:
    """Rows that several shards know: each has the old numbers of its own, sorted; the new number is the place there."""

    def __init__(self, members: Sequence[Ints]) -> None:
        self.members = members

    def knows(self, shard: int, numbers: Ints) -> NDArray[np.bool_]:
        """Which of these rows a shard knows."""
        own = self.members[shard]
        if not len(own):
            return np.zeros(len(numbers), np.bool_)
        places = np.minimum(np.searchsorted(own, numbers), len(own) - 1)
        return np.asarray(own[places] == numbers)

    def at(self, shards: Ints, numbers: Ints) -> Ints:
        """The new numbers of rows, each in the shard that refers to it; -1 where that does not know it."""
        found = np.full(len(numbers), -1, np.int64)
        for shard in np.unique(shards).tolist():
            here = (shards == shard) & (numbers >= 0)
            known = self.knows(shard, numbers[here])
            found[here] = np.where(known, np.searchsorted(self.members[shard], numbers[here]), -1)
        return found
