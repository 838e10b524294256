"""The frame of policies that go by each page's rate of change: a tally of visits, rates from it, the pages due most.

What one of them keeps of visits is a `GapSums`; from it any estimator makes rates, in every cycle anew. A page that was
never downloaded comes before all others. A failed visit counts as a try, or a dead page would be chosen in every cycle.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.top_k import top_k
from recrawl.errors import UsageError
from recrawl.learn.rates.comparison import ESTIMATORS, estimate
from recrawl.learn.rates.gaps import DAY, Floats, GapSums
from recrawl.learn.rates.posteriors import FIRST_RATE, Posterior, nested
from recrawl.learn.shocks.directory_groups import directories
from recrawl.learn.value.objectives import believed_index, index, level
from recrawl.model import Outcomes, Picks

_FEWEST = 1e-6
"""Changes a day: no page is taken to change less, whatever its estimate says."""


class RatePolicy:
    """Chooses by rates of change; what a visit is worth is said by `worth`."""

    name: ClassVar[str]
    reason: ClassVar[str]

    def __init__(self, *, estimator: str = "gamma") -> None:
        if estimator not in ESTIMATORS:
            raise UsageError(f"{self.name}'s estimator is one of {', '.join(ESTIMATORS)}, not '{estimator}'")
        self.estimator = estimator

    def worth(self, book: Book, waited: Floats, budget: int) -> Floats:
        """What a visit to each page is worth, when it has waited so many days."""
        raise NotImplementedError

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Pages never downloaded, those that matter most first; then one batch of what is worth most."""
        new = np.flatnonzero(book.known & (book.visits == 0) & (book.last_try == -np.inf))
        new = new[top_k(-book.weight[new], budget)]
        if len(new):
            yield Picks(new, book.weight[new], "was never downloaded")
        left = budget - len(new)
        pages = np.flatnonzero(book.known & ((book.visits > 0) | (book.last_try > -np.inf)))
        if left <= 0 or not len(pages):
            return
        waited = np.maximum(book.now - np.maximum(book.last_visit, book.last_try), 0.0) / DAY
        score = self.worth(book, np.where(np.isfinite(waited), waited, 0.0), budget)[pages]
        chosen = top_k(-score, left, tie=rng.random(len(pages)))
        yield Picks(pages[chosen], score[chosen], self.reason)

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Add a cycle's visits to the tally."""
        tally = GapSums.kept(book, self.name)
        tally.add(book, seen, at)
        tally.keep(book, self.name)

    def belief(self, book: Book) -> Posterior:
        """Nested Gamma posteriors: all pages, site, directory, page."""
        return nested(GapSums.kept(book, self.name).gaps(), _levels(book))

    def rates(self, book: Book) -> Floats:
        """Changes a day of every page, always over zero; a page that says nothing has the mean of the others."""
        if self.estimator == "gamma":
            return np.maximum(self.belief(book).rate, _FEWEST)
        rate = estimate(self.estimator, GapSums.kept(book, self.name).gaps())
        known = ~np.isnan(rate)
        if not known.any():
            return np.full(len(book), FIRST_RATE)
        return np.maximum(np.where(known, rate, rate[known].mean()), _FEWEST)


class ByIndex(RatePolicy):
    """Visits what is worth most for one objective (see `recrawl.learn.value.objectives`)."""

    objective: ClassVar[str]

    def worth(self, book: Book, waited: Floats, budget: int) -> Floats:  # noqa: ARG002
        """By the whole belief where there is one, by its rate where there is only that."""
        if self.estimator == "gamma":
            belief = self.belief(book)
            return believed_index(self.objective, belief.a, belief.b, waited, weight=book.weight, cost=book.cost)
        rate = self.rates(book)
        chance = -np.expm1(-rate * waited)
        return index(self.objective, chance, rate, weight=level(book.weight), cost=level(book.cost))


def _levels(book: Book) -> list[NDArray[np.int64]]:
    return [book.site.astype(np.int64), directories(book)]
