"""Policy `ncis`: optimal freshness with noisy change signals (GREEDY-NCIS).

`signal_index` is the value of a visit for freshness when a source signals some of the changes, and some falsely
(algorithms §7). A page changes at the rate Δ. Changes without a signal come at the rate s, false signals at the rate f,
so signals come at the rate g = Δ - s + f. The state of a page is x, where e^-x is the probability that it is unchanged:
x grows by s per day and jumps by b = ln(g/f) at every signal. A policy that visits whenever x reaches a threshold waits
ψ days on average, during w of which the page is fresh; the value of the visit at the threshold is

    V = w - e^-x ψ
    ψ = Σ_i P(i + 1, g t_i) / g                      t_i = (x - ib) / s, as long as it is positive
    w = Σ_i f^i / (Δ + f)^(i + 1) · P(i + 1, (Δ + f) t_i)

with the incomplete Gamma function P. Without signals this is (1 - (1 + x) e^-x) / Δ.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.optimal.rate_base import RatePolicy
from recrawl.columns import DAY, Floats
from recrawl.gamma import lower_share
from recrawl.learn.hints import Signals
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


MAX_TERMS = 24
"""Terms of the sums. When a visit pays only after more signals than this, each signal carries almost no information."""
_MIN_SILENT = 1e-6
"""The lowest share of changes without a signal."""


def signal_index(x: Floats, rate: Floats, silent: Floats, false: Floats) -> Floats:
    """Return V of every page; rates are per day.

    >>> x, rate = np.full(2, 0.5), np.full(2, 0.1)
    >>> signal_index(x, rate, np.array([0.1, 0.05]), np.array([0.0, 0.01])).round(3).tolist()
    [0.902, 1.504]
    """
    value: Floats = (1 - (1 + x) * np.exp(-x)) / rate
    silent = np.clip(silent, _MIN_SILENT * rate, rate)
    signalled = rate - silent
    jump = np.log1p(signalled / np.maximum(false, 1e-300))
    rows = np.flatnonzero((signalled > 1e-9 * rate) & (x < jump * (MAX_TERMS + 1)))
    if len(rows):
        value[rows] = _with_signals(x[rows], rate[rows], silent[rows], false[rows], jump[rows])
    return value


def _with_signals(x: Floats, rate: Floats, silent: Floats, false: Floats, jump: Floats) -> Floats:
    signals, all_ = rate - silent + false, rate + false
    gap, fresh = np.zeros(len(x)), np.zeros(len(x))
    open_ = np.arange(len(x))
    for i in range(MAX_TERMS + 1):
        open_ = open_[x[open_] > i * jump[open_]]
        if not len(open_):
            break
        left = (x[open_] - i * jump[open_]) / silent[open_]
        gap[open_] += lower_share(i + 1, signals[open_] * left) / signals[open_]
        fresh[open_] += (false[open_] / all_[open_]) ** i / all_[open_] * lower_share(i + 1, all_[open_] * left)
    value: Floats = fresh - np.exp(-x) * gap
    return value
