"""Classifiers and relation weights updated day by day instead of being fitted again (spec L5; R §9.2).

With few features, the kernel of R's machines, (<x, y> + 1)³, has few dimensions: products of at most three features.
They are computed explicitly, so a classifier is one row of weights and thousands of classifiers are one matrix. An
example inside the margin, or on its wrong side, moves the weights as far as needed but at most by `_MAX_STEP` (the
passive-aggressive update of Crammer et al. 2006, with the hinge loss of a support vector machine). Running means and
variances scale the features to variance 1.

Relation weights are updated from the newest snapshot alone; no old snapshot is stored.

    relations = IncrementalRelations(word_dynamics(bags, text), a, b, lags=7)   # pairs of pages and their words
    relations.add(counts, seen)                                                # every day: page by word counts
    relations.experts(k)                                                       # the experts as of now

Pairs are given candidates, since running sums for all pairs of a large set would not fit in memory. The result equals
`selection.by_time` on all days at once.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Ints
from recrawl.extras import sparse
from recrawl.learn.experts.correlation import RunningCorrelation
from recrawl.learn.experts.selection import Experts, shared_words, top_experts
from recrawl.learn.experts.word_dynamics import WordDynamics, idf

_MAX_STEP = 0.03
_CLIP = 5.0
"""Scaled features are clipped at this many standard deviations."""
_MIN_SPREAD = 1e-6


class PolynomialMap:
    """The explicit feature map of the kernel (<x, y> + 1)^degree.

    >>> both = PolynomialMap(2)(np.array([[0.5, 1.0], [2.0, -1.0]]))
    >>> round(float(both[0] @ both[1]), 4), (0.5 * 2.0 - 1.0 + 1.0) ** 3
    (1.0, 1.0)
    """

    def __init__(self, features: int, degree: int = 3) -> None:
        terms = list(combinations_with_replacement(range(features + 1), degree))
        ways = [factorial(degree) / prod(map(factorial, Counter(term).values())) for term in terms]
        self._terms = np.array(terms).T
        self._scale = np.sqrt(np.array(ways)).astype(np.float32)

    def __len__(self) -> int:
        """The number of dimensions."""
        return len(self._scale)

    def __call__(self, x: NDArray[np.floating]) -> Float32s:
        """Example by dimension."""
        with_one = np.concatenate((np.ones((len(x), 1), np.float32), x.astype(np.float32)), axis=1)
        found: Float32s = np.broadcast_to(self._scale, (len(x), len(self))).copy()
        for place in self._terms:
            found *= with_one[:, place]
        return found


class OnlineClassifiers:
    """Classifiers, one per row, that take one example each at a time: `scale`, then `margin`, later `update`."""

    def __init__(self, problems: int, features: int, grouped: int = 0) -> None:
        """The last `grouped` features count as one feature: their variances are summed."""
        self._grouped = grouped
        self._single = features - grouped
        self._map = PolynomialMap(features)
        self._mean = np.zeros((problems, features))
        self._spread = np.zeros((problems, features))
        self._observed = np.zeros(problems, np.int64)
        self.weight: Float32s = np.zeros((problems, len(self._map)), np.float32)
        self.examples = np.zeros(problems, np.int64)
        """One per classifier: examples it was updated with."""

    def scale(self, x: NDArray[np.floating], present: Flags) -> Float32s:
        """Map a day's features (classifier by feature) to kernel space; where not `present`, only the constant."""
        self._observed += present
        step = (x - self._mean) * present[:, None]
        self._mean += step / np.maximum(self._observed, 1)[:, None]
        self._spread += step * (x - self._mean)
        variance = self._spread / np.maximum(self._observed, 1)[:, None]
        if self._grouped:
            variance[:, self._single :] = variance[:, self._single :].sum(axis=1, keepdims=True)
        spread = np.sqrt(np.maximum(variance, 0.0))
        usable = present[:, None] & (spread > _MIN_SPREAD * np.maximum(np.abs(self._mean), _MIN_SPREAD))
        scaled = np.divide(x - self._mean, spread, out=np.zeros(x.shape), where=usable)
        return self._map(np.clip(scaled, -_CLIP, _CLIP) / np.sqrt(self._single + bool(self._grouped)))

    def margin(self, mapped: Float32s) -> Floats:
        """One per classifier: above 0 for yes."""
        return np.asarray(np.einsum("bd,bd->b", self.weight, mapped), np.float64)

    def update(self, mapped: Float32s, label: Flags, usable: Flags) -> None:
        """Learn the labels of mapped examples; only classifiers in `usable` are updated."""
        sign = np.where(label, 1.0, -1.0)
        loss = np.maximum(0.0, 1.0 - sign * self.margin(mapped)) * usable
        norm = np.einsum("bd,bd->b", mapped, mapped)  # at least 1, since the map has a constant
        step = np.minimum(loss / norm, _MAX_STEP) * sign
        self.weight += step.astype(np.float32)[:, None] * mapped
        self.examples += usable


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
