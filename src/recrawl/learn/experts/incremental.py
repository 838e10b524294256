"""Relations kept up to date from the newest snapshot alone (spec L5, R §9.2): no old snapshot is kept.

    following = Following(dynamics(bags, text), a, b, lags=7)      # which words of which pairs of pages
    following.add(counts, seen)                                    # every day: that day's words, page by word
    following.experts(k)                                           # who tells about whom, as of now

Pairs are candidates: for all pairs of a large set even running sums would be too many. The result is the same as
`relations.by_time` computes from all days at once.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from recrawl.columns import Flags, Floats, Ints
from recrawl.learn.experts.correlation import Running
from recrawl.learn.experts.selection import Experts, ranked, shared
from recrawl.learn.experts.word_dynamics import Dynamics, idf


class IncrementalRelations:
    """Correlations of the words that candidates share with a page; begins with no day."""

    def __init__(self, words: Dynamics, a: Ints, b: Ints, lags: int = 7) -> None:
        """The series of `words` say which words are followed; its days are not used."""
        self._pages, self._page, self._word = words.pages, words.page, words.word
        self._a, self._b = a, b
        self._pair, self._mine, theirs = shared(words, a, b)
        self._running = Running(len(words.page), self._mine, theirs, lags)
        self._now = np.zeros(len(words.page))
        self._rarity = np.ones(len(words.page))

    def add(self, counts: sparse.csr_array, seen: Flags | None = None) -> None:
        """The words of a day, page by word; of pages that were not seen the last ones stay in force."""
        found = np.asarray(counts[self._page, self._word], np.float64).ravel() if len(self._page) else self._now
        self._now = found if seen is None else np.where(seen[self._page], found, self._now)
        carried = np.bincount(counts.indices, minlength=counts.shape[1])
        self._rarity = idf(carried[self._word], self._pages)
        self._running.add(self._now)

    def experts(self, k: int) -> Experts:
        """The k candidates of each page that follow or lead it best, by R's distance."""
        alike, lag = self._alike()
        kept = alike > 0
        a, b, weight = self._a[kept], self._b[kept], alike[kept]
        return ranked("xcorr", self._pages, k, a, b, weight, lag[kept], -weight)

    def weights(self) -> Floats:
        """One per pair: the relation as of now, never below 0."""
        return np.maximum(self._alike()[0], 0.0)

    def _alike(self) -> tuple[Floats, Ints]:
        """How alike the words of each pair come and go, and the lag that speaks most for it."""
        weight = self._rarity * self._now
        total = np.bincount(self._page, weight, self._pages)[self._page]
        share = np.divide(weight, total, out=np.zeros(len(weight)), where=total > 0)[self._mine]
        by_lag = self._running.correlations() * share[:, None]
        lags = range(by_lag.shape[1])
        summed = np.stack([np.bincount(self._pair, by_lag[:, lag], len(self._a)) for lag in lags], axis=1)
        alike = np.bincount(self._pair, by_lag.max(axis=1), len(self._a)).astype(np.float64, copy=False)
        return alike, summed.argmax(axis=1)
