"""Policy `ncis`: optimal freshness with noisy change signals (GREEDY-NCIS)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.optimal.rate_base import RatePolicy
from recrawl.columns import DAY, Floats
from recrawl.learn.hints.noisy_signals import signal_index
from recrawl.learn.hints.trust import Signals
from recrawl.model import Outcomes


class Ncis(RatePolicy):
    """Visits the pages whose visit adds most to freshness, given the signals of sitemaps, feeds and pushes.

    The recall and the false alarm rate of every site and kind of source are learned from visits. A signal of a reliable
    source moves its page to the front, and a page for which such a source is silent can wait; an unreliable source has
    no effect. Without hints this is `optimal-freshness` with each page's expected rate.

    Parameters
    ----------
    estimator
        The source of change rates: `gamma` (pages share information with their directory and site), or `naive`,
        `regular`, `irregular`, `moment`, `averaged` from each page alone.

    Example
    -------
    >>> from recrawl.book import Hints
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=864000.0)
    >>> book.visits[:], book.last_visit[:] = 1, 0.0
    >>> signals = np.array([[0, 0, 1]], np.int16)
    >>> book.hints = Hints(("lastmod",), signals, np.zeros((1, 3)), np.full((1, 3), book.now))
    >>> batches(Ncis(), book, budget=1)
    [[2]]

    Source: Busa-Fekete et al. 2025, GREEDY-NCIS (noisy change-indicating signals).
    """

    name: ClassVar[str] = "ncis"
    source: ClassVar[str] = "Busa-Fekete et al. 2025 (WWW): GREEDY-NCIS; trust per site and kind is recrawl's own"
    needs: ClassVar[frozenset[str]] = frozenset({"folders", "hints"})
    reason: ClassVar[str] = "a visit to it added most to expected freshness, by its change rate and its site's signals"

    def index(self, book: Book, waited: Floats, budget: int) -> Floats:  # noqa: ARG002
        """Return V of every page, times its weight, divided by its cost."""
        pages, rate = np.arange(len(book)), self.rates(book)
        signals = Signals.of(book)
        probability = signals.predict(pages, -np.expm1(-rate * waited))
        missed, false = signals.sources(pages)
        x = -np.log1p(-np.minimum(probability, 1 - 1e-15))
        value: Floats = signal_index(x, rate, missed * rate, false) * book.weight / book.cost
        return value

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Update the trust in the sources, and add the visits to the stored sums."""
        if book.hints is not None:
            compared = seen.answered & (book.visits[seen.pages] > 0)
            pages = seen.pages[compared]
            waited = np.maximum(book.now - book.last_visit[pages], 0.0) / DAY
            signals = Signals.of(book)
            signals.predict(pages, -np.expm1(-self.rates(book)[pages] * waited))
            signals.observe(pages, seen.changed[compared])
            signals.keep(book)
        super().learn(book, seen, at)
