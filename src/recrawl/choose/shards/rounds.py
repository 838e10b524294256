"""The rounds of a cycle over shards: what one shard does in them, and who settles them.

`ShardSide` is one shard's side of a round, the same everywhere: observe what was found, count totals, offer pages, take
those at the threshold, give back what it cannot use. `rounds` settles the rounds of shards in one process; `one_shard`
is a policy's ordinary cycle. `take_part` is the cycle of a shard whose rounds are settled elsewhere, behind `Rounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.shards.coordinator import Coordinator
from recrawl.choose.shards.offers import Cut, Offer
from recrawl.choose.shards.splitting import NO_TOTALS, Ask, ShardPlan, Splittable, Stage
from recrawl.columns import Floats
from recrawl.model import NOTHING, Outcomes, Picks

_NO_PICKS = Picks(np.zeros(0, np.int64), np.zeros(0), "nothing")


class ShardSide:
    """One shard's side of a cycle."""

    def __init__(self, plan: ShardPlan) -> None:
        self._plan = plan
        self._unseen = NOTHING
        self._awaits = 1.0

    def observe(self) -> None:
        """Learn what the visits since the last round have found."""
        if len(self._unseen):
            self._plan.observe(self._unseen)
            self._unseen = NOTHING

    def totals(self, stage: str) -> Floats:
        """Return this shard's part of the totals of a stage."""
        return self._plan.totals(stage)

    def offer(self, ask: Ask) -> Offer:
        """Return what this shard offers in a round."""
        self._awaits = ask.awaits
        return self._plan.offer(ask)

    def take(self, cut: Cut) -> tuple[Picks, int]:
        """Return the pages to visit, and the visits of the quota that this shard cannot use."""
        picks = self._plan.take_at(*cut)
        return replace(picks, awaits=min(picks.awaits, self._awaits)), cut.quota - len(picks)

    def saw(self, seen: Outcomes) -> None:
        """Keep outcomes until the next round in which this shard takes part."""
        self._unseen += seen


class Rounds(Protocol):
    """Whoever settles the rounds of a cycle, as one shard sees it."""

    def next(self, side: ShardSide) -> Ask | None:
        """Wait for the next round in which this shard takes part; None at the end of the cycle."""
        ...

    def settle(self, offer: Offer) -> Cut:
        """Offer pages, and return which of them may be taken."""
        ...

    def give_back(self, visits: int) -> None:
        """Return visits that this shard did not use."""
        ...


def take_part(plan: ShardPlan, rounds: Rounds) -> Choice:
    """The cycle of one shard; visits that were not made after all go back to the budget of all shards.

    Each batch waits for all of its outcomes: whoever resumes the cycle elsewhere must get them in the same order.
    """
    side = ShardSide(plan)
    while True:
        side.observe()
        ask = rounds.next(side)
        if ask is None:
            return
        picks, unused = side.take(rounds.settle(side.offer(ask)))
        rounds.give_back(unused)
        if len(picks):
            seen = yield replace(picks, awaits=1.0)
            side.saw(seen)
            rounds.give_back(int(np.count_nonzero(~seen.visited)))


def rounds(
    policy: Splittable, plans: Sequence[ShardPlan], budget: int, late: Callable[[int], bool] = lambda _: False
) -> Generator[list[Picks], list[Outcomes], None]:
    """Run a cycle over shards: yield the picks of each shard, receive their outcomes.

    Visits that were not made after all are given to other pages, in the last stage if need be.
    `late` says of a shard whether its visits are still under way when a round begins: it takes part in a later one.
    At the end, shards that missed rounds take what was kept for them.
    """
    coordinator = Coordinator(len(plans), budget)
    sides = [ShardSide(plan) for plan in plans]
    ask = Ask("", 0, budget, NO_TOTALS)

    def one(present: Sequence[int]) -> Generator[list[Picks], list[Outcomes], int]:
        """Make a round; returns the visits that were given."""
        refused = 0
        offers = {shard: sides[shard].offer(ask) for shard in present}
        cuts = coordinator.settle(ask.stage, ask.visits, offers)
        taken = [side.take(cuts[shard]) if shard in cuts else (_NO_PICKS, 0) for shard, side in enumerate(sides)]
        coordinator.give_back(sum(unused for _, unused in taken))
        if any(len(picks) for picks, _ in taken):
            for side, seen in zip(sides, (yield [picks for picks, _ in taken]), strict=True):
                side.saw(seen)
                refused += int(np.count_nonzero(~seen.visited))
        coordinator.give_back(refused)
        return sum(cut.quota for cut in cuts.values())

    def asked(stage: Stage, present: Sequence[int]) -> Ask:
        for shard in present:
            sides[shard].observe()
        totals = np.sum([side.totals(stage.name) for side in sides], axis=0) if stage.pooled else NO_TOTALS
        return stage.ask(coordinator.left, totals)

    given, stage = 0, Stage("", 0)
    for stage in policy.stages(budget):
        if coordinator.left <= 0:
            break
        present = [shard for shard in range(len(plans)) if not late(shard)]
        ask = asked(stage, present)
        given = yield from one(present)
    while coordinator.left > 0 and given and not coordinator.owed():  # for other pages than those that were refused
        ask = asked(stage, range(len(plans)))
        given = yield from one(range(len(plans)))
    owed = coordinator.owed()
    if owed:
        for shard in owed:
            sides[shard].observe()
        visits = sum(owed.values())
        ask = ask._replace(visits=visits, left=visits, awaits=1.0)
        yield from one(list(owed))


def one_shard(policy: Splittable, book: Book, budget: int, rng: np.random.Generator) -> Choice:
    """The cycle of a policy whose only shard is the whole book."""
    shards = rounds(policy, [policy.begin(book, budget, rng)], budget)
    try:
        picks = next(shards)
        while True:
            picks = shards.send([(yield picks[0])])
    except StopIteration:
        return
