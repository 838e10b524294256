"""The base class of policies that rank pages by one number, and learn nothing within a cycle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.shards.offers import Offer, RankedPages
from recrawl.choose.shards.rounds import one_shard
from recrawl.choose.shards.splitting import Ask, Stage
from recrawl.columns import Floats
from recrawl.model import Outcomes, Picks


class RankedPolicy:
    """Visits the best pages of its rankings, one ranking after the other; it can be split."""

    rankings_per_cycle: ClassVar[int] = 1

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:
        """Yield `rankings_per_cycle` rankings, which may be empty."""
        raise NotImplementedError

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield the best pages of each ranking in turn, until the budget is spent."""
        return one_shard(self, book, budget, rng)

    def stages(self, budget: int) -> list[Stage]:
        """One stage per ranking."""
        return [Stage(str(number), budget, awaits=0.0) for number in range(self.rankings_per_cycle)]

    def begin(self, book: Book, budget: int, rng: np.random.Generator) -> RankedPlan:
        """Return the plan of a shard."""
        return RankedPlan(self.rankings(book, budget, rng))


class RankedPlan:
    """The rankings of one shard, each computed when its stage begins."""

    def __init__(self, rankings: Iterator[RankedPages]) -> None:
        self._rankings = enumerate(rankings)
        self._stage = ""
        self._offered = RankedPages.none("nothing was offered")
        self._taken = self._offered.pages

    def totals(self, stage: str) -> Floats:  # noqa: ARG002
        """Return nothing: a shard ranks its pages by themselves."""
        return np.zeros(0)

    def offer(self, ask: Ask) -> Offer:
        """Compute the ranking of a stage; the stages before it may have been missed.

        A stage that is asked for again, because visits have come back, gets what is left of its ranking.
        """
        if ask.stage == self._stage:
            self._offered = self._offered.without(self._taken)
        else:
            self._offered = next(ranking for number, ranking in self._rankings if str(number) == ask.stage)
        self._stage, self._taken = ask.stage, self._taken[:0]
        return self._offered.offer()

    def take_at(self, threshold: int, quota: int) -> Picks:
        """Return the best pages of the ranking."""
        picks = self._offered.take_at(threshold, quota)
        self._taken = picks.pages
        return picks

    def observe(self, seen: Outcomes) -> None:
        """Learn nothing within a cycle."""
