"""The topics of pages as ten numbers each (T §4.3).

The tf·idf vectors of pages are clustered; the ten largest clusters are the dimensions, and a page's value in one is the
rank of its own cluster by distance from it. T does not say how to cluster hundreds of thousands of vectors of a hundred
thousand words. Here they are reduced to 64 dimensions (latent semantic analysis, learned from a sample of the pages),
projected on the unit sphere, and bisected. Only a slice of the pages is held as tf·idf at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.extras import scipy, sklearn, threadpoolctl
from recrawl.learn.structure.bisection import Bisection, bisect

DIMENSIONS = 10
"""The number of largest clusters, each a dimension (T §4.3)."""
_TOPICS = 40
"""Clusters of pages by words. T gives no number; it must be well above ten for the ten largest to be meaningful."""
_FEWEST = 10
"""Minimum mean pages per topic."""
_DIRECTIONS = 64
_SAMPLE = 10_000
"""Pages from which the directions are learned; more cost time and change them little."""
_SLICE = 8_192
"""Pages held as tf·idf at once."""


@dataclass(frozen=True, eq=False, slots=True)
class Topics:
    """Clusters of pages by their words; built by `find_topics`."""

    idf: NDArray[np.float32]
    """One per word."""
    directions: NDArray[np.float32]
    """Words by directions."""
    bisection: Bisection
    rank: NDArray[np.int32]
    """Row c, column f: the number of topics nearer to the f-th largest topic than topic c; 0 for itself."""

    def of(self, words: scipy.sparse.csr_array) -> NDArray[np.int32]:
        """Return each page's topic from its word counts."""
        return self.bisection.assign(_placed(words, self.idf, self.directions))

    def ranks(self, topic: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the ten numbers of pages from their topics."""
        return self.rank[topic]


def find_topics(words: scipy.sparse.csr_array, rng: np.random.Generator) -> Topics:
    """Cluster pages by their words.

    >>> words = scipy.sparse.csr_array([[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 4], [0, 0, 2, 1]])
    >>> topics = find_topics(words, np.random.default_rng(1))
    >>> topics.ranks(topics.of(words))[:, 0].tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """
    pages = words.shape[0]
    idf = np.log((1 + pages) / (1 + _found_on(words))).astype(np.float32)
    directions = _directions(words, idf, rng)
    bisection = bisect(_placed(words, idf, directions), min(_TOPICS, max(2, pages // _FEWEST)), rng)
    return Topics(idf, directions, bisection, _ranks(bisection))


def _found_on(words: scipy.sparse.csr_array) -> NDArray[np.int64]:
    """Return the number of pages with each word; in slices, since counting copies 32-bit numbers to 64 bits."""
    found: NDArray[np.int64] = np.zeros(words.shape[1], np.int64)
    for begin, end in _slices(words.shape[0]):
        found += np.bincount(words.indices[words.indptr[begin] : words.indptr[end]], minlength=words.shape[1])
    return found


def _directions(
    words: scipy.sparse.csr_array, idf: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return the main directions of a sample of the pages, as tf·idf on the unit sphere."""
    pages = words.shape[0]
    sample = words if pages <= _SAMPLE else words[np.sort(rng.choice(pages, _SAMPLE, replace=False))]
    # A word on a single page or on all pages does not distinguish pages.
    shared = np.flatnonzero((_found_on(sample) > 1) & (idf > 0))
    directions: NDArray[np.float32] = np.zeros((words.shape[1], min(_DIRECTIONS, max(1, len(shared)))), np.float32)
    if len(shared) <= _DIRECTIONS:
        directions[shared, np.arange(len(shared))] = 1
    else:
        seed = int(rng.integers(2**31))
        size = min(_DIRECTIONS, pages)
        with threadpoolctl.threadpool_limits(1):
            _, _, axes = sklearn.utils.extmath.randomized_svd(
                _weighted(sample, idf)[:, shared], size, n_iter=2, random_state=seed
            )
        directions[shared, :size] = axes.T
    return directions


def _placed(
    words: scipy.sparse.csr_array, idf: NDArray[np.float32], directions: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return pages on the unit sphere of the directions; a page without any of the words is at the centre."""
    places: NDArray[np.float32] = np.empty((words.shape[0], directions.shape[1]), np.float32)
    for begin, end in _slices(words.shape[0]):
        places[begin:end] = _weighted(words[begin:end], idf) @ directions
    lengths = np.sqrt(np.einsum("ij,ij->i", places, places))
    places /= np.where(lengths > 1e-6, lengths, 1)[:, None]
    return places


def _slices(pages: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + _SLICE, pages)) for begin in range(0, pages, _SLICE))


def _weighted(words: scipy.sparse.csr_array, idf: NDArray[np.float32]) -> scipy.sparse.csr_array:
    """Return counts as tf·idf, each page of length 1."""
    values = words.data.astype(np.float32) * idf[words.indices]
    page = np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))
    lengths = np.sqrt(np.bincount(page, weights=values.astype(np.float64) ** 2, minlength=words.shape[0]))
    values /= np.where(lengths > 0, lengths, 1).astype(np.float32)[page]
    return scipy.sparse.csr_array((values, words.indices, words.indptr), shape=words.shape)


def _ranks(bisection: Bisection) -> NDArray[np.int32]:
    """Return topics by dimensions; dimensions without a topic are 0."""
    sizes = np.bincount(bisection.of, minlength=len(bisection))
    largest = np.argsort(-sizes, kind="stable")[:DIMENSIONS]
    ranks: NDArray[np.int32] = np.zeros((len(bisection), DIMENSIONS), np.int32)
    for dimension, topic in enumerate(largest):
        ranks[bisection.nearest[topic], dimension] = np.arange(len(bisection))
    return ranks
