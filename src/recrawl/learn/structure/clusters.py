"""Clusters of similar pages (spec S4, T §4.3): built once from all pages, then updated as pages change and appear.

The features of pages (see `page_features`) are split by repeated bisection. Topics, scales and splits are stored, so
that a new or changed page is assigned to a cluster without building the clusters again. The cluster distance d_CB is a
rank: 0 within a cluster, 1 to the cluster with the nearest centroid, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters
from recrawl.errors import UsageError
from recrawl.learn.structure.bisection import Bisection, bisect, by_distance
from recrawl.learn.structure.page_features import Features, PageFacts, learn_features
from recrawl.learn.structure.topics import Topics

PER_CLUSTER = 3000
"""Mean pages per cluster in T's experiments (T §6)."""
_MANY = 20
_FEWEST = 10


def how_many(pages: int, per_cluster: int = PER_CLUSTER) -> int:
    """Return the number of clusters for a number of pages.

    Small worlds would be one cluster by T's size; they get 20 clusters, but at least 10 pages per cluster on average.

    >>> [how_many(pages) for pages in (300_000, 60_000, 5_000, 100, 2, 1)]
    [100, 20, 20, 10, 2, 1]
    """
    if per_cluster < 1:
        raise UsageError(f"the number of pages per cluster must be 1 or more, not {per_cluster}")
    size = min(per_cluster, max(pages / _MANY, _FEWEST))
    return min(max(round(pages / size), 2), max(pages, 1))


@dataclass(frozen=True, eq=False, slots=True)
class PageClusters:
    """Clusters, and what assigns pages to them; built by `cluster`."""

    features: Features
    bisection: Bisection
    page: NDArray[np.int32]
    """One per page: its cluster, -1 for a page in none yet."""

    @property
    def clusters(self) -> Clusters:
        """The clusters as policies see them."""
        return Clusters(self.page, self.bisection.nearest)

    def assign(self, facts: PageFacts) -> NDArray[np.int32]:
        """Return the clusters of pages by their features; changes nothing."""
        return self.bisection.assign(self.features.of(facts).astype(np.float64))

    def updated(self, pages: NDArray[np.int64], facts: PageFacts) -> PageClusters:
        """Return the same clusters with new or changed pages assigned again."""
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


# --------------------------------------------------------------------------------------------------------------------
# Conversion of clusters to named arrays for storage, and back.
#
# Most of the data is a number per word for each direction of the topics, and most words have none; so only words that
# occur on some page are stored. The groups of the pages that the splits were built from are left out.


Arrays = dict[str, NDArray[Any]]


def packed(built: PageClusters) -> Arrays:
    """Convert clusters to arrays."""
    features = built.features
    return {
        "page": built.page,
        "domains": features.domains,
        "mean": features.mean,
        "scale": features.scale,
        **_named("cuts", _bisection(built.bisection)),
        **_named("content", _topics(features.content)),
        **_named("address", _topics(features.address)),
    }


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> PageClusters:
    """Convert arrays back to clusters, which assign pages as before."""
    topics = (_topics_of(_under("content", arrays)), _topics_of(_under("address", arrays)))
    features = Features(*topics, arrays["domains"], arrays["mean"], arrays["scale"])
    return PageClusters(features, _bisection_of(_under("cuts", arrays)), arrays["page"])


def _topics(topics: Topics) -> Arrays:
    unseen = topics.idf.max(initial=0)
    word = np.flatnonzero((topics.idf != unseen) | topics.directions.any(axis=1))
    return {
        "width": np.array(len(topics.idf)),
        "unseen": np.array(unseen),
        "word": word.astype(np.int32),
        "idf": topics.idf[word],
        "directions": topics.directions[word],
        "rank": topics.rank,
        **_named("cuts", _bisection(topics.bisection)),
    }


def _topics_of(arrays: Arrays) -> Topics:
    word, width = arrays["word"], int(arrays["width"])
    idf: NDArray[np.float32] = np.full(width, arrays["unseen"], np.float32)
    idf[word] = arrays["idf"]
    directions: NDArray[np.float32] = np.zeros((width, arrays["directions"].shape[1]), np.float32)
    directions[word] = arrays["directions"]
    return Topics(idf, directions, _bisection_of(_under("cuts", arrays)), arrays["rank"])


def _bisection(cut: Bisection) -> Arrays:
    return {"centroids": cut.centroids, "centres": cut.centres, "below": cut.below, "leaf": cut.leaf}


def _bisection_of(arrays: Arrays) -> Bisection:
    nobody: NDArray[np.int32] = np.zeros(0, np.int32)
    nearest = by_distance(arrays["centroids"])
    return Bisection(nobody, arrays["centroids"], nearest, arrays["centres"], arrays["below"], arrays["leaf"])


def _named(part: str, arrays: Arrays) -> Arrays:
    return {f"{part} {name}": array for name, array in arrays.items()}


def _under(part: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {name.removeprefix(f"{part} "): array for name, array in arrays.items() if name.startswith(f"{part} ")}
