"""Outcomes that come late in a replay, as from servers with long queues in a live cycle.

Each site is a server that answers one page after another, at a pace of its own, drawn from 1 to `SLOWEST` time units.
A batch that does not await all of its outcomes (`Picks.awaits`) returns when all but the share `late` of it are there,
and those that it awaits, which their servers answer first; of these it waits for the slowest tenth no longer than twice
as long as for the others (`recrawl.loop.enough`).
The visits themselves take place when they are chosen: only what the policy knows is late.
"""

from __future__ import annotations

import numpy as np

from recrawl.choose.top_k import rank_within
from recrawl.columns import Floats, Int32s
from recrawl.loop import World, enough
from recrawl.model import NOTHING, Outcomes, Picks

SLOWEST = 4.0
"""The pace of the slowest server, in units of that of the fastest."""
_ROUNDING = 1e-6


class Late:
    """One cycle in a world whose servers have queues; `time` is how long it has taken, in units of the fastest pace."""

    def __init__(self, world: World, site: Int32s, late: float, seed: int) -> None:
        """`site` is the server of each page; the same seed gives the same paces in every cycle."""
        self._world = world
        self._site = site
        self._late = late
        sites = int(site.max(initial=-1)) + 1
        self._pace = np.exp(np.random.default_rng([seed, 11]).uniform(0.0, np.log(SLOWEST), sites))
        self._free = np.zeros(sites)
        """When each server has answered its queue."""
        self.queue = np.zeros(sites)
        """How long each server has worked."""
        self.time = 0.0
        self._waiting, self._ends = NOTHING, np.zeros(0)

    def visit(self, picks: Picks) -> Outcomes:
        """Visit all pages; return the outcomes that are there when enough of these are."""
        seen = self._world.visit(picks) if len(picks) else NOTHING
        ends = self._answer_times(seen, 0 if picks.awaits >= 1 else picks.needed)
        self._waiting, self._ends = self._waiting + seen, np.concatenate((self._ends, ends))
        if picks.awaits >= 1:
            self.time = max(self.time, float(self._ends.max(initial=0.0)))
        elif picks.awaits > 0 and len(ends):
            most = np.sort(ends)[: len(ends) - int(self._late * len(ends))]
            awaited = np.sort(ends[: picks.needed])
            if enough(picks) < len(awaited):
                awaited = np.minimum(awaited, 2 * awaited[enough(picks) - 1] - self.time)
            self.time = max(self.time, float(np.append(awaited, most).max(initial=0.0)))
        there = self._ends <= self.time
        out, self._waiting, self._ends = self._waiting.take(there), self._waiting.take(~there), self._ends[~there]
        return out

    def _answer_times(self, seen: Outcomes, first: int) -> Floats:
        """When each page is answered, behind those that wait at its server; the `first` ones go ahead of them."""
        site, waiting = self._site[seen.pages], self._site[self._waiting.pages]
        begin = np.maximum(self._free, self.time)
        begun = begin - self._pace * np.floor((begin - self.time) / self._pace)  # the end of what it answers now
        ahead = np.bincount(site[:first], minlength=len(begin))
        self._ends += np.where(self._ends > begun[waiting] + _ROUNDING, ahead[waiting] * self._pace[waiting], 0.0)
        ends: Floats = np.where(np.arange(len(site)) < first, begun[site], (begin + ahead * self._pace)[site])
        ends += (np.append(rank_within(site[:first]), rank_within(site[first:])) + 1) * self._pace[site]
        work = np.bincount(site, minlength=len(begin)) * self._pace
        self._free, self.queue = begin + work, self.queue + work
        return ends
