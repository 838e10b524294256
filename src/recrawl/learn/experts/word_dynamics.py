"""How the words of pages come and go: Dyn(w, d), a series for each page and word (R §6.3, spec L4).

A page's series are those of the words that say most about it: by tf·idf, in the last snapshot before all, only words
whose count varies (a constant series correlates with nothing). `weight` is R's ω, tf·idf in the last snapshot,
as a share of the page's sum. The idf factor of a series is left out: it is constant and would cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recrawl.columns import Float32s, Floats, Int32s, Ints

_PAGES = 2_000
"""Pages at a time: their words by version are all in memory together."""
_VARIES = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Dynamics:
    """Series sorted by page, then word."""

    pages: int
    page: Int32s
    """One per series."""
    word: Int32s
    weight: Float32s
    series: Float32s
    """Series by day: how often the word stands on the page."""

    @property
    def first(self) -> Ints:
        """Where each page's series begin, and the number of series at the end."""
        return np.searchsorted(self.page, np.arange(self.pages + 1))

    def find(self, page: Ints, word: Int32s) -> Ints:
        """The series of pages and words, -1 where there is none."""
        if not len(self.page):
            return np.full(len(page), -1, np.int64)
        wide = np.int64(max(int(self.word.max()), int(word.max(initial=0))) + 1)
        keys = self.page.astype(np.int64) * wide + self.word
        wanted = page.astype(np.int64) * wide + word
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, place, -1)


def held(text: Int32s) -> Int32s:
    """Page by day: the text that was seen last; -1 before the first.

    >>> held(np.array([[-1, 3, -1, 4]], np.int32)).tolist()
    [[-1, 3, 3, 4]]
    """
    day = np.where(text >= 0, np.arange(text.shape[1]), -1)
    latest = np.maximum.accumulate(day, axis=1)
    return np.where(latest >= 0, np.take_along_axis(text, np.maximum(latest, 0), axis=1), -1).astype(np.int32)


def idf(carried: NDArray[Any], pages: int) -> Floats:
    """How much a word says, by the number of pages that carry it: never 0, so that a lone page has weights too."""
    rarity: Floats = np.log((1.0 + pages) / (1.0 + carried)) + 1.0
    return rarity


def dynamics(bags: sparse.csr_array, text: Int32s, words: int = 24) -> Dynamics:
    """The series of pages: `text` is page by day, a row of `bags` (text by word), -1 where nothing was seen."""
    text = held(text)
    pages = len(text)
    last = text[:, -1] if text.shape[1] else np.full(pages, -1, np.int32)
    rows = last[last >= 0]
    carried = np.bincount(_cells(bags, rows)[1], minlength=bags.shape[1]) if len(rows) else np.zeros(bags.shape[1])
    rarity = idf(carried, len(rows))
    parts = [_part(bags, text[start : start + _PAGES], rarity, words, start) for start in range(0, pages, _PAGES)]
    if not parts:
        parts = [_part(bags, text, rarity, words, 0)]
    return Dynamics(pages, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _cells(bags: sparse.csr_array, rows: Int32s) -> tuple[Ints, Int32s, Float32s]:
    """What stands in rows of a matrix: the place of the row among `rows`, the word, the count."""
    start = bags.indptr[rows].astype(np.int64)
    lengths = bags.indptr[rows + 1].astype(np.int64) - start
    ends = np.concatenate(([0], np.cumsum(lengths)))
    of = np.repeat(np.arange(len(rows)), lengths)
    place = start[of] + np.arange(ends[-1]) - ends[of]
    return of, bags.indices[place], bags.data[place].astype(np.float32)


def _part(
    bags: sparse.csr_array, text: Int32s, rarity: Floats, words: int, before: int
) -> tuple[Int32s, Int32s, Float32s, Float32s]:
    """The series of some pages that follow each other: pages, words, weights, counts by day."""
    texts, wide = np.int64(bags.shape[0]), np.int64(bags.shape[1])
    there = text >= 0
    # A version belongs to one page here, even where two pages share a text.
    owner = np.broadcast_to(np.arange(len(text))[:, None], text.shape)
    versions, number = np.unique(owner[there] * texts + text[there], return_inverse=True)
    on_day = np.full(text.shape, len(versions))  # one more stands for a page that was not seen yet
    on_day[there] = number
    of, word, count = _cells(bags, (versions % texts).astype(np.int32))
    key, pair = np.unique((versions // texts)[of] * wide + word, return_inverse=True)
    page, word = (key // wide).astype(np.int32), (key % wide).astype(np.int32)
    lasting = np.bincount(number, minlength=len(versions))
    newest = _newest(pair, of, count, on_day, len(key), len(versions))
    total = np.bincount(pair, count * lasting[of], len(key))
    square = np.bincount(pair, count.astype(np.float64) ** 2 * lasting[of], len(key))
    days = max(text.shape[1], 1)
    varies = square * days - total**2 > _VARIES
    rank = _rank(page, np.where(varies, rarity[word] * (newest + total / days), -np.inf))
    chosen = np.flatnonzero(varies & (rank < words))
    by_version = np.zeros((len(versions) + 1, words), np.float32)
    kept = (varies & (rank < words))[pair]
    by_version[of[kept], rank[pair[kept]]] = count[kept]
    series = by_version[on_day[page[chosen]], rank[chosen][:, None]]
    weight = rarity[word[chosen]] * newest[chosen]
    sums = np.bincount(page[chosen], weight, len(text))[page[chosen]]
    share = np.divide(weight, sums, out=np.zeros(len(weight)), where=sums > 0)
    return page[chosen] + np.int32(before), word[chosen], share.astype(np.float32), series


def _newest(pair: Ints, of: Ints, count: Float32s, on_day: Ints, pairs: int, versions: int) -> Floats:
    """The count of each page and word in the page's last snapshot."""
    newest = np.zeros(pairs)
    if on_day.shape[1]:
        is_last = np.zeros(versions + 1, np.bool_)
        is_last[on_day[:, -1]] = True
        newest[pair[is_last[of]]] = count[is_last[of]]
    return newest


def _rank(page: Int32s, score: Floats) -> Ints:
    """The place of each item among its page's, the highest score first."""
    order = np.lexsort((-score, page))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(page[order], page[order])
    return rank
