"""The side of a cycle that belongs to no shard: what is left of the budget, and who may take how much of it.

No round waits for all shards. A shard is late while its visits of an earlier round are under way, since one slow server
must not hold up the others. Its last offer then counts without the pages that it was promised since, and what the round
gives it is kept until it offers again: it takes its pages then, down to the lowest threshold that it has missed. Visits
that a shard cannot use go back to the budget.

The coordinator does no I/O and reads no clock: from the same offers in the same order follow the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from recrawl.choose.shards.offers import Cut, Offer, settle

_NOTHING = Offer(np.zeros(0))


@dataclass(slots=True)
class _ShardAccount:
    """What the coordinator knows of a shard."""

    stage: str = ""
    """The stage of its last offer; a shard that has missed a stage gets nothing of it."""
    offer: Offer = _NOTHING
    owed: int = 0
    """Visits of rounds that it has missed."""
    lowest: int = 0
    """The lowest threshold of those rounds."""


class Coordinator:
    """The budget of one cycle, divided among shards round by round."""

    def __init__(self, shards: int, budget: int) -> None:
        self.left = budget
        """Visits that no shard was given yet."""
        self._accounts = [_ShardAccount() for _ in range(shards)]

    def settle(self, stage: str, visits: int, offers: Mapping[int, Offer]) -> dict[int, Cut]:
        """Divide the visits of a round; return the cuts of the shards that have offered, by shard.

        >>> half, more = Offer(np.array([0.5, 0.5])), Offer(np.array([0.9, 0.8, 0.7]))
        >>> coordinator = Coordinator(2, 10)
        >>> [cut.quota for cut in coordinator.settle("a", 2, {0: half, 1: more}).values()]
        [0, 2]
        >>> coordinator.settle("a", 2, {0: half})[0].quota, coordinator.left  # shard 1 is late, and is kept one visit
        (1, 6)
        >>> coordinator.settle("a", 1, {0: _NOTHING, 1: more})[1].quota
        2
        """
        for shard, offer in offers.items():
            self._accounts[shard].stage, self._accounts[shard].offer = stage, offer
        offered = [account.offer if account.stage == stage else _NOTHING for account in self._accounts]
        cuts: dict[int, Cut] = {}
        for shard, cut in enumerate(settle(offered, min(visits, self.left))):
            account = self._accounts[shard]
            self.left -= cut.quota
            if len(self._accounts) > 1:
                account.offer = account.offer.without_best(cut)
            if shard in offers:
                lowest = min(cut.threshold, account.lowest) if account.owed else cut.threshold
                cuts[shard] = Cut(lowest, cut.quota + account.owed)
                account.owed = 0
            elif cut.quota:
                account.lowest = min(cut.threshold, account.lowest) if account.owed else cut.threshold
                account.owed += cut.quota
        return cuts

    def owed(self) -> dict[int, int]:
        """Return the visits that are kept for late shards, by shard."""
        return {shard: account.owed for shard, account in enumerate(self._accounts) if account.owed}

    def copy(self) -> Coordinator:
        """Return a coordinator that knows the same and goes on by itself."""
        same = Coordinator(0, self.left)
        same._accounts = [replace(account) for account in self._accounts]
        return same

    def give_back(self, visits: int) -> None:
        """Take back visits that a shard could not use."""
        self.left += visits
