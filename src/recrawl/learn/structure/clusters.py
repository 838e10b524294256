"""Clusters of like pages (spec S4, T §4.3): built once from all pages, then kept up as pages change and are born.

The features of pages (see `features`) are cut by repeated bisection. What later pages need, the clusters of words, the
scales and the cuts, is kept: a page that is new or has changed is put into a cluster without building anything again.
The cluster distance d_CB is then a rank: 0 within a cluster, 1 to the cluster whose centroid is nearest, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters
from recrawl.errors import UsageError
from recrawl.learn.structure.bisection import Bisection, bisect
from recrawl.learn.structure.page_features import Features, PageFacts, learn_features

PER_CLUSTER = 3000
"""Pages of an average cluster in T's experiments (T §6)."""
_MANY = 20
_FEWEST = 10


def how_many(pages: int, per_cluster: int = PER_CLUSTER) -> int:
    """The number of clusters for so many pages.

    Small worlds would be one cluster by T's measure; they get 20, but none below 10 pages on average.

    >>> [how_many(pages) for pages in (300_000, 60_000, 5_000, 100, 2, 1)]
    [100, 20, 20, 10, 2, 1]
    """
    if per_cluster < 1:
        raise UsageError(f"a cluster of {per_cluster} pages cannot be; ask for 1 or more")
    size = min(per_cluster, max(pages / _MANY, _FEWEST))
    return min(max(round(pages / size), 2), max(pages, 1))


@dataclass(frozen=True, eq=False, slots=True)
class PageClusters:
    """Clusters, and how to find the cluster of a page. Made by `cluster`."""

    features: Features
    bisection: Bisection
    page: NDArray[np.int32]
    """One per page: its cluster, -1 for a page in none yet."""

    @property
    def clusters(self) -> Clusters:
        """What policies see."""
        return Clusters(self.page, self.bisection.nearest)

    def assign(self, facts: PageFacts) -> NDArray[np.int32]:
        """The clusters that pages belong to, by what they are like; nothing is changed."""
        return self.bisection.assign(self.features.of(facts).astype(np.float64))

    def updated(self, pages: NDArray[np.int64], facts: PageFacts) -> PageClusters:
        """The same clusters with these pages, changed or new, in the ones that they belong to now."""
        known = self.page
        page: NDArray[np.int32] = np.full(max(len(known), int(pages.max(initial=-1)) + 1), -1, np.int32)
        page[: len(known)] = known
        page[pages] = self.assign(facts)
        return replace(self, page=page)


def cluster(facts: PageFacts, rng: np.random.Generator, *, per_cluster: int = PER_CLUSTER) -> PageClusters:
    """Build the clusters of pages."""
    features, matrix = learn_features(facts, rng)
    bisection = bisect(matrix.astype(np.float64), how_many(len(facts), per_cluster), rng)
    return PageClusters(features, bisection, bisection.of)
