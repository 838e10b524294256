"""What pages are about, as ten numbers each (T §4.3): the tf·idf vectors are clustered, the ten largest clusters are
the dimensions, and a page's value in one says how near its own cluster is to it, as a rank.

T does not say how to cluster hundreds of thousands of vectors of a hundred thousand words. We bring them to 64
dimensions first (latent semantic analysis, learned from a sample of the pages), put them on the unit sphere, and
bisect. Only a slice of the pages is held as tf·idf at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from recrawl.learn.structure.bisection import Bisection, bisect

DIMENSIONS = 10
"""The largest clusters, each a dimension (T §4.3)."""
_TOPICS = 40
"""Clusters of words. T names no number; it has to be well above ten for the ten largest to mean something."""
_FEWEST = 10
"""Pages of an average topic at least, so that small worlds have fewer."""
_DIRECTIONS = 64
_SAMPLE = 10_000
"""Pages that the directions are learned from: more change them little and cost time."""
_SLICE = 8_192
"""Pages that are held as tf·idf at a time."""


@dataclass(frozen=True, eq=False, slots=True)
class Topics:
    """Clusters of pages by their words. Made by `find_topics`."""

    idf: NDArray[np.float32]
    """One per word."""
    directions: NDArray[np.float32]
    """Words by directions."""
    bisection: Bisection
    rank: NDArray[np.int32]
    """Row c, column f: how many topics are nearer to the f-th largest topic than topic c is; 0 for itself."""

    def of(self, words: scipy.sparse.csr_array) -> NDArray[np.int32]:
        """Each page's topic, given its word counts."""
        return self.bisection.assign(_placed(words, self.idf, self.directions))

    def ranks(self, topic: NDArray[np.int32]) -> NDArray[np.int32]:
        """The ten numbers of pages, given their topics."""
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
    """The pages that each word is on. In slices, since to count numbers of 32 bits is to copy them to 64."""
    found: NDArray[np.int64] = np.zeros(words.shape[1], np.int64)
    for begin, end in _slices(words.shape[0]):
        found += np.bincount(words.indices[words.indptr[begin] : words.indptr[end]], minlength=words.shape[1])
    return found


def _directions(
    words: scipy.sparse.csr_array, idf: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Where a sample of the pages, as tf·idf on the unit sphere, spreads most."""
    pages = words.shape[0]
    sample = words if pages <= _SAMPLE else words[np.sort(rng.choice(pages, _SAMPLE, replace=False))]
    # A word on one page alone joins no pages, and one on all of them parts none.
    shared = np.flatnonzero((_found_on(sample) > 1) & (idf > 0))
    directions: NDArray[np.float32] = np.zeros((words.shape[1], min(_DIRECTIONS, max(1, len(shared)))), np.float32)
    if len(shared) <= _DIRECTIONS:
        directions[shared, np.arange(len(shared))] = 1
    else:
        seed = int(rng.integers(2**31))
        size = min(_DIRECTIONS, pages)
        from sklearn.utils import extmath as sklearn  # lazy: slow to load: see `bisection`

        with threadpool_limits(1):
            _, _, axes = sklearn.randomized_svd(_weighted(sample, idf)[:, shared], size, n_iter=2, random_state=seed)
        directions[shared, :size] = axes.T
    return directions


def _placed(
    words: scipy.sparse.csr_array, idf: NDArray[np.float32], directions: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Pages on the unit sphere of the directions; one without a word that counts is at the centre."""
    places: NDArray[np.float32] = np.empty((words.shape[0], directions.shape[1]), np.float32)
    for begin, end in _slices(words.shape[0]):
        places[begin:end] = _weighted(words[begin:end], idf) @ directions
    lengths = np.sqrt(np.einsum("ij,ij->i", places, places))
    places /= np.where(lengths > 1e-6, lengths, 1)[:, None]
    return places


def _slices(pages: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + _SLICE, pages)) for begin in range(0, pages, _SLICE))


def _weighted(words: scipy.sparse.csr_array, idf: NDArray[np.float32]) -> scipy.sparse.csr_array:
    """Counts as tf·idf, each page of length 1."""
    values = words.data.astype(np.float32) * idf[words.indices]
    page = np.repeat(np.arange(words.shape[0]), np.diff(words.indptr))
    lengths = np.sqrt(np.bincount(page, weights=values.astype(np.float64) ** 2, minlength=words.shape[0]))
    values /= np.where(lengths > 0, lengths, 1).astype(np.float32)[page]
    return scipy.sparse.csr_array((values, words.indices, words.indptr), shape=words.shape)


def _ranks(bisection: Bisection) -> NDArray[np.int32]:
    """Topics by dimensions; dimensions that no topic is left for are 0 throughout."""
    sizes = np.bincount(bisection.of, minlength=len(bisection))
    largest = np.argsort(-sizes, kind="stable")[:DIMENSIONS]
    ranks: NDArray[np.int32] = np.zeros((len(bisection), DIMENSIONS), np.int32)
    for dimension, topic in enumerate(largest):
        ranks[bisection.nearest[topic], dimension] = np.arange(len(bisection))
    return ranks
