"""Clusters of like pages (spec S4) of a history: what a replay of T's cluster policy needs."""

from __future__ import annotations

import numpy as np

from recrawl.book import Clusters
from recrawl.lab.histories.history import ABSENT, History
from recrawl.learn.structure.clusters import PER_CLUSTER, cluster
from recrawl.learn.structure.page_features import PageFacts


def clusters_of(
    history: History, facts: PageFacts, rng: np.random.Generator, *, per_cluster: int = PER_CLUSTER
) -> Clusters:
    """The clusters of a history's pages, from the facts of each page when it was first there.

    Built from the pages that are there at the start, as a crawler would; those that are born later are put where
    they belong by the facts they are born with.
    """
    begin = history.first[:-1]
    old = (history.time[begin] == 0) & (history.version[begin] != ABSENT)
    present, later = np.flatnonzero(old), np.flatnonzero(~old)
    if not len(later):
        return cluster(facts, rng, per_cluster=per_cluster).clusters
    built = cluster(facts.take(present), rng, per_cluster=per_cluster)
    of = np.empty(len(history), np.int32)
    of[present] = built.page
    of[later] = built.assign(facts.take(later))
    return Clusters(of, built.clusters.nearest)
