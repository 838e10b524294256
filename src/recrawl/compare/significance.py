"""Is a change significant? The chi-squared test on the word counts of two versions (spec C2, R eq. 1).

The table has the two versions as rows and words as columns. A word has a column of its own when its
expected count is 5 or more in both versions; all other words share one. With fewer than two columns the
test says nothing and any change of the text counts (spec C1).

    X² = Σ (old·N_new - new·N_old)² / ((old + new)·N_old·N_new)     over the columns

which is the usual sum over both rows, with columns - 1 degrees of freedom.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import scipy  # its parts load when first used: see terms.py
from numpy.typing import NDArray

from recrawl.compare.terms import aligned
from recrawl.compare.words import words

LEVEL = 0.05
_LEAST_EXPECTED = 5.0
_SHIFT = 32
_AT_ONCE = 4_000_000
"""Counts that are worked on at once; bounds the memory to a few hundred megabytes."""

Counts = NDArray[np.float64]


def significant(old: str, new: str) -> bool:
    """Whether the change from one text to the other is significant.

    >>> significant("word " * 100, "word " * 50 + "other " * 50)
    True
    >>> significant("word other " * 50, "word other " * 49 + "word word")
    False
    """
    if old == new:
        return False
    a, b = Counter(words(old)), Counter(words(new))
    both = list(a.keys() | b.keys())
    # A Counter's own lookup is slow for what it lacks.
    before = np.array([dict.get(a, word, 0) for word in both], np.float64)
    after = np.array([dict.get(b, word, 0) for word in both], np.float64)
    rows = np.zeros(len(both), np.int64)
    return bool(_judge(before, after, rows, np.ones(1, np.bool_))[0])


def significant_many(
    old: scipy.sparse.csr_array, new: scipy.sparse.csr_array, changed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """The same for many pairs: row i of the old counts against row i of the new.

    `changed` says whether the texts differ at all (spec C1): where they do not, nothing is significant,
    and it is the answer where the test has none.
    """
    old, new = aligned(old, new)
    verdict = np.zeros(old.shape[0], np.bool_)
    sizes = np.diff(old.indptr).astype(np.int64) + np.diff(new.indptr)
    batch = np.cumsum(sizes) // _AT_ONCE
    edges = np.flatnonzero(np.diff(batch, prepend=-1, append=np.iinfo(np.int64).max))
    for start, end in pairwise(edges):
        rows = np.flatnonzero(changed[start:end]) + start
        if len(rows):
            verdict[rows] = _batch(old[rows], new[rows])
    return verdict


def _batch(old: scipy.sparse.csr_array, new: scipy.sparse.csr_array) -> NDArray[np.bool_]:
    """The verdicts for one batch of changed pairs."""
    # Both counts in one number: a single sparse sum lines them up, with the zeros of either kept.
    packed = old.astype(np.int64) + new.astype(np.int64) * (1 << _SHIFT)
    rows = np.repeat(np.arange(packed.shape[0]), np.diff(packed.indptr))
    before = (packed.data & ((1 << _SHIFT) - 1)).astype(np.float64)
    after = (packed.data >> _SHIFT).astype(np.float64)
    return _judge(before, after, rows, np.ones(packed.shape[0], np.bool_))


def _judge(old: Counts, new: Counts, rows: NDArray[np.int64], fallback: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The verdict for each pair, given its words' counts, old and new, and the number of the pair."""
    n = len(fallback)
    n_old, n_new = _sums(rows, old, n), _sums(rows, new, n)
    both = n_old + n_new
    # expected count of the word in the shorter version, the smaller of the two
    share = np.divide(np.minimum(n_old, n_new), both, out=np.zeros(n), where=both > 0)
    own = (old + new) * share[rows] >= _LEAST_EXPECTED
    kept, a, b = rows[own], old[own], new[own]
    # The words that are kept are few, so the shared column is found by subtraction.
    rest_old, rest_new = n_old - _sums(kept, a, n), n_new - _sums(kept, b, n)
    statistic = _sums(kept, (a * n_new[kept] - b * n_old[kept]) ** 2 / (a + b), n)
    rest = rest_old + rest_new
    statistic += np.divide((rest_old * n_new - rest_new * n_old) ** 2, rest, out=np.zeros(n), where=rest > 0)
    scale = n_old * n_new
    statistic = np.divide(statistic, scale, out=np.zeros(n), where=scale > 0)
    columns = np.bincount(kept, minlength=n) + (rest > 0)
    tested = scipy.special.chdtrc(np.maximum(columns - 1, 1), statistic) < LEVEL
    return np.where(columns >= 2, tested, fallback)


def _sums(rows: NDArray[np.int64], values: Counts, n: int) -> Counts:
    """The sum of each row's values, as fractions also when there are none."""
    return np.bincount(rows, values, n).astype(np.float64, copy=False)
