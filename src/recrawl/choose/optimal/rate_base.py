"""Base classes of policies that use each page's change rate.

Such a policy keeps a `GapSums` of its visits; any estimator computes change rates from it, again in every cycle. Pages
that were never downloaded come first. A failed visit counts as a try; otherwise a dead page would be chosen in every
cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.shards.offers import RankedPages
from recrawl.choose.shards.rounds import RankedPolicy
from recrawl.choose.top_k import top_k
from recrawl.columns import DAY, Floats
from recrawl.errors import UsageError
from recrawl.learn.rates import ESTIMATORS, FIRST_RATE, GapSums, Posterior, estimate, nested
from recrawl.learn.structure.directories import directory_groups
from recrawl.learn.value import expected_index, index, scalar_if_constant
from recrawl.model import Outcomes

_MIN_RATE = 1e-6
"""The lowest change rate, in changes per day."""


class RatePolicy(RankedPolicy):
    """Visits the pages with the highest `index`, which a subclass computes from change rates."""

    rankings_per_cycle: ClassVar[int] = 2
    name: ClassVar[str]
    reason: ClassVar[str]

    def __init__(self, *, estimator: str = "gamma") -> None:
        if estimator not in ESTIMATORS:
            raise UsageError(f"{self.name}'s estimator must be one of {', '.join(ESTIMATORS)}, not '{estimator}'")
        self.estimator = estimator

    def index(self, book: Book, waited: Floats, budget: int) -> Floats:
        """Return the index of each page, given the days since its last visit; the highest are visited."""
        raise NotImplementedError

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:
        """Yield pages never downloaded, by weight; then the others by index."""
        new = np.flatnonzero(book.known & (book.visits == 0) & (book.last_try == -np.inf))
        new = new[top_k(-book.weight[new], budget)]
        yield RankedPages(new, book.weight[new], "it was never downloaded")
        pages = np.flatnonzero(book.known & ((book.visits > 0) | (book.last_try > -np.inf)))
        if not len(pages):
            yield RankedPages.none(self.reason)
            return
        waited = np.maximum(book.now - np.maximum(book.last_visit, book.last_try), 0.0) / DAY
        score = self.index(book, np.where(np.isfinite(waited), waited, 0.0), budget)[pages]
        luck = rng.random(len(pages))
        yield RankedPages(pages, score, self.reason, order=lambda count: top_k(-score, count, tie=luck))

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Add the visits of a cycle to the stored sums."""
        sums = GapSums.kept(book, self.name)
        sums.add(book, seen, at)
        sums.keep(book, self.name)

    def posterior(self, book: Book) -> Posterior:
        """Return nested Gamma posteriors of the change rates: all pages, site, directory, page."""
        levels = [book.site.astype(np.int64), directory_groups(book)]
        return nested(GapSums.kept(book, self.name).gaps(), levels)

    def rates(self, book: Book) -> Floats:
        """Return the changes per day of every page, above 0; a page without an estimate has the mean of the others."""
        if self.estimator == "gamma":
            return np.maximum(self.posterior(book).rate, _MIN_RATE)
        rate = estimate(self.estimator, GapSums.kept(book, self.name).gaps())
        known = ~np.isnan(rate)
        if not known.any():
            return np.full(len(book), FIRST_RATE)
        return np.maximum(np.where(known, rate, rate[known].mean()), _MIN_RATE)


class IndexPolicy(RatePolicy):
    """Visits the pages with the highest index for one objective (see `recrawl.learn.value`)."""

    objective: ClassVar[str]

    def index(self, book: Book, waited: Floats, budget: int) -> Floats:  # noqa: ARG002
        """Average over the posterior with the estimator `gamma`; use the estimated rate with the others."""
        if self.estimator == "gamma":
            rate = self.posterior(book)
            return expected_index(self.objective, rate.a, rate.b, waited, weight=book.weight, cost=book.cost)
        rates = self.rates(book)
        probability = -np.expm1(-rates * waited)
        weight, cost = scalar_if_constant(book.weight), scalar_if_constant(book.cost)
        return index(self.objective, probability, rates, weight=weight, cost=cost)
