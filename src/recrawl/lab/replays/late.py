"""Outcomes that come late in a replay, as from servers with long queues in a live cycle.

Each site is a server that answers one page after another, at a pace of its own, drawn from 1 to `SLOWEST` time units.
A batch that does not await all of its outcomes (`Picks.awaits`) returns when all but the share `late` of it are there,
and as many as it awaits.
The visits themselves take place when they are chosen: only what the policy knows is late.
"""

from __future__ import annotations

import numpy as np

from recrawl.choose.top_k import rank_within
from recrawl.columns import Floats, Int32s
from recrawl.loop import World
from recrawl.model import NOTHING, Outcomes, Picks

SLOWEST = 4.0
"""The pace of the slowest server, in units of that of the fastest."""


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
        ends = self._answer_times(seen)
        self._waiting, self._ends = self._waiting + seen, np.concatenate((self._ends, ends))
        if picks.awaits >= 1:
            self.time = max(self.time, float(self._ends.max(initial=0.0)))
        elif picks.awaits > 0 and len(ends):
            needed = max(picks.needed, len(ends) - int(self._late * len(ends)))
            self.time = max(self.time, float(np.sort(ends)[needed - 1]) if needed else 0.0)
        there = self._ends <= self.time
        out, self._waiting, self._ends = self._waiting.take(there), self._waiting.take(~there), self._ends[~there]
        return out

    def _answer_times(self, seen: Outcomes) -> Floats:
        """When each page is answered, behind those that wait at its server."""
        site = self._site[seen.pages]
        begin = np.maximum(self._free, self.time)
        ends: Floats = begin[site] + (rank_within(site) + 1) * self._pace[site]
        np.maximum.at(self._free, site, ends)
        np.add.at(self.queue, site, self._pace[site])
        return ends
