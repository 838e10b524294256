"""Pages that belong together because one page lists them: an index, a table of contents, a month of an archive."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.book import LinkGraph

FEWEST = 8
"""A page that links to fewer others lists nothing."""


def hubs(links: LinkGraph, site: NDArray[np.int32]) -> NDArray[np.int64]:
    """One per page: the page of its site that lists it, the one with the shortest list; -1 where none does.

    >>> links = LinkGraph(np.array([0, 9, 17] + [17] * 8), np.array([*range(1, 10), *range(2, 10)], np.int32))
    >>> hubs(links, np.zeros(10, np.int32)).tolist()
    [-1, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    length = np.diff(links.start)
    source, target = np.repeat(np.arange(len(links)), length), links.target
    lists = (length[source] >= FEWEST) & (site[source] == site[target]) & (source != target)
    source, target = source[lists], target[lists]
    shortest_last = np.lexsort((-source, -length[source]))  # of several values for one page numpy keeps the last
    hub = np.full(len(links), -1, np.int64)
    hub[target[shortest_last]] = source[shortest_last]
    return hub
