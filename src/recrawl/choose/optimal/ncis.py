"""Signals of change, some missing and some false: GREEDY-NCIS."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.optimal.rate_base import RatePolicy
from recrawl.learn.hints.noisy_signals import worth
from recrawl.learn.hints.trust import Signals
from recrawl.learn.rates.gaps import DAY, Floats
from recrawl.model import Outcomes


class Ncis(RatePolicy):
    """Visits what adds most to freshness, given what sitemaps, feeds and pushes have said since the last visit.

    How many changes a source tells of, and how often it cries wolf, is learned for every site and kind of source from
    what visits find. A signal of a source that proved right brings its page to the front, and a page of which such a
    source is silent can wait; a source that proved wrong is not heeded. Without hints this is `optimal-freshness` with
    each page's expected rate.

    Parameters
    ----------
    estimator
        Where rates come from: `gamma` (pages learn from their directory and site), or `naive`, `regular`, `irregular`,
        `moment`, `averaged`, each page for itself.

    Example
    -------
    >>> from recrawl.book import Hints
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> from recrawl.loop import drive
    >>> book = Book.blank(3, now=864000.0)
    >>> book.visits[:], book.last_try[:], book.last_visit[:] = 1, 0.0, 0.0
    >>> told = np.array([[0, 0, 1]], np.int16)
    >>> book.hints = Hints(("lastmod",), told, np.zeros((1, 3)), np.full((1, 3), book.now))
    >>> [seen.pages.tolist() for seen in drive(Ncis(), Still(), book, budget=1, seed=1)]
    [[2]]

    Source: Busa-Fekete et al. 2025, GREEDY-NCIS (noisy change-indicating signals).
    """

    name: ClassVar[str] = "ncis"
    source: ClassVar[str] = "Busa-Fekete et al. 2025 (WWW): GREEDY-NCIS; trust per site and kind is recrawl's own"
    needs: ClassVar[frozenset[str]] = frozenset({"folders", "hints"})
    reason: ClassVar[str] = "a visit adds most to freshness, by its rate of change and what its site has told"

    def worth(self, book: Book, waited: Floats, budget: int) -> Floats:  # noqa: ARG002
        """V of every page, times its weight, for its cost."""
        pages, rate = np.arange(len(book)), self.rates(book)
        signals = Signals.of(book)
        chance = signals.chance(pages, -np.expm1(-rate * waited))
        missed, false = signals.sources(pages)
        x = -np.log1p(-np.minimum(chance, 1 - 1e-15))
        value: Floats = worth(x, rate, missed * rate, false) * book.weight / book.cost
        return value

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Add to the tally; and to what is believed of the sources."""
        if book.hints is not None:
            told = seen.answered & (book.visits[seen.pages] > 0)
            pages = seen.pages[told]
            waited = np.maximum(book.now - book.last_visit[pages], 0.0) / DAY
            signals = Signals.of(book)
            signals.chance(pages, -np.expm1(-self.rates(book)[pages] * waited))
            signals.observe(pages, seen.changed[told])
            signals.keep(book)
        super().learn(book, seen, at)
