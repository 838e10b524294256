"""The coordinator of one cycle: asks the shards that have arrived, and divides the visits among those that offer.

No round waits for a shard that is late: a round is asked when all shards with a worker have arrived, or some time after
the first one has. A stage that needs totals of all pages waits longer, and for shards without a worker too. After the
last stage, visits that shards give back are divided again, until nobody can use them; the end waits for all shards,
which may give back more, and what is left then is divided by their pages. Before the first stage, the shards add up
what their sites claim. What the coordinator knows follows from the journal, so that one that is started again goes on
with the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import cast

import numpy as np

from recrawl.choose import make_policy
from recrawl.choose.shards.offers import Coordinator, Offer
from recrawl.choose.shards.rounds import NO_TOTALS, Splittable, Stage
from recrawl.cluster.shard_rounds import CLAIMS, END, Journal, stage_of
from recrawl.columns import Floats
from recrawl.record.store.postgres.cluster.rounds import Arrival, RoundRow
from recrawl.record.store.postgres.cluster.runs import RunRow

LATE = 30.0
"""Seconds after which a round goes on without shards that have not arrived or not offered."""
POOLED = 4
"""A stage that needs the totals of all shards waits so many times as long."""


_FRUITLESS = 3
"""Rounds after the last stage, one after the other, of which all visits come back, that end the cycle."""


class CycleCoordinator:
    """The rounds of one cycle."""

    def __init__(
        self,
        journal: Journal,
        run: RunRow,
        shards: int,
        *,
        late: float = LATE,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal, self._run, self._shards = journal, run, shards
        self._late, self._timer = late, timer
        self._visits = run.visits or 0
        self._coordinator = Coordinator(shards, self._visits)
        self._stages: list[Stage] = []
        self._counted: dict[int, int] = {}
        """Visits given back by each shard that were counted."""
        self._claimed: dict[int, int] = {}
        """Visits that the sites of each shard claimed when it arrived last."""
        self._asked: RoundRow | None = None
        """The round that is not settled."""
        self._next = 0
        self._given = 0
        """Visits of the last round that was settled."""
        self._before, self._fruitless = self._visits + 1, 0
        """What was left at the last round, and the rounds since then that have used none of it."""
        self._since: float | None = None
        """When this process first saw a shard wait in the present step."""
        self.ended = False
        for row in journal.rounds(run.id):
            self._replay(row)

    def step(self, live: set[int], done: set[int]) -> bool:
        """Go on if that is possible; whether it was. `live` shards have a worker, `done` ones need no more rounds."""
        if self.ended:
            return False
        arrivals = self._journal.arrivals(self._run.id, self._asked.round if self._asked else self._next)
        if self._asked is not None:
            return self._settle(self._asked, arrivals, live)
        return self._ask(arrivals, live, done)

    def _ask(self, arrivals: Mapping[int, Arrival], live: set[int], done: set[int]) -> bool:
        if not arrivals:
            return False
        returned = sum(it.returned - self._counted.get(shard, 0) for shard, it in arrivals.items())
        if not self._next:
            self._plan(self._visits + returned)  # without the visits that shards make without asking
        stage = stage_of(self._stages, self._next)
        everyone = set(range(self._shards)) if stage.pooled and stage not in CLAIMS else live
        if not self._ready(arrivals.keys(), everyone - done, self._late * (POOLED if stage.pooled else 1)):
            return False
        row = self._row(stage, self._coordinator.left + returned, returned, arrivals)
        if row is None:
            return False
        if row.stage == END and not set(range(self._shards)) - done <= arrivals.keys():
            return False  # nothing is left to do until they arrive
        if self._journal.ask(self._run.id, row):
            self._asking(row, arrivals)
        return True

    def _row(self, stage: Stage, left: int, returned: int, arrivals: Mapping[int, Arrival]) -> RoundRow | None:
        """The next round; None while those that were promised visits have not arrived."""
        present, columns = (
            sorted(arrivals),
            {shard: np.frombuffer(it.totals, np.float64) for shard, it in arrivals.items()},
        )
        if stage in CLAIMS:
            totals = _sum(columns.values())
            return RoundRow(self._next, stage.name, 0, left, returned, totals.tobytes(), present, settled=False)
        totals = _sum(column[:-1] for column in columns.values()) if stage.pooled else NO_TOTALS
        claimed = sum((self._claimed | {shard: int(column[-1]) for shard, column in columns.items()}).values())
        owed = self._coordinator.owed()
        over = self._next >= len(self._stages) or left <= 0
        again = over and left > 0 and self._given > 0 and self._fruitless < _FRUITLESS
        if over and owed:
            visits = sum(visits for shard, visits in owed.items() if shard in arrivals)
            if not visits:
                return None
            stage = stage_of(self._stages, self._next - 1)
            ask = stage.ask(visits, totals)._replace(visits=visits)
        else:
            ask = stage.ask(left, totals)
        name = END if over and not owed and not again else stage.name
        totals = np.append(totals, claimed)
        return RoundRow(self._next, name, ask.visits, ask.left, returned, totals.tobytes(), present, settled=False)

    def _settle(self, row: RoundRow, arrivals: Mapping[int, Arrival], live: set[int]) -> bool:
        offered = {shard: arrivals[shard].offer for shard in row.present if arrivals[shard].offer is not None}
        if not self._ready(offered.keys(), set(row.present) & live, self._late):
            return False
        before = self._coordinator.copy()
        cuts = self._coordinator.settle(row.stage, row.visits, _decoded(offered))
        if not self._journal.settle(self._run.id, row.round, offered, cuts):
            self._coordinator = before
            return False
        self._given = sum(cut.quota for cut in cuts.values())
        self._asked, self._since = None, None
        return True

    def _ready(self, here: Iterable[int], awaited: set[int], seconds: float) -> bool:
        """Whether all awaited shards are here, or the time is up."""
        if self._since is None:
            self._since = self._timer()
        return awaited <= set(here) or self._timer() - self._since >= seconds

    def _plan(self, budget: int) -> None:
        """Divide the budget into stages."""
        policy = cast(Splittable, make_policy(self._run.policy))
        self._stages = [*CLAIMS, *policy.stages(max(1, budget))]

    def _asking(self, row: RoundRow, arrivals: Mapping[int, Arrival]) -> None:
        self._coordinator.give_back(row.returned)
        self._fruitless = 0 if self._coordinator.left < self._before else self._fruitless + 1
        self._before = self._coordinator.left
        self._counted.update({shard: arrivals[shard].returned for shard in row.present})
        self._asked, self._next, self._since = row, row.round + 1, None
        if row.round < len(CLAIMS):
            self._asked, self._fruitless = None, 0
            return
        self._claimed |= {shard: int(np.frombuffer(arrivals[shard].totals)[-1]) for shard in row.present}
        if row.stage == END:
            self._asked, self.ended = None, True

    def _replay(self, row: RoundRow) -> None:
        """Go through a round of the journal again."""
        arrivals = self._journal.arrivals(self._run.id, row.round)
        if not row.round:
            self._plan(self._visits + row.returned)
        self._asking(row, arrivals)
        if row.settled:
            took = [shard for shard in row.present if self._journal.cut(self._run.id, row.round, shard) is not None]
            offered = _decoded({shard: arrivals[shard].offer for shard in took})
            cuts = self._coordinator.settle(row.stage, row.visits, offered)
            self._given, self._asked = sum(cut.quota for cut in cuts.values()), None


def _decoded(offers: Mapping[int, bytes | None]) -> dict[int, Offer]:
    return {shard: Offer.decoded(offer) for shard, offer in offers.items() if offer is not None}


def _sum(columns: Iterable[Floats]) -> Floats:
    """The totals of all shards that have arrived."""
    parts = [column for column in columns if len(column)]
    return np.sum(parts, axis=0) if parts else NO_TOTALS
