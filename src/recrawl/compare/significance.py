"""The significance of a change: the chi-squared test on the word counts of two versions (spec C2, R eq. 1).

The contingency table has the two versions as rows and words as columns. A word has its own column if its expected
count is 5 or more in both versions; all other words share one. With fewer than two columns the test is undefined, and
any change of the text counts (spec C1).

    X² = Σ (old·N_new - new·N_old)² / ((old + new)·N_old·N_new)     over the columns

which is the usual sum over both rows, with columns - 1 degrees of freedom.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.compare.common_ends import SplitTexts, split_texts
from recrawl.compare.terms import aligned
from recrawl.extras import sparse
from recrawl.gamma import upper_share
from recrawl.words import words

LEVEL = 0.05
_MIN_EXPECTED = 5.0
_SAMPLE = 3_000
"""Characters of the common text that show whether a change is slight."""
_FEW_WORDS = 40
"""Different words of a slight change, at most."""
_ROUNDING = 1 + 1e-9
_SHIFT = 32
_BATCH_COUNTS = 4_000_000
"""Counts per batch, which bounds the memory to a few hundred megabytes."""


def significant(old: str, new: str) -> bool:
    """Whether the change from the old text to the new one is significant.

    >>> significant("word " * 100, "word " * 50 + "other " * 50)
    True
    >>> significant("word other " * 50, "word other " * 49 + "word word")
    False
    """
    return old != new and split_significant(split_texts(old, new))


def split_significant(texts: SplitTexts) -> bool:
    """`significant` of two different texts that have been split."""
    a, b = Counter(words(texts.old)), Counter(words(texts.new))
    if _slight(texts.common, a, b):
        return False
    common = Counter(words(texts.common))
    n_common, n_old, n_new = common.total(), a.total(), b.total()
    n_old, n_new = n_common + n_old, n_common + n_new
    share = min(n_old, n_new) / max(n_old + n_new, 1)
    own = {word for word, count in common.items() if 2 * count * share >= _MIN_EXPECTED}
    own |= {word for word in a.keys() | b.keys() if (2 * common[word] + a[word] + b[word]) * share >= _MIN_EXPECTED}
    before, after = [common[word] + a[word] for word in own], [common[word] + b[word] for word in own]
    # All other words as one: the test would pool them.
    counts = np.array([[*before, n_old - sum(before)], [*after, n_new - sum(after)]], np.float64)
    rows = np.zeros(len(own) + 1, np.int64)
    return bool(_test(counts[0], counts[1], rows, np.ones(1, np.bool_))[0])


def _slight(common: str, old: Counter[str], new: Counter[str]) -> bool:
    """Whether a change is too small to be significant: its statistic cannot exceed its degrees of freedom.

    This reads only the beginning of the common text, so it may say no to a small change. X² with a column for each
    word is an upper limit, since pooling lowers it; in that sum a word adds at most as much as its common and its other
    occurrences would as two words. If the versions have at least `low` and `high` words,

        X² ≤ (N_new - N_old)² / 2·high + Σ ((old² + new²)·high/low - 2·old·new) / (old + new)     over the other words
    """
    if len(old) + len(new) > _FEW_WORDS:
        return False
    sample = words(common[: common.rfind(" ", 0, _SAMPLE) + 1])
    n_old, n_new = old.total(), new.total()
    low, high = len(sample) + min(n_old, n_new), len(sample) + max(n_old, n_new)
    if not low:
        return False
    least = _MIN_EXPECTED * (low + high) / low / 2
    columns = sum(1 for count in Counter(sample).values() if count >= least)
    limit = (n_new - n_old) ** 2 / (2 * high)
    for word in old.keys() | new.keys():
        x, y = old[word], new[word]
        limit += ((x * x + y * y) * high / low - 2 * x * y) / (x + y)
    return columns >= 2 and limit * _ROUNDING <= columns - 1


def significant_many(old: sparse.csr_array, new: sparse.csr_array, changed: Flags) -> Flags:
    """Test many pairs: row i of the old counts against row i of the new ones.

    `changed` marks the pairs whose texts differ at all (spec C1); the others are never significant, and these are if
    the test is undefined.
    """
    old, new = aligned(old, new)
    verdict = np.zeros(old.shape[0], np.bool_)
    sizes = np.diff(old.indptr).astype(np.int64) + np.diff(new.indptr)
    batch = np.cumsum(sizes) // _BATCH_COUNTS
    edges = np.flatnonzero(np.diff(batch, prepend=-1, append=np.iinfo(np.int64).max))
    for start, end in pairwise(edges):
        rows = np.flatnonzero(changed[start:end]) + start
        if len(rows):
            verdict[rows] = _batch(old[rows], new[rows])
    return verdict


def _batch(old: sparse.csr_array, new: sparse.csr_array) -> Flags:
    """Test one batch of changed pairs."""
    # Both counts in one number: a single sparse sum aligns them and keeps the zeros of either.
    packed = old.astype(np.int64) + new.astype(np.int64) * (1 << _SHIFT)
    rows = np.repeat(np.arange(packed.shape[0]), np.diff(packed.indptr))
    before = (packed.data & ((1 << _SHIFT) - 1)).astype(np.float64)
    after = (packed.data >> _SHIFT).astype(np.float64)
    return _test(before, after, rows, np.ones(packed.shape[0], np.bool_))


def _test(old: Floats, new: Floats, rows: Ints, fallback: Flags) -> Flags:
    """Test each pair, given the old and new counts of its words and, per word, the number of its pair."""
    n = len(fallback)
    n_old, n_new = _sums(rows, old, n), _sums(rows, new, n)
    both = n_old + n_new
    # the expected count of a word is smaller in the shorter version
    share = np.divide(np.minimum(n_old, n_new), both, out=np.zeros(n), where=both > 0)
    own = (old + new) * share[rows] >= _MIN_EXPECTED
    kept, a, b = rows[own], old[own], new[own]
    # Few words have their own column, so the shared column is computed by subtraction.
    rest_old, rest_new = n_old - _sums(kept, a, n), n_new - _sums(kept, b, n)
    statistic = _sums(kept, (a * n_new[kept] - b * n_old[kept]) ** 2 / (a + b), n)
    rest = rest_old + rest_new
    statistic += np.divide((rest_old * n_new - rest_new * n_old) ** 2, rest, out=np.zeros(n), where=rest > 0)
    scale = n_old * n_new
    statistic = np.divide(statistic, scale, out=np.zeros(n), where=scale > 0)
    columns = np.bincount(kept, minlength=n) + (rest > 0)
    freedom = np.maximum(columns - 1, 1)
    tested = statistic > freedom  # a statistic below its mean is never significant
    if tested.any():
        tested[tested] = upper_share(freedom[tested] / 2, statistic[tested] / 2) < LEVEL
    return np.where(columns >= 2, tested, fallback)


def _sums(rows: Ints, values: Floats, n: int) -> Floats:
    """Return the sum of each row's values, as float64 even if there are none."""
    return np.bincount(rows, values, n).astype(np.float64, copy=False)
