"""Expert selection: which pages help to predict another page's changes (spec L4, L5; R §6).

    graph       one link away, in either direction, all with the same weight (R §6.1)
    content     the k most similar pages by the cosine of their word counts (R §6.2)
    xcorr       pages on which the same words come and go, possibly some days earlier (R §6.3, cross-correlation)
    dtw         the same by dynamic time warping

R's temporal distance is Σ ω(w)·Q(Dyn(w, p), Dyn(w, e)) over the words of p. Computing it for all pairs is too
expensive, so candidates come first. An inverted index finds the pages that share a word at all; where these are few,
they are the only pairs with a distance, and the result is exact. Where too many pages share words, the words' series
are summed with random signs into a few channels, so that the product of two pages' channels equals the distance in
expectation. The channels are shortened to frame means, and one matrix product per lag gives all pairs. The exact
distance is then computed for the candidates only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph
from recrawl.columns import Float32s, Floats, Int32s, Ints
from recrawl.extras import sparse
from recrawl.learn.experts.word_dynamics import WordDynamics

# --------------------------------------------------------------------------------------------------------------------
# Cross-correlation of many series at several lags (spec L4, L5; R §6.3, §9.2).
#
# The correlation of a with b at lag d is Σ (a[i] - mean a)(b[i - d] - mean b) / (N·sd a·sd b): b leads by d days. For
# series of mean 0 and norm 1 this is a matrix product, so all pairs cost one BLAS call per lag. Long series are first
# shortened to the means of equal frames. `RunningCorrelation` updates correlations from the newest values alone and
# gives the same result as a computation from all values.


_CORRELATION_BATCH = 1 << 24
"""Numbers held in memory at a time."""
_CONSTANT = 1e-9
"""Relative norm below which a centred series counts as constant."""


def normalized(series: NDArray[np.floating]) -> Float32s:
    """Every series (last axis) with mean 0 and norm 1; a constant series becomes 0 and correlates with nothing.

    >>> normalized(np.array([[1.0, 3.0], [2.0, 2.0]])).round(3).tolist()
    [[-0.7070000171661377, 0.7070000171661377], [0.0, 0.0]]
    """
    centred = series - series.mean(axis=-1, keepdims=True)
    length = np.sqrt((centred * centred).sum(axis=-1, keepdims=True))
    scale = np.abs(series).max(axis=-1, keepdims=True, initial=0.0)
    constant = length <= _CONSTANT * np.maximum(scale, 1.0)
    scaled: Float32s = np.divide(centred, length, out=np.zeros(series.shape), where=~constant).astype(np.float32)
    return scaled


def frame_means(series: Float32s, frames: int) -> Float32s:
    """Series shortened to the means of equal frames along the last axis (R §9.2); shorter ones stay as they are.

    >>> frame_means(np.array([[1.0, 3.0, 5.0, 5.0]], np.float32), 2).tolist()
    [[2.0, 5.0]]
    """
    days = series.shape[-1]
    if days <= frames:
        return series
    edges = np.linspace(0, days, frames + 1).astype(np.int64)
    means: Float32s = (np.add.reduceat(series, edges[:-1], axis=-1) / np.diff(edges)).astype(np.float32)
    return means


def lagged_correlations(left: Float32s, right: Float32s, a: Ints, b: Ints, lags: int) -> Float32s:
    """Pair by lag: correlations of `left[a]` with `right[b]`, both made by `normalized`, at lags 0 to `lags`."""
    days = left.shape[1]
    found = np.zeros((len(a), lags + 1), np.float32)
    step = max(1, _CORRELATION_BATCH // max(days, 1))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        here, there = left[a[part]], right[b[part]]
        for lag in range(min(lags, days - 1) + 1):
            found[part, lag] = np.einsum("pd,pd->p", here[:, lag:], there[:, : days - lag])
    return found


def top_correlated(left: Float32s, right: Float32s, k: int, lags: int) -> Int32s:
    """Page by k: the pages whose series correlate best with each page's, at the best lag of each pair.

    A page has one series, or several channels compared in parallel (page by channel by day). `left` holds the pages
    that look for others, `right` the same pages as candidates. Costs one matrix product per lag and batch.
    """
    left, right = (x.reshape(len(x), -1, x.shape[-1]) for x in (left, right))
    pages, _, days = left.shape
    k = min(k, pages - 1)
    chosen = np.zeros((pages, max(k, 0)), np.int32)
    if k < 1:
        return chosen
    rows = max(1, _CORRELATION_BATCH // pages)
    shifted = [right[:, :, : days - lag].reshape(pages, -1).T for lag in range(min(lags, days - 1) + 1)]
    for start in range(0, pages, rows):
        part = slice(start, min(start + rows, pages))
        best_lag: Float32s | None = None
        for lag, other in enumerate(shifted):
            product = left[part, :, lag:].reshape(part.stop - start, -1) @ other
            best_lag = product if best_lag is None else np.maximum(best_lag, product, out=best_lag)
        assert best_lag is not None
        best_lag[np.arange(part.stop - start), np.arange(start, part.stop)] = -np.inf
        top = np.argpartition(best_lag, pages - k, axis=1)[:, pages - k :]
        order = np.argsort(-np.take_along_axis(best_lag, top, axis=1), axis=1, kind="stable")
        chosen[part] = np.take_along_axis(top, order, axis=1)
    return chosen


class RunningCorrelation:
    """Correlations of given pairs of series at all lags, updated day by day without the old days (spec L5).

    >>> tracker = RunningCorrelation(2, np.array([0]), np.array([1]), lags=1)
    >>> for values in ([0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]):
    ...     tracker.add(np.array(values))
    >>> tracker.correlations().round(3).tolist()
    [[-0.577, 0.722]]
    """

    def __init__(self, series: int, a: Ints, b: Ints, lags: int) -> None:
        self.a, self.b, self.lags = a, b, lags
        self.days = 0
        self._first = np.zeros((series, lags))  # the first `lags` values of each series
        self._last = np.zeros((series, lags + 1))  # the newest first
        self._sum = np.zeros(series)
        self._square = np.zeros(series)
        self._product = np.zeros((len(a), lags + 1))

    def add(self, values: NDArray[np.floating]) -> None:
        """Add the newest value of every series."""
        if self.days < self.lags:
            self._first[:, self.days] = values
        self._last = np.concatenate((np.asarray(values, np.float64)[:, None], self._last[:, :-1]), axis=1)
        self._sum += values
        self._square += np.asarray(values, np.float64) ** 2
        self._product += values[self.a][:, None] * self._last[self.b]
        self.days += 1

    def correlations(self) -> Floats:
        """Pair by lag: the same as `lagged_correlations` of all days so far; 0 for a constant series."""
        n = self.days
        if not n:
            return np.zeros((len(self.a), self.lags + 1))
        mean = self._sum / n
        spread = np.sqrt(np.maximum(self._square / n - mean**2, 0.0))
        spread[spread <= _CONSTANT * np.maximum(np.abs(mean), 1.0) * np.sqrt(n)] = 0.0
        # At a lag, the first `lag` days of a and the last `lag` days of b have no partner.
        without_first = self._sum[:, None] - np.pad(np.cumsum(self._first, axis=1), ((0, 0), (1, 0)))
        without_last = self._sum[:, None] - np.pad(np.cumsum(self._last[:, :-1], axis=1), ((0, 0), (1, 0)))
        pairs = np.maximum(n - np.arange(self.lags + 1), 0)
        mean_a, mean_b = mean[self.a][:, None], mean[self.b][:, None]
        covariance = (
            self._product - mean_b * without_first[self.a] - mean_a * without_last[self.b] + pairs * mean_a * mean_b
        )
        scale = n * (spread[self.a] * spread[self.b])[:, None]
        covariance = np.where(pairs > 0, covariance, 0.0)
        found: Floats = np.divide(covariance, scale, out=np.zeros(covariance.shape), where=scale > 0)
        return found


# --------------------------------------------------------------------------------------------------------------------
# Dynamic time warping (R fig. 5) of many pairs of series at once.
#
#     dtw(i, j) = |a[i] - b[j]| + min(dtw(i-1, j), dtw(i, j-1), dtw(i-1, j-1))
#
# A pair's table has to be filled cell by cell, but each cell can be filled for all pairs together, so the number of
# Python steps is the number of cells whatever the number of pairs. Libraries for DTW handle single pairs or all pairs
# of a set; here the pairs are a list of candidates.


def dtw_distance(a: Float32s, b: Float32s, band: int | None = None) -> Float32s:
    """The DTW distance of each pair of rows; `band` limits how many days the two may shift (None: no limit).

    >>> dtw_distance(np.array([[0, 1, 0, 0]], np.float32), np.array([[0, 0, 1, 0]], np.float32)).tolist()
    [0.0]
    >>> dtw_distance(np.array([[0, 1, 0, 0]], np.float32), np.array([[0, 0, 1, 0]], np.float32), band=0).tolist()
    [2.0]
    """
    pairs, days = a.shape
    if not days:
        return np.zeros(pairs, np.float32)
    band = days if band is None else band
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    infinite = np.full(pairs, np.inf, np.float32)
    above = [infinite] * (days + 1)
    above[0] = np.zeros(pairs, np.float32)
    for i in range(days):
        here = [infinite] * (days + 1)
        for j in range(max(0, i - band), min(days, i + band + 1)):
            before = np.minimum(np.minimum(above[j + 1], here[j]), above[j])
            here[j + 1] = np.abs(left[i] - right[j]) + before
        above = here
    return above[days]


def dtw_similarity(a: Float32s, b: Float32s, band: int | None = None) -> Float32s:
    """From 0 to 1, where 1 means equal after warping; expects series of mean 0 and variance 1."""
    similarity: Float32s = 1.0 / (1.0 + dtw_distance(a, b, band) / max(a.shape[1], 1))
    return similarity.astype(np.float32)


# --------------------------------------------------------------------------------------------------------------------


NO_EXPERT = -1
"""Fills the places of a page that has fewer experts than others."""
_CHANNELS = 8
"""Random-sign channels per page."""
_FRAMES = 46
"""Frames to which long series are shortened."""
_CANDIDATES = 3
"""Candidates per expert wanted."""
_MIN_CANDIDATES = 60
_MAX_MEETINGS = 1_000
"""The inverted index is used up to this many pairs (two pages under one word) per page."""
_MAX_SHARING = 4
"""All pages that share a word are compared up to this many per candidate wanted; above, candidates are approximated."""
_ROWS = 256
"""Pages compared with all others at a time."""
_BATCH = 20_000
"""Pairs compared at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Experts:
    """The experts of every page, closest first; a page is not among its own experts."""

    kind: str
    page: Int32s
    """Page by rank: the expert, or `NO_EXPERT`."""
    weight: Float32s
    """Page by rank: the weight of the relation, which weights the expert's vote; 0 for `NO_EXPERT`."""
    lag: Int32s
    """Page by rank: days by which the expert leads, where the method estimates a lag; else 0."""

    def first(self, k: int) -> Experts:
        """The k closest."""
        return Experts(self.kind, self.page[:, :k], self.weight[:, :k], self.lag[:, :k])

    def of(self, page: int) -> list[dict[str, Any]]:
        """The experts of one page as plain values: page, relation, weight, lag."""
        rows = zip(self.page[page].tolist(), self.weight[page].tolist(), self.lag[page].tolist(), strict=True)
        return [
            {"page": other, "relation": self.kind, "weight": weight, "lag": lag}
            for other, weight, lag in rows
            if other != NO_EXPERT
        ]


def by_graph(links: LinkGraph, k: int) -> Experts:
    """Pages that link to a page or that it links to; of more than k, those with the fewest links.

    >>> experts = by_graph(LinkGraph(np.array([0, 1, 1, 2]), np.array([1, 1], np.int32)), k=5)
    >>> experts.page.tolist(), experts.weight.tolist()
    ([[1, -1], [0, 2], [1, -1]], [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    """
    pages = len(links)
    source = np.repeat(np.arange(pages), np.diff(links.start))
    target = links.target.astype(np.int64)
    other = source != target
    both = np.concatenate((source[other], target[other])), np.concatenate((target[other], source[other]))
    a, b = np.divmod(np.unique(both[0] * np.int64(max(pages, 1)) + both[1]), max(pages, 1))
    degree = np.bincount(a, minlength=pages)
    return top_experts(
        "graph", pages, k, a, b, np.ones(len(a)), np.zeros(len(a), np.int64), degree[b].astype(np.float64)
    )


def by_content(counts: sparse.csr_array, k: int) -> Experts:
    """The k pages with the most similar word counts (page by word) by cosine; a page without words has no experts."""
    pages = counts.shape[0]
    nonempty = np.flatnonzero(np.diff(counts.indptr))
    if len(nonempty) < 2:
        return _no_experts("content", pages)
    unit = counts[nonempty].astype(np.float64)
    length = np.sqrt(np.bincount(np.repeat(np.arange(len(nonempty)), np.diff(unit.indptr)), unit.data**2))
    unit = sparse.diags_array(1.0 / length) @ unit
    found = [_nearest(unit, rows, k) for rows in _row_batches(len(nonempty))]
    a, b = (nonempty[np.concatenate([part[column] for part in found])] for column in (0, 1))
    similarity = np.clip(np.concatenate([part[2] for part in found]), 0.0, 1.0)
    kept = (a != b) & (similarity > 0)
    zeros = np.zeros(int(kept.sum()), np.int64)
    return top_experts("content", pages, k, a[kept], b[kept], similarity[kept], zeros, -similarity[kept])


def _nearest(unit: sparse.csr_array, rows: slice, k: int) -> tuple[Ints, Ints, Floats]:
    """Row, other row and cosine of the k + 1 most similar rows, the row itself among them."""
    cosine = (unit[rows] @ unit.T).toarray()
    count = min(k + 1, cosine.shape[1])
    other = np.argpartition(-cosine, count - 1, axis=1)[:, :count]
    row = np.repeat(np.arange(len(cosine)), count)
    return row + rows.start, other.ravel(), cosine[row, other.ravel()]


def _row_batches(count: int) -> Iterator[slice]:
    for start in range(0, count, _ROWS):
        yield slice(start, min(start + _ROWS, count))


def by_time(
    dynamics: WordDynamics,
    k: int,
    how: str = "xcorr",
    lags: int = 7,
    seed: int = 0,
    candidates: int | None = None,
    first_lag: int = 0,
) -> Experts:
    """The k pages with the most similar word dynamics; `how` is xcorr (at lags `first_lag` to `lags`) or dtw."""
    pages = dynamics.pages
    scaled = normalized(dynamics.series)
    wanted = candidates or max(_CANDIDATES * k, _MIN_CANDIDATES)
    pairs = pairs_sharing_words(dynamics, wanted) or _candidates(dynamics, scaled, wanted, lags, seed)
    compared = [_similarities(dynamics, scaled, a, b, how, (first_lag, lags)) for a, b in _batches(*pairs)]
    if not compared:
        return _no_experts(how, pages)
    a, b, similarity, lag = (np.concatenate(column) for column in zip(*compared, strict=True))
    kept = similarity > 0
    return top_experts(how, pages, k, a[kept], b[kept], similarity[kept], lag[kept], -similarity[kept])


def _candidates(dynamics: WordDynamics, scaled: Float32s, wanted: int, lags: int, seed: int) -> tuple[Ints, Ints]:
    """Pairs of pages that may be similar, approximately; a page whose words never vary is in no pair."""
    nonempty = np.unique(dynamics.page).astype(np.int64)
    if wanted >= len(nonempty) - 1:
        a, b = np.repeat(nonempty, len(nonempty)), np.tile(nonempty, len(nonempty))
        return a[a != b], b[a != b]
    rng = np.random.default_rng(seed)
    words = int(dynamics.word.max(initial=0)) + 1
    channel = rng.integers(_CHANNELS, size=words)[dynamics.word]
    sign = rng.choice(np.array([-1.0, 1.0], np.float32), size=words)[dynamics.word]
    framed = frame_means(scaled, _FRAMES)
    index = np.searchsorted(nonempty, dynamics.page) * _CHANNELS + channel
    sums = [
        sparse.csr_array((value, (index, np.arange(len(index)))), shape=(len(nonempty) * _CHANNELS, len(index)))
        @ framed
        for value in (sign * dynamics.weight, sign)
    ]
    per_frame = max(1.0, scaled.shape[1] / framed.shape[1])
    left, right = (part.astype(np.float32).reshape(len(nonempty), _CHANNELS, -1) for part in sums)
    neighbours = top_correlated(left, right, wanted, int(np.ceil(lags / per_frame)))
    return np.repeat(nonempty, neighbours.shape[1]), nonempty[neighbours.ravel()]


def pairs_sharing_words(dynamics: WordDynamics, wanted: int) -> tuple[Ints, Ints] | None:
    """All pairs of pages that share a word that varies on both, by an inverted index; None if there are too many."""
    pages = dynamics.pages
    names, word, carried = np.unique(dynamics.word, return_inverse=True, return_counts=True)
    if float((carried.astype(np.float64) ** 2).sum()) > _MAX_MEETINGS * pages:
        return None
    incidence = sparse.csr_array((np.ones(len(word), np.float32), (dynamics.page, word)), shape=(pages, len(names)))
    both = (incidence @ incidence.T).tocoo()
    other = both.row != both.col
    if other.sum() > _MAX_SHARING * wanted * pages:
        return None
    a, b = both.row[other].astype(np.int64), both.col[other].astype(np.int64)
    order = np.lexsort((b, a))
    return a[order], b[order]


def _batches(a: Ints, b: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Pairs in batches."""
    for start in range(0, len(a), _BATCH):
        yield a[start : start + _BATCH], b[start : start + _BATCH]


def _similarities(
    dynamics: WordDynamics,
    scaled: Float32s,
    a: Ints,
    b: Ints,
    how: str,
    lags: tuple[int, int],
) -> tuple[Ints, Ints, Floats, Ints]:
    """R's distance of pairs of pages, and the lag with the highest weighted correlation."""
    pair, mine, theirs = shared_words(dynamics, a, b)
    weighted = dynamics.weight[mine] > 0
    pair, mine, theirs = pair[weighted], mine[weighted], theirs[weighted]
    weight = dynamics.weight[mine].astype(np.float64)
    if how == "dtw":
        days = scaled.shape[1]
        framed = frame_means(scaled * np.float32(np.sqrt(days)), _FRAMES)
        similarity = _dtw_in_batches(framed, mine, theirs)
        return a, b, _sums(pair, weight * similarity, len(a)), np.zeros(len(a), np.int64)
    by_lag = lagged_correlations(scaled, scaled, mine, theirs, lags[1])[:, lags[0] :]
    similarity = by_lag.max(axis=1, initial=-1.0)
    summed = np.stack([_sums(pair, weight * column, len(a)) for column in by_lag.T], axis=1)
    return a, b, _sums(pair, weight * similarity, len(a)), summed.argmax(axis=1) + lags[0]


def shared_words(dynamics: WordDynamics, a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """The words that both pages of a pair have: the number of the pair, the series of `a`, the series of `b`."""
    first = dynamics.first
    lengths = (first[1:] - first[:-1])[a]
    pair = np.repeat(np.arange(len(a)), lengths)
    mine = first[a][pair] + np.arange(len(pair)) - (np.cumsum(lengths) - lengths)[pair]
    theirs = dynamics.index_of(b[pair], dynamics.word[mine])
    both = theirs >= 0
    return pair[both], mine[both], theirs[both]


def _sums(index: Ints, values: Floats, size: int) -> Floats:
    """The sum at each index, as float64 also when there are none."""
    return np.bincount(index, values, size).astype(np.float64, copy=False)


def _dtw_in_batches(series: Float32s, a: Ints, b: Ints) -> Float32s:
    """The DTW similarity of pairs of series."""
    parts = [slice(start, start + _BATCH) for start in range(0, len(a), _BATCH)]
    batches = [dtw_similarity(series[a[part]], series[b[part]]) for part in parts]
    return np.concatenate(batches) if batches else np.zeros(0, np.float32)


def top_experts(
    kind: str,
    pages: int,
    k: int,
    a: Ints,
    b: Ints,
    weight: Floats,
    lag: Ints,
    distance: Floats,
) -> Experts:
    """Experts from pairs of pages (`a` is the page, `b` its expert): for each page the k of least distance."""
    order = np.lexsort((b, distance, a))
    a, b, weight, lag = a[order], b[order], weight[order], lag[order]
    rank = np.arange(len(a)) - np.searchsorted(a, a)
    kept = rank < k
    width = int(rank[kept].max(initial=-1)) + 1
    experts = _no_experts(kind, pages, width)
    where = (a[kept], rank[kept])
    experts.page[where], experts.weight[where], experts.lag[where] = b[kept], weight[kept], lag[kept]
    return experts


def _no_experts(kind: str, pages: int, width: int = 0) -> Experts:
    shape = (pages, width)
    return Experts(kind, np.full(shape, NO_EXPERT, np.int32), np.zeros(shape, np.float32), np.zeros(shape, np.int32))
