"""All pages within distance d of some pages, nearest first: by directory, by link, by cluster (spec S2, S3, S4).

A finder is made for one cycle. `around` brings the pages near to a batch of seeds, one array per distance, so that
whoever has had enough just stops asking. `free` says which pages are still wanted; what was brought must be taken out
of it before the next array is asked for, and a finder need not bring a page a second time. That keeps the work in
bounds: a hub that is the parent of thousands of seeds is looked at once in a cycle, not once per seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters, Directories, LinkGraph
from recrawl.columns import unique
from recrawl.model import Pages

Free = NDArray[np.bool_]
Near = Iterator[tuple[int, Pages]]


class Finder(Protocol):
    """Anything that knows which pages are near."""

    def around(self, seeds: Pages, free: Free) -> Near:
        """Pairs of a distance and the free pages at that distance from the nearest seed; nearest first."""
        ...


def within(finder: Finder, seeds: Pages, pages: int) -> Pages:
    """All pages within reach of the seeds, the seeds left out; in ascending order.

    >>> tree = Directories(np.array([-1, 0, 0]), np.array([0, 1, 1], np.int32))
    >>> within(ByDirectory(np.array([0, 1, 1, 2]), tree, d=1), np.array([1]), 4).tolist()
    [0, 2]
    """
    free = np.ones(pages, bool)
    free[seeds] = False
    found = [np.zeros(0, np.int64)]
    for _, near in finder.around(seeds, free):
        free[near] = False
        found.append(near)
    return np.sort(np.concatenate(found))


class ByDirectory:
    """Pages whose directory is within d steps in the tree of directories (see `distance.directory_distance`).

    Directories are put in an order in which those of one level stand together, children in the order of their
    parents. Then what lies b levels below a directory is one stretch of the order, and so are its pages.
    """

    def __init__(self, folder: NDArray[np.int64], folders: Directories | None, d: int) -> None:
        if folders is None:
            # Without a tree one can still tell whether two pages have the same directory.
            numbers, folder = np.unique(folder, return_inverse=True)
            folders = Directories(np.full(len(numbers), -1), np.zeros(len(numbers), np.int32))
        self._d = d
        place, self._parent, self._below = _ordered(folders)
        self._place = place[folder]
        self._pages = np.argsort(self._place, kind="stable")
        self._first = _starts(np.bincount(self._place, minlength=len(place)))
        self._height = int(folders.level.max(initial=0))

    def around(self, seeds: Pages, free: Free) -> Near:
        """Up `up` levels and down `down`: positive while down <= up, negative otherwise."""
        above = [unique(self._place[seeds])]
        for _ in range(min(abs(self._d), self._height)):
            parents = self._parent[above[-1]]
            above.append(unique(parents[parents >= 0]))
        for steps in range(abs(self._d) + 1):
            ways = [
                (up, steps - up)
                for up in range(min(steps, len(above) - 1) + 1)
                if steps == 0 or (steps - up <= up) == (self._d > 0)
            ]
            found = [self._under(above[up], down) for up, down in ways if down <= self._height]
            pages = np.concatenate([np.zeros(0, np.int64), *found])
            pages = pages[free[pages]]
            yield steps if self._d > 0 else -steps, pages if len(ways) == 1 else unique(pages)

    def _under(self, directories: NDArray[np.int64], down: int) -> Pages:
        """The pages that lie exactly so many levels below. A directory has one parent, so none comes twice."""
        low, high = directories, directories + 1
        for _ in range(down):
            low, high = self._below[low], self._below[high]
        return self._pages[_stretches(self._first[low], self._first[high])]


class ByLink:
    """Siblings, and pages within d hops: along out-links when d > 0, along in-links when d < 0.

    (See `distance.link_distance`.) What is remembered: which parents were asked for their children, and with how many
    hops to go a page was passed. A second time it could lead to nothing that was not brought before.
    """

    def __init__(self, links: LinkGraph | None, pages: int, d: int) -> None:
        links = fitted(links, pages)
        self._out, self._in = links, links.turned()
        self._d = d
        self._asked = np.zeros(pages, bool)
        self._to_go = np.zeros(pages, np.int32)

    def around(self, seeds: Pages, free: Free) -> Near:
        """Siblings are at 0, whatever other path there is."""
        parents = self._onward(self._in, seeds)
        parents = parents[~self._asked[parents]]
        self._asked[parents] = True
        siblings = self._onward(self._out, parents)
        yield 0, siblings[free[siblings]]
        graph, edge = self._out if self._d > 0 else self._in, seeds
        for hops in range(1, abs(self._d) + 1):
            to_go = abs(self._d) + 1 - hops
            edge = edge[self._to_go[edge] < to_go]
            self._to_go[edge] = to_go
            edge = self._onward(graph, edge)
            if not len(edge):
                return
            yield hops if self._d > 0 else -hops, edge[free[edge]]

    def _onward(self, graph: LinkGraph, pages: Pages) -> Pages:
        """Where one hop leads from these pages; each page once."""
        reached = graph.target[_stretches(graph.start[pages], graph.start[pages + 1])]
        if len(reached) < len(graph) // 32:
            return unique(reached).astype(np.int64)
        # A mark per page is cheaper than sorting when there are many.
        mark = np.zeros(len(graph), bool)
        mark[reached] = True
        return np.flatnonzero(mark)


class ByCluster:
    """Pages of the same cluster, then of the d clusters whose centroids are nearest to its own (spec S4).

    The distance is a rank, so it is never negative, and with d < 0 nobody is near. A page in no cluster has nobody.
    """

    def __init__(self, clusters: Clusters | None, pages: int, d: int) -> None:
        if clusters is None:
            clusters = Clusters(np.full(pages, -1, np.int32), np.zeros((0, 0), np.int32))
        self._of = np.full(pages, -1, np.int64)
        self._of[: len(clusters.of)] = clusters.of
        self._nearest = clusters.nearest
        self._d = d
        # Pages in no cluster come first, before the first stretch.
        self._pages = np.argsort(self._of, kind="stable")
        self._first = np.cumsum(np.bincount(self._of + 1, minlength=len(clusters.nearest) + 1))

    def around(self, seeds: Pages, free: Free) -> Near:
        """One array per rank."""
        own = np.unique(self._of[seeds])
        own = own[own >= 0]
        for rank in range(min(self._d + 1, self._nearest.shape[1])):
            there = unique(self._nearest[own, rank])
            pages = self._pages[_stretches(self._first[there], self._first[there + 1])]
            yield rank, pages[free[pages]]


def fitted(links: LinkGraph | None, pages: int) -> LinkGraph:
    """The links of so many pages; pages that came later than the links have none.

    >>> fitted(LinkGraph(np.array([0, 1]), np.array([0], np.int32)), 3).start.tolist()
    [0, 1, 1, 1]
    """
    if links is None:
        return LinkGraph(np.zeros(pages + 1, np.int64), np.zeros(0, np.int32))
    if len(links) == pages:
        return links
    return LinkGraph(np.append(links.start, np.full(pages - len(links), links.start[-1])), links.target)


def _ordered(folders: Directories) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The order of directories by level and parent: each one's place; then by place the parent's, where children begin.

    >>> [part.tolist() for part in _ordered(Directories(np.array([2, 0, -1, 2]), np.array([1, 2, 0, 1], np.int32)))]
    [[1, 3, 0, 2], [-1, 0, 0, 1], [1, 3, 4, 4, 4]]
    """
    count = len(folders.parent)
    place = np.full(count, -1, np.int64)
    parent = np.full(count, -1, np.int64)
    begun = 0
    for level in range(int(folders.level.max(initial=-1)) + 1):
        here = np.flatnonzero(folders.level == level)
        mother = np.full(len(here), -1) if level == 0 else place[folders.parent[here]]
        order = np.argsort(mother, kind="stable")
        place[here[order]] = np.arange(begun, begun + len(here))
        parent[begun : begun + len(here)] = mother[order]
        begun += len(here)
    tops = int(np.count_nonzero(parent < 0))
    return place, parent, tops + _starts(np.bincount(parent[parent >= 0], minlength=count))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of some stretches of these lengths begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(counts)))


def _stretches(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of all stretches low to high, one stretch after the other.

    >>> _stretches(np.array([3, 7]), np.array([5, 10])).tolist()
    [3, 4, 7, 8, 9]
    """
    size = high - low
    ends = np.cumsum(size)
    return np.repeat(low - ends + size, size) + np.arange(ends[-1] if len(ends) else 0)
