"""The interface of policies that can be split into shards, and the rounds of a cycle.

A policy that can be split says in which `stages` a cycle proceeds, and `begin`s a `ShardPlan` for each shard. In every
stage each plan offers its candidates, the coordinator finds the threshold, and each plan takes its pages at it; before
the next it observes what the visits found. `rounds` does this with plans in one process; `one_shard` is a policy's
ordinary cycle.

What belongs to all pages and not to a shard, such as their number, is in the *totals* of a stage: columns of numbers
that each plan counts for its own pages, and that are added up over the shards.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice, Policy
from recrawl.choose.shards.coordinator import Coordinator
from recrawl.choose.shards.offers import Offer
from recrawl.columns import Floats
from recrawl.model import NOTHING, Outcomes, Picks

CROSSING = frozenset({"links", "clusters", "words"})
"""The parts of a book that a shard lacks: they belong to pages of several sites together."""
_NO_TOTALS = np.zeros(0)
_NO_PICKS = Picks(np.zeros(0, np.int64), np.zeros(0), "nothing")


class Stage(NamedTuple):
    """One round of a cycle."""

    name: str
    visits: int
    """Maximum visits of all shards together."""
    pooled: bool = False
    """Whether the plans need totals for it."""
    awaits: float = 1.0
    """Share of its outcomes that the next stage needs (see `Picks.awaits`)."""


class Ask(NamedTuple):
    """What the plans of all shards are asked for in one stage."""

    stage: str
    visits: int
    """Visits of this stage, of all shards together."""
    left: int
    """Visits that are left of the cycle's budget, those of this stage included."""
    totals: Floats
    """The sums of the plans' totals, if the stage is pooled."""


class ShardPlan(Protocol):
    """The state of a cycle on one shard."""

    def totals(self, stage: str) -> Floats:
        """Return this shard's part of the totals of a stage."""
        ...

    def offer(self, ask: Ask) -> Offer:
        """Return a histogram of the worth of the pages that could be visited in this stage."""
        ...

    def take_at(self, threshold: int, quota: int) -> Picks:
        """Return the best of the pages offered last, at most `quota`, none below the threshold."""
        ...

    def observe(self, seen: Outcomes) -> None:
        """Update with outcomes of pages taken: those taken last, or some of them and late ones of earlier stages."""
        ...


@runtime_checkable
class Splittable(Protocol):
    """A policy that can be split."""

    def stages(self, budget: int) -> Iterable[Stage]:
        """Yield the stages of a cycle in order."""
        ...

    def begin(self, book: Book, budget: int, rng: np.random.Generator) -> ShardPlan:
        """Return the plan of a shard; the budget is that of all shards."""
        ...


def why_one_shard(policy: Policy) -> str:
    """Return why a policy cannot be split, a clause that completes "because ..."; empty if it can.

    >>> from recrawl.choose import make_policy
    >>> why_one_shard(make_policy("shock")), why_one_shard(make_policy("greedy"))
    ('', 'it divides the budget among all sites at once')
    """
    given: str = getattr(policy, "one_shard", "")
    if given or isinstance(policy, Splittable):
        crossing = sorted(policy.needs & CROSSING)
        return given or (f"it needs {' and '.join(crossing)}, which cross shards" if crossing else "")
    return "it has no methods stages and begin"


def rounds(
    policy: Splittable, plans: Sequence[ShardPlan], budget: int, late: Callable[[int], bool] = lambda _: False
) -> Generator[list[Picks], list[Outcomes], None]:
    """Run a cycle over shards: yield the picks of each shard, receive their outcomes.

    `late` says of a shard whether its visits are still under way when a round begins: it takes part in a later one.
    At the end, shards that missed rounds take what was kept for them.
    """
    coordinator = Coordinator(len(plans), budget)
    unseen: dict[int, Outcomes] = {}
    ask = Ask("", 0, budget, _NO_TOTALS)

    def one(present: Sequence[int], awaits: float = 1.0) -> Generator[list[Picks], list[Outcomes], None]:
        offers = {shard: plans[shard].offer(ask) for shard in present}
        cuts = coordinator.settle(ask.stage, ask.visits, offers)
        picks = [plan.take_at(*cuts[shard]) if shard in cuts else _NO_PICKS for shard, plan in enumerate(plans)]
        taken = sum(map(len, picks))
        coordinator.give_back(sum(cut.quota for cut in cuts.values()) - taken)
        if taken:
            seen = yield [replace(some, awaits=awaits) for some in picks]
            unseen.update({shard: unseen.get(shard, NOTHING) + some for shard, some in enumerate(seen) if len(some)})

    for stage in policy.stages(budget):
        if coordinator.left <= 0:
            break
        present = [shard for shard in range(len(plans)) if not late(shard)]
        _observe(plans, present, unseen)
        totals = np.sum([plan.totals(stage.name) for plan in plans], axis=0) if stage.pooled else _NO_TOTALS
        ask = Ask(stage.name, min(stage.visits, coordinator.left), coordinator.left, totals)
        yield from one(present, stage.awaits)
    owed = coordinator.owed()
    if owed:
        _observe(plans, list(owed), unseen)
        ask = ask._replace(visits=sum(owed.values()), left=sum(owed.values()))
        yield from one(list(owed))


def _observe(plans: Sequence[ShardPlan], present: Sequence[int], unseen: dict[int, Outcomes]) -> None:
    """Tell plans what the visits of their last round found."""
    for shard in present:
        if shard in unseen:
            plans[shard].observe(unseen.pop(shard))


def one_shard(policy: Splittable, book: Book, budget: int, rng: np.random.Generator) -> Choice:
    """The cycle of a policy whose only shard is the whole book."""
    shards = rounds(policy, [policy.begin(book, budget, rng)], budget)
    try:
        picks = next(shards)
        while True:
            picks = shards.send([(yield picks[0])])
    except StopIteration:
        return
