"""Which pages can tell that another changes: expert selection (spec L4, L5; R §6).

graph       one step along links, in either direction; all count the same (R §6.1)
content     the k pages most alike by the cosine of their words (R §6.2)
xcorr       words that come and go on both, one page perhaps some days ahead (R §6.3, cross-correlation)
dtw         the same by dynamic time warping

R's temporal distance is Σ ω(w)·Q(Dyn(w, p), Dyn(w, e)) over the words of p. For all pairs that would be too much, so
candidates are found first. An inverted index gives the pages that share a word at all; where they are few, these are
all that can count, and the result is exact. Where too many share words, the words' series are summed with random signs
into a few channels, so that the product of two pages' channels is on average that very sum; they are cut into frames,
and one product of matrices for each lag gives all pairs. Then the candidates' distances are computed as R has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from recrawl.book import LinkGraph
from recrawl.columns import Float32s, Floats, Int32s, Ints
from recrawl.learn.experts.correlation import lagged, nearest, reduced, unit
from recrawl.learn.experts.dtw import likeness
from recrawl.learn.experts.word_dynamics import Dynamics

NOBODY = -1
_CHANNELS = 8
_FRAMES = 46
_CANDIDATES = 3
"""Times k: how many pages are compared closely."""
_LEAST_CANDIDATES = 60
_SHARED = 1_000
"""Times the pages: meetings of two pages under a word, up to which the index is asked."""
_PER_CANDIDATE = 4
"""Pages that share a word, for each candidate asked for, up to which all are compared closely."""
_PAIRS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Experts:
    """For every page those that may tell about it, the closest first; the page itself is not among them."""

    kind: str
    page: Int32s
    """Page by place: the expert, `NOBODY` where there are no more."""
    weight: Float32s
    """The relation: how much its vote counts; 0 for nobody."""
    lag: Int32s
    """By how many days it is ahead of the page, where that was looked at; else 0."""

    def first(self, k: int) -> Experts:
        """The k closest."""
        return Experts(self.kind, self.page[:, :k], self.weight[:, :k], self.lag[:, :k])

    def of(self, page: int) -> list[dict[str, Any]]:
        """The experts of one page as plain values: page, relation, weight, lag."""
        rows = zip(self.page[page].tolist(), self.weight[page].tolist(), self.lag[page].tolist(), strict=True)
        return [
            {"page": other, "relation": self.kind, "weight": weight, "lag": lag}
            for other, weight, lag in rows
            if other != NOBODY
        ]


def by_graph(links: LinkGraph, k: int) -> Experts:
    """Pages that link to a page or are linked from it; of more than k those with the fewest links, which say most.

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
    return ranked("graph", pages, k, a, b, np.ones(len(a)), np.zeros(len(a), np.int64), degree[b].astype(np.float64))


def by_content(counts: sparse.csr_array, k: int) -> Experts:
    """The k pages most alike by the cosine of their word counts (page by word); pages without words have nobody."""
    pages = counts.shape[0]
    some = np.flatnonzero(np.diff(counts.indptr))
    if len(some) < 2:
        return _nobody("content", pages)
    # It loads slowly, and only this way of choosing needs it.
    from sklearn.neighbors import NearestNeighbors  # lazy: loads slowly

    found = NearestNeighbors(n_neighbors=min(k + 1, len(some)), metric="cosine", algorithm="brute").fit(counts[some])
    distance, place = found.kneighbors(counts[some])
    a, b = np.repeat(some, place.shape[1]), some[place.ravel()]
    alike = np.clip(1 - distance.ravel(), 0.0, 1.0)
    kept = (a != b) & (alike > 0)
    zeros = np.zeros(int(kept.sum()), np.int64)
    return ranked("content", pages, k, a[kept], b[kept], alike[kept], zeros, -alike[kept])


def by_time(
    dynamics: Dynamics, k: int, how: str = "xcorr", lags: int = 7, seed: int = 0, candidates: int | None = None
) -> Experts:
    """The k pages whose words come and go most alike: `how` is xcorr or dtw."""
    pages = dynamics.pages
    scaled = unit(dynamics.series)
    several = candidates or max(_CANDIDATES * k, _LEAST_CANDIDATES)
    pairs = sharing(dynamics, several) or _candidates(dynamics, scaled, several, lags, seed)
    found = [_compared(dynamics, scaled, a, b, how, lags) for a, b in _parts(*pairs)]
    if not found:
        return _nobody(how, pages)
    a, b, alike, lag = (np.concatenate(column) for column in zip(*found, strict=True))
    kept = alike > 0
    return ranked(how, pages, k, a[kept], b[kept], alike[kept], lag[kept], -alike[kept])


def _candidates(dynamics: Dynamics, scaled: Float32s, several: int, lags: int, seed: int) -> tuple[Ints, Ints]:
    """Pairs of pages that are worth a closer look; a page whose words never vary is in none of them."""
    some = np.unique(dynamics.page).astype(np.int64)
    if several >= len(some) - 1:
        a, b = np.repeat(some, len(some)), np.tile(some, len(some))
        return a[a != b], b[a != b]
    rng = np.random.default_rng(seed)
    words = int(dynamics.word.max(initial=0)) + 1
    channel = rng.integers(_CHANNELS, size=words)[dynamics.word]
    sign = rng.choice(np.array([-1.0, 1.0], np.float32), size=words)[dynamics.word]
    small = reduced(scaled, _FRAMES)
    place = np.searchsorted(some, dynamics.page) * _CHANNELS + channel
    sums = [
        sparse.csr_array((value, (place, np.arange(len(place)))), shape=(len(some) * _CHANNELS, len(place))) @ small
        for value in (sign * dynamics.weight, sign)
    ]
    per_frame = max(1.0, scaled.shape[1] / small.shape[1])
    left, right = (part.astype(np.float32).reshape(len(some), _CHANNELS, -1) for part in sums)
    near = nearest(left, right, several, int(np.ceil(lags / per_frame)))
    return np.repeat(some, near.shape[1]), some[near.ravel()]


def sharing(dynamics: Dynamics, several: int) -> tuple[Ints, Ints] | None:
    """All pairs of pages that share a word whose series varies on both, by an inverted index; None if too many."""
    pages = dynamics.pages
    names, word, carried = np.unique(dynamics.word, return_inverse=True, return_counts=True)
    if float((carried.astype(np.float64) ** 2).sum()) > _SHARED * pages:
        return None
    held = sparse.csr_array((np.ones(len(word), np.float32), (dynamics.page, word)), shape=(pages, len(names)))
    both = (held @ held.T).tocoo()
    other = both.row != both.col
    if other.sum() > _PER_CANDIDATE * several * pages:
        return None
    a, b = both.row[other].astype(np.int64), both.col[other].astype(np.int64)
    order = np.lexsort((b, a))
    return a[order], b[order]


def _parts(a: Ints, b: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Pairs, some at a time."""
    for start in range(0, len(a), _PAIRS):
        yield a[start : start + _PAIRS], b[start : start + _PAIRS]


def _compared(
    dynamics: Dynamics,
    scaled: Float32s,
    a: Ints,
    b: Ints,
    how: str,
    lags: int,
) -> tuple[Ints, Ints, Floats, Ints]:
    """R's distance of pairs of pages, and the lag that the words' weights speak for."""
    pair, mine, theirs = shared(dynamics, a, b)
    spoken = dynamics.weight[mine] > 0
    pair, mine, theirs = pair[spoken], mine[spoken], theirs[spoken]
    weight = dynamics.weight[mine].astype(np.float64)
    if how == "dtw":
        days = scaled.shape[1]
        small = reduced(scaled * np.float32(np.sqrt(days)), _FRAMES)
        alike = _warped(small, mine, theirs)
        return a, b, _sums(pair, weight * alike, len(a)), np.zeros(len(a), np.int64)
    by_lag = lagged(scaled, scaled, mine, theirs, lags)
    alike = by_lag.max(axis=1, initial=-1.0)
    summed = np.stack([_sums(pair, weight * by_lag[:, lag], len(a)) for lag in range(lags + 1)], axis=1)
    return a, b, _sums(pair, weight * alike, len(a)), summed.argmax(axis=1)


def shared(dynamics: Dynamics, a: Ints, b: Ints) -> tuple[Ints, Ints, Ints]:
    """The words that pairs of pages have in common: the number of the pair, the series of `a`, that of `b`."""
    first = dynamics.first
    lengths = (first[1:] - first[:-1])[a]
    pair = np.repeat(np.arange(len(a)), lengths)
    mine = first[a][pair] + np.arange(len(pair)) - (np.cumsum(lengths) - lengths)[pair]
    theirs = dynamics.find(b[pair], dynamics.word[mine])
    both = theirs >= 0
    return pair[both], mine[both], theirs[both]


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    """The sum at each place, as fractions also when there are none."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _warped(series: Float32s, a: Ints, b: Ints) -> Float32s:
    """The likeness of pairs of series, some at a time."""
    parts = [slice(start, start + _PAIRS) for start in range(0, len(a), _PAIRS)]
    found = [likeness(series[a[part]], series[b[part]]) for part in parts]
    return np.concatenate(found) if found else np.zeros(0, np.float32)


def ranked(
    kind: str,
    pages: int,
    k: int,
    a: Ints,
    b: Ints,
    weight: Floats,
    lag: Ints,
    distance: Floats,
) -> Experts:
    """Experts from pairs of pages (`a` looks for experts, `b` is one): of each the k of least distance."""
    order = np.lexsort((b, distance, a))
    a, b, weight, lag = a[order], b[order], weight[order], lag[order]
    rank = np.arange(len(a)) - np.searchsorted(a, a)
    kept = rank < k
    wide = int(rank[kept].max(initial=-1)) + 1
    experts = _nobody(kind, pages, wide)
    where = (a[kept], rank[kept])
    experts.page[where], experts.weight[where], experts.lag[where] = b[kept], weight[kept], lag[kept]
    return experts


def _nobody(kind: str, pages: int, wide: int = 0) -> Experts:
    shape = (pages, wide)
    return Experts(kind, np.full(shape, NOBODY, np.int32), np.zeros(shape, np.float32), np.zeros(shape, np.int32))
