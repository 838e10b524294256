"""Page by page from estimated change rates, without any sampling of sites."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.top_k import top_k
from recrawl.errors import UsageError
from recrawl.learn.rates.estimators import bias_reduced
from recrawl.model import Outcomes, Picks

Allocation = Literal["uniform", "proportional", "optimal"]
DAY = 86400.0
FIRST = 1e12
"""The score of a page that was never downloaded: before all others."""


class ChangeFrequency:
    """Every page at a frequency that follows from its own estimated change rate (spec P8).

    The rate λ comes from the page's visits with Cho's bias-reduced estimator. A page that never changed so far is
    taken to have had half a change in the time it was watched, or it would never be looked at again; a page with no
    comparison yet has the mean rate of the others. Pages never downloaded come first.

    Parameters
    ----------
    allocation
        `uniform`: all pages equally often, whatever their rates. `proportional`: as often as they change. `optimal`: as
        keeps the most pages fresh, which gives little to pages that change faster than they could ever be visited.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(3, now=20 * DAY)
    >>> book.visits[:], book.changes[:], book.last_try[:], book.last_visit[:] = 10, [1, 9, 3], 18 * DAY, 18 * DAY
    >>> [seen.pages.tolist() for seen in drive(ChangeFrequency(), Still(), book, budget=3, seed=1)]
    [[1, 2, 0]]

    Source: Al-Qaaideh 2009 §1.3.2, after Cho and Garcia-Molina 2000 and 2003.
    """

    name: ClassVar[str] = "change-frequency"
    source: ClassVar[str] = "Al-Qaaideh 2009 §1.3.2, Cho and Garcia-Molina 2000, 2003 (spec P8)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, allocation: Allocation = "proportional") -> None:
        if allocation not in ("uniform", "proportional", "optimal"):
            raise UsageError(f"change-frequency's allocation is uniform, proportional or optimal, not '{allocation}'")
        self.allocation = allocation

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """One batch."""
        pages = np.flatnonzero(book.known)
        # A failed visit counts as a try: else a dead page would be chosen again in every cycle.
        tried = book.last_try[pages]
        new = (book.visits[pages] == 0) & (tried == -np.inf)
        waited = (book.now - np.maximum(tried, np.minimum(book.found[pages], book.now))) / DAY
        score = np.where(new, FIRST, self._owed(page_rates(book)[pages], np.maximum(waited, 0.0)))
        chosen = top_k(-score, budget, tie=rng.random(len(pages)))
        if len(chosen):
            yield Picks(pages[chosen], score[chosen], f"{self.allocation} share of visits by its own change rate")

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Keep when a page was first downloaded: its rate is counted from there."""
        since = book.kept(f"{self.name}.since", np.nan)
        first = seen.answered & (book.visits[seen.pages] == 0)
        since[seen.pages[first]] = at[first]
        book.memory[f"{self.name}.since"] = since

    def _owed(self, rate: NDArray[np.float64], waited: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much a visit is due. Visiting what is due most in each cycle gives pages their frequencies in the end.

        For `optimal` it is what a visit now adds to freshness over the price of one, (1 - (1 + u)·e^(-u)) / λ with
        u = λ·waited; it is at most 1/λ, so the fastest pages never reach the price.
        """
        if self.allocation == "uniform":
            return waited
        if self.allocation == "proportional":
            return rate * waited
        due = rate * waited
        return (1.0 - (1.0 + due) * np.exp(-due)) / rate


def page_rates(book: Book) -> NDArray[np.float64]:
    """Changes per day of every page, as far as its visits tell; always over zero."""
    compared = np.maximum(book.visits - 1, 0)
    changed = np.clip(book.changes - 1, 0, compared)
    since = book.kept(f"{ChangeFrequency.name}.since", np.nan)
    watched = (book.last_visit - np.where(np.isnan(since), book.found, since)) / DAY
    told = (compared > 0) & (watched > 0) & np.isfinite(watched)
    rate = np.ones(len(book))
    n, days = compared[told], watched[told]
    rate[told] = np.maximum(bias_reduced(changed[told], n, days / n), 0.5 / days)
    rate[~told] = rate[told].mean() if told.any() else 1.0
    return rate
