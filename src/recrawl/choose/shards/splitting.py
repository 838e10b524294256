"""The interface of policies that can be split into shards.

A policy that can be split says in which `stages` a cycle proceeds, and `begin`s a `ShardPlan` for each shard. In every
stage each plan offers its candidates, the coordinator finds the threshold, and each plan takes its pages at it; before
the next it observes what the visits found (see `recrawl.choose.shards.rounds`).

What belongs to all pages and not to a shard, such as their number, is in the *totals* of a stage: columns of numbers
that each plan counts for its own pages, and that are added up over the shards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Policy
from recrawl.choose.shards.offers import Offer
from recrawl.columns import Floats
from recrawl.model import Outcomes, Picks

CROSSING = frozenset({"links", "clusters", "words"})
"""The parts of a book that a shard lacks: they belong to pages of several sites together."""
NO_TOTALS = np.zeros(0)


class Ask(NamedTuple):
    """What the plans of all shards are asked for in one stage."""

    stage: str
    visits: int
    """Visits of this stage, of all shards together."""
    left: int
    """Visits that are left of the cycle's budget, those of this stage included."""
    totals: Floats
    """The sums of the plans' totals, if the stage is pooled."""
    awaits: float = 1.0
    """Share of its outcomes that the next stage needs."""


class Stage(NamedTuple):
    """One round of a cycle."""

    name: str
    visits: int
    """Maximum visits of all shards together."""
    pooled: bool = False
    """Whether the plans need totals for it."""
    awaits: float = 1.0
    """Share of its outcomes that the next stage needs (see `Picks.awaits`)."""

    def ask(self, left: int, totals: Floats) -> Ask:
        """Return what to ask for with so many visits left."""
        return Ask(self.name, min(self.visits, left), left, totals, self.awaits)


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
