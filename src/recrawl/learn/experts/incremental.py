"""Relation weights updated from the newest snapshot alone (spec L5, R §9.2); no old snapshot is stored.

    relations = IncrementalRelations(word_dynamics(bags, text), a, b, lags=7)   # pairs of pages and their words
    relations.add(counts, seen)                                                # every day: page by word counts
    relations.experts(k)                                                       # the experts as of now

Pairs are given candidates, since running sums for all pairs of a large set would not fit in memory. The result equals
`selection.by_time` on all days at once.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from recrawl.columns import Flags, Floats, Ints
from recrawl.learn.experts.correlation import RunningCorrelation
from recrawl.learn.experts.selection import Experts, shared_words, top_experts
from recrawl.learn.experts.word_dynamics import WordDynamics, idf


class IncrementalRelations:
    """Correlations of the words that the pages of each pair share; starts with no days."""

    def __init__(self, words: WordDynamics, a: Ints, b: Ints, lags: int = 7) -> None:
        """Track the words of `words`; its days are not used."""
        self._pages, self._page, self._word = words.pages, words.page, words.word
        self._a, self._b = a, b
        self._pair, self._own, theirs = shared_words(words, a, b)
        self._correlation = RunningCorrelation(len(words.page), self._own, theirs, lags)
        self._now = np.zeros(len(words.page))
        self._rarity = np.ones(len(words.page))

    def add(self, counts: sparse.csr_array, seen: Flags | None = None) -> None:
        """Add a day's word counts (page by word); an unobserved page keeps its last counts."""
        counted = np.asarray(counts[self._page, self._word], np.float64).ravel() if len(self._page) else self._now
        self._now = counted if seen is None else np.where(seen[self._page], counted, self._now)
        carried = np.bincount(counts.indices, minlength=counts.shape[1])
        self._rarity = idf(carried[self._word], self._pages)
        self._correlation.add(self._now)

    def experts(self, k: int) -> Experts:
        """The k most similar candidates of each page, by R's distance."""
        similarity, lag = self._similarity()
        kept = similarity > 0
        a, b, weight = self._a[kept], self._b[kept], similarity[kept]
        return top_experts("xcorr", self._pages, k, a, b, weight, lag[kept], -weight)

    def weights(self) -> Floats:
        """One per pair: the current weight of the relation, at least 0."""
        return np.maximum(self._similarity()[0], 0.0)

    def _similarity(self) -> tuple[Floats, Ints]:
        """One per pair: the similarity of its word dynamics, and the lag with the highest weighted correlation."""
        weight = self._rarity * self._now
        total = np.bincount(self._page, weight, self._pages)[self._page]
        share = np.divide(weight, total, out=np.zeros(len(weight)), where=total > 0)[self._own]
        by_lag = self._correlation.correlations() * share[:, None]
        lags = range(by_lag.shape[1])
        summed = np.stack([np.bincount(self._pair, by_lag[:, lag], len(self._a)) for lag in lags], axis=1)
        similarity = np.bincount(self._pair, by_lag.max(axis=1), len(self._a)).astype(np.float64, copy=False)
        return similarity, summed.argmax(axis=1)
