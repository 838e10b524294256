"""Which of the pages found and not yet visited to visit first: by importance or by path length (Q §2.1, spec K6).

Every visited page brings links, so both ranks change as the crawl goes on:

    importance    rank(p) = 1 - damping + damping * sum of rank(q) / links(q) over the visited pages q that link to p
    path          the least number of links from a seed to p over the visited pages

Importance is PageRank (T eq. 9, times the number of pages) of the links seen so far, except that a page passes on its
rank once, when it is visited: the cash of OPIC (Abiteboul, Preda and Cobena 2003). A crawl that starts with links in
the repository starts with their PageRank.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph
from recrawl.columns import Floats, Int32s, Ints
from recrawl.learn.structure.pagerank import pagerank

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
