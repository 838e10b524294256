"""Conversion of clusters to named arrays for storage, and back.

Most of the data is a number per word for each direction of the topics, and most words have none; so only words that
occur on some page are stored. The groups of the pages that the splits were built from are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.learn.structure.bisection import Bisection, by_distance
from recrawl.learn.structure.clusters import PageClusters
from recrawl.learn.structure.page_features import Features
from recrawl.learn.structure.topics import Topics

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
