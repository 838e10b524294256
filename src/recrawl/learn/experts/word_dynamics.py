"""Word dynamics Dyn(w, d): one series of counts for each page and word (R §6.3, spec L4).

A page's series are those of its most characteristic words by tf·idf, mainly of the last snapshot, among the words whose
count varies (a constant series correlates with nothing). `weight` is R's ω as a share of the page's sum: by default
tf·idf in the last snapshot, else how often or how far the word's count changed, or the same for all words (`OMEGAS`).
The idf factor of a series is left out, since a constant factor cancels in a correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Float32s, Floats, Int32s, Ints
from recrawl.extras import sparse

_BATCH = 2_000
"""Pages processed at a time: the words of all their versions are in memory together."""
_MIN_VARIANCE = 1e-6
OMEGAS = ("last", "changes", "moves", "even")
"""Word weights ω: tf·idf in the last snapshot (R's choice); the number of days on which the count changed; the sum of
these changes; all equal. R names the second and third as alternatives."""


@dataclass(frozen=True, slots=True, eq=False)
class WordDynamics:
    """Series sorted by page, then word."""

    pages: int
    page: Int32s
    """One per series."""
    word: Int32s
    weight: Float32s
    series: Float32s
    """Series by day: the count of the word on the page."""

    @property
    def first(self) -> Ints:
        """The index of each page's first series, followed by the number of series."""
        return np.searchsorted(self.page, np.arange(self.pages + 1))

    def index_of(self, page: Ints, word: Int32s) -> Ints:
        """The series of each page and word; -1 where there is none."""
        if not len(self.page):
            return np.full(len(page), -1, np.int64)
        width = np.int64(max(int(self.word.max()), int(word.max(initial=0))) + 1)
        keys = self.page.astype(np.int64) * width + self.word
        sought = page.astype(np.int64) * width + word
        place = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        return np.where(keys[place] == sought, place, -1)


def carry_forward(text: Int32s) -> Int32s:
    """Page by day: the last text observed up to that day; -1 before the first.

    >>> carry_forward(np.array([[-1, 3, -1, 4]], np.int32)).tolist()
    [[-1, 3, 3, 4]]
    """
    day = np.where(text >= 0, np.arange(text.shape[1]), -1)
    latest = np.maximum.accumulate(day, axis=1)
    return np.where(latest >= 0, np.take_along_axis(text, np.maximum(latest, 0), axis=1), -1).astype(np.int32)


def idf(document_count: NDArray[Any], pages: int) -> Floats:
    """Inverse document frequency, never 0, so that the words of a lone page have weights too."""
    rarity: Floats = np.log((1.0 + pages) / (1.0 + document_count)) + 1.0
    return rarity


def word_dynamics(bags: sparse.csr_array, text: Int32s, words: int = 24, omega: str = "last") -> WordDynamics:
    """The series of pages, at most `words` each.

    `text` is page by day: a row of `bags` (text by word), or -1 where not observed.
    """
    text = carry_forward(text)
    pages = len(text)
    last = text[:, -1] if text.shape[1] else np.full(pages, -1, np.int32)
    rows = last[last >= 0]
    document_count = (
        np.bincount(_cells(bags, rows)[1], minlength=bags.shape[1]) if len(rows) else np.zeros(bags.shape[1])
    )
    rarity = idf(document_count, len(rows))
    starts = range(0, max(pages, 1), _BATCH)
    parts = [_series_of(bags, text[start : start + _BATCH], rarity, words, omega, start) for start in starts]
    return WordDynamics(pages, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _cells(bags: sparse.csr_array, rows: Int32s) -> tuple[Ints, Int32s, Float32s]:
    """The entries of matrix rows: index in `rows`, word, count."""
    start = bags.indptr[rows].astype(np.int64)
    lengths = bags.indptr[rows + 1].astype(np.int64) - start
    ends = np.concatenate(([0], np.cumsum(lengths)))
    row = np.repeat(np.arange(len(rows)), lengths)
    place = start[row] + np.arange(ends[-1]) - ends[row]
    return row, bags.indices[place], bags.data[place].astype(np.float32)


def _series_of(
    bags: sparse.csr_array, text: Int32s, rarity: Floats, words: int, omega: str, before: int
) -> tuple[Int32s, Int32s, Float32s, Float32s]:
    """The series of consecutive pages: pages, words, weights, counts by day."""
    texts, width = np.int64(bags.shape[0]), np.int64(bags.shape[1])
    observed = text >= 0
    # Versions are per page, even where two pages share a text.
    owner = np.broadcast_to(np.arange(len(text))[:, None], text.shape)
    versions, number = np.unique(owner[observed] * texts + text[observed], return_inverse=True)
    on_day = np.full(text.shape, len(versions))  # one extra row, all 0, for days before the page's first observation
    on_day[observed] = number
    row, word, count = _cells(bags, (versions % texts).astype(np.int32))
    key, pair = np.unique((versions // texts)[row] * width + word, return_inverse=True)
    page, word = (key // width).astype(np.int32), (key % width).astype(np.int32)
    duration = np.bincount(number, minlength=len(versions))
    last_count = _last_counts(pair, row, count, on_day, len(key), len(versions))
    total = np.bincount(pair, count * duration[row], len(key))
    square = np.bincount(pair, count.astype(np.float64) ** 2 * duration[row], len(key))
    days = max(text.shape[1], 1)
    varies = square * days - total**2 > _MIN_VARIANCE
    rank = _rank(page, np.where(varies, rarity[word] * (last_count + total / days), -np.inf))
    chosen = np.flatnonzero(varies & (rank < words))
    by_version = np.zeros((len(versions) + 1, words), np.float32)
    kept = (varies & (rank < words))[pair]
    by_version[row[kept], rank[pair[kept]]] = count[kept]
    series = by_version[on_day[page[chosen]], rank[chosen][:, None]]
    weight = _weights(omega, rarity[word[chosen]] * last_count[chosen], series)
    sums = np.bincount(page[chosen], weight, len(text))[page[chosen]]
    share = np.divide(weight, sums, out=np.zeros(len(weight)), where=sums > 0)
    return page[chosen] + np.int32(before), word[chosen], share.astype(np.float32), series


def _weights(omega: str, last: Floats, series: Float32s) -> Floats:
    """One per series: its word's weight ω."""
    if omega == "last":
        return last
    steps = np.abs(np.diff(series, axis=1))
    by_kind = {"changes": (steps > 0).sum(axis=1), "moves": steps.sum(axis=1), "even": np.ones(len(series))}
    return np.asarray(by_kind[omega], np.float64)


def _last_counts(pair: Ints, row: Ints, count: Float32s, on_day: Ints, pairs: int, versions: int) -> Floats:
    """The count of each page and word in the page's last snapshot."""
    last_count = np.zeros(pairs)
    if on_day.shape[1]:
        is_last = np.zeros(versions + 1, np.bool_)
        is_last[on_day[:, -1]] = True
        last_count[pair[is_last[row]]] = count[is_last[row]]
    return last_count


def _rank(page: Int32s, score: Floats) -> Ints:
    """The rank of each item within its page, highest score first."""
    order = np.lexsort((-score, page))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(page[order], page[order])
    return rank
