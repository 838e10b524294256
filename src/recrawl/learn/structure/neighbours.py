"""All pages within distance d of given pages, nearest first: by directory, link or cluster (spec S2, S3, S4).

A finder serves one cycle. `around` yields the pages near a batch of seeds, one array per distance, so that the caller
can stop early. `free` marks the pages that may be returned; the caller removes returned pages from it before the next
array. A finder need not return a page twice, which limits the work: a page that links to thousands of seeds is expanded
once per cycle, not once per seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters, Directories, LinkGraph
from recrawl.columns import Floats, Int32s, Ints, unique
from recrawl.learn.structure.pagerank import pagerank
from recrawl.model import Pages

Free = NDArray[np.bool_]
Near = Iterator[tuple[int, Pages]]


class Finder(Protocol):
    """Anything that finds the pages near given pages."""

    def around(self, seeds: Pages, free: Free) -> Near:
        """Yield pairs of a distance and the free pages at that distance from the nearest seed, nearest first."""
        ...


def within(finder: Finder, seeds: Pages, pages: int) -> Pages:
    """Return all pages within reach of the seeds, without the seeds, in ascending order.

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
    """Pages whose directory is within d steps in the tree of directories (T eq. 2).

    Directories are ordered by level, and by parent within a level. So the directories b levels below a directory are
    consecutive, and so are their pages.
    """

    def __init__(self, folder: NDArray[np.int64], folders: Directories | None, d: int) -> None:
        if folders is None:
            # Without a tree, only pages of the same directory are neighbours.
            numbers, folder = np.unique(folder, return_inverse=True)
            folders = Directories(np.full(len(numbers), -1), np.zeros(len(numbers), np.int32))
        self._d = d
        place, self._parent, self._below = _ordered(folders)
        self._place = place[folder]
        self._pages = np.argsort(self._place, kind="stable")
        self._first = _starts(np.bincount(self._place, minlength=len(place)))
        self._height = int(folders.level.max(initial=0))

    def around(self, seeds: Pages, free: Free) -> Near:
        """Go up `up` levels and down `down`: the distance is positive while down <= up, negative otherwise."""
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
        """Return the pages exactly `down` levels below; each once, since a directory has one parent."""
        low, high = directories, directories + 1
        for _ in range(down):
            low, high = self._below[low], self._below[high]
        return self._pages[_stretches(self._first[low], self._first[high])]


class ByLink:
    """Siblings, and pages within d hops: along out-links when d > 0, along in-links when d < 0.

    (T eq. 1.) The finder stores which parents it has expanded, and with how many remaining hops it has passed a page; a
    second expansion would find no further pages.
    """

    def __init__(self, links: LinkGraph | None, pages: int, d: int) -> None:
        links = fitted(links, pages)
        self._out, self._in = links, links.reversed()
        self._d = d
        self._asked = np.zeros(pages, bool)
        self._to_go = np.zeros(pages, np.int32)

    def around(self, seeds: Pages, free: Free) -> Near:
        """Siblings are at distance 0, whatever other paths exist."""
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
        """Return the pages one hop from these pages, each once."""
        reached = graph.target[_stretches(graph.start[pages], graph.start[pages + 1])]
        if len(reached) < len(graph) // 32:
            return unique(reached).astype(np.int64)
        # For many pages, a flag per page is faster than sorting.
        mark = np.zeros(len(graph), bool)
        mark[reached] = True
        return np.flatnonzero(mark)


class ByCluster:
    """Pages of the same cluster, then of the d clusters whose centroids are nearest to its own (spec S4).

    The distance is a rank and never negative; with d < 0 no page is near. A page in no cluster has no neighbours. With
    `of_page`, the rank of the sample's cluster counts among those nearest to the other page's.
    """

    def __init__(self, clusters: Clusters | None, pages: int, d: int, *, of_page: bool = False) -> None:
        if clusters is None:
            clusters = Clusters(np.full(pages, -1, np.int32), np.zeros((0, 0), np.int32))
        self._of = np.full(pages, -1, np.int64)
        self._of[: len(clusters.of)] = clusters.of
        self._nearest = clusters.nearest
        self._of_page = of_page
        self._d = d
        # Pages in no cluster come first, before the first stretch.
        self._pages = np.argsort(self._of, kind="stable")
        self._first = np.cumsum(np.bincount(self._of + 1, minlength=len(clusters.nearest) + 1))

    def around(self, seeds: Pages, free: Free) -> Near:
        """Yield one array per rank."""
        own = np.unique(self._of[seeds])
        own = own[own >= 0]
        for rank in range(min(self._d + 1, self._nearest.shape[1])):
            if self._of_page:
                there = np.flatnonzero(np.isin(self._nearest[:, rank], own))
            else:
                there = unique(self._nearest[own, rank])
            pages = self._pages[_stretches(self._first[there], self._first[there + 1])]
            yield rank, pages[free[pages]]


def fitted(links: LinkGraph | None, pages: int) -> LinkGraph:
    """Extend a link graph to a number of pages; pages added after the graph was built have no links.

    >>> fitted(LinkGraph(np.array([0, 1]), np.array([0], np.int32)), 3).start.tolist()
    [0, 1, 1, 1]
    """
    if links is None:
        return LinkGraph(np.zeros(pages + 1, np.int64), np.zeros(0, np.int32))
    if len(links) == pages:
        return links
    return LinkGraph(np.append(links.start, np.full(pages - len(links), links.start[-1])), links.target)


def _ordered(folders: Directories) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Order directories by level and parent; return each one's place and, by place, its parent's and its children's.

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
    """Return the starts of consecutive ranges of these lengths, and the end of the last."""
    return np.concatenate(([0], np.cumsum(counts)))


def _stretches(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of all ranges low to high, one range after the other.

    >>> _stretches(np.array([3, 7]), np.array([5, 10])).tolist()
    [3, 4, 7, 8, 9]
    """
    size = high - low
    ends = np.cumsum(size)
    return np.repeat(low - ends + size, size) + np.arange(ends[-1] if len(ends) else 0)


# --------------------------------------------------------------------------------------------------------------------
# Which of the pages found and not yet visited to visit first: by importance or by path length (Q §2.1, spec K6).
#
# Every visited page brings links, so both ranks change as the crawl goes on:
#
#     importance    rank(p) = 1 - damping + damping * sum of rank(q) / links(q) over the visited pages q that link to p
#     path          the least number of links from a seed to p over the visited pages
#
# Importance is PageRank (T eq. 9, times the number of pages) of the links seen so far, except that a page passes on its
# rank once, when it is visited: the cash of OPIC (Abiteboul, Preda and Cobena 2003). A crawl that starts with links in
# the repository starts with their PageRank.


DAMPING = 0.85


class FrontierRank(Protocol):
    """Ranks of pages that change as links are found."""

    def found(self, page: int, depth: int) -> None:
        """A page was found, so many links from a seed."""
        ...

    def visited(self, page: int, links: Int32s) -> None:
        """A page was visited and links to these pages."""
        ...

    def of(self, pages: Ints) -> Floats:
        """Return the ranks of pages; the page with the highest is visited first."""
        ...


class ImportanceRank:
    """The importance of pages, 1 on average at the start.

    >>> rank = ImportanceRank(np.ones(1))
    >>> rank.visited(0, np.array([1, 2], np.int32))
    >>> rank.visited(1, np.array([2], np.int32))
    >>> rank.of(np.arange(3)).round(3).tolist()
    [1.0, 0.575, 1.064]
    """

    def __init__(self, start: Floats) -> None:
        self._rank = start.astype(np.float64)

    @classmethod
    def of_links(cls, links: LinkGraph) -> ImportanceRank:
        """Start from the PageRank of known links."""
        return cls(pagerank(links, damping=DAMPING) * len(links))

    def found(self, page: int, depth: int) -> None:
        """A seed starts with the mean rank, any other page with the rank of a page without links to it."""
        self._rank = _grown(self._rank, page + 1, 1 - DAMPING)
        if depth == 0:
            self._rank[page] = max(1.0, self._rank[page])

    def visited(self, page: int, links: Int32s) -> None:
        """Pass the page's rank on to the pages that it links to."""
        self._rank = _grown(self._rank, max(page, int(links.max(initial=0))) + 1, 1 - DAMPING)
        if len(links):
            np.add.at(self._rank, links, DAMPING * self._rank[page] / len(links))

    def of(self, pages: Ints) -> Floats:
        """Return the ranks of pages."""
        self._rank = _grown(self._rank, int(pages.max(initial=-1)) + 1, 1 - DAMPING)
        return self._rank[pages]


class PathRank:
    """Minus the path length of pages.

    >>> rank = PathRank(np.zeros(1))
    >>> rank.found(1, 5)
    >>> rank.of(np.arange(2)).tolist()
    [-0.0, -5.0]
    >>> rank.visited(0, np.array([1], np.int32))  # a shorter path
    >>> rank.of(np.arange(2)).tolist()
    [-0.0, -1.0]
    """

    def __init__(self, start: NDArray[Any]) -> None:
        self._length = start.astype(np.float64)

    def found(self, page: int, depth: int) -> None:
        """Take the depth as the length of the first path."""
        self._length = _grown(self._length, page + 1, np.inf)
        self._length[page] = min(self._length[page], depth)

    def visited(self, page: int, links: Int32s) -> None:
        """Shorten the paths to the pages that it links to."""
        self._length = _grown(self._length, max(page, int(links.max(initial=0))) + 1, np.inf)
        np.minimum.at(self._length, links, self._length[page] + 1)

    def of(self, pages: Ints) -> Floats:
        """Return minus the path lengths."""
        self._length = _grown(self._length, int(pages.max(initial=-1)) + 1, np.inf)
        return -self._length[pages]


def _grown(column: Floats, pages: int, default: float) -> Floats:
    """Return the column with at least this many entries; twice as many if it has to grow."""
    if pages <= len(column):
        return column
    return np.append(column, np.full(max(pages, 2 * len(column)) - len(column), default))
