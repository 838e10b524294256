"""How far one page is from another: by directories (T eq. 2, spec S3) and by links (T eq. 1, spec S2).

Both distances have a sign. A policy with granularity d >= 0 takes the pages from 0 to d, one with d < 0 those from d
to 0. These functions answer for one pair, plainly; `learn.structure.neighbours` finds all pages within d at once, and
its tests hold it to what is said here.
"""

from __future__ import annotations

from math import inf
from typing import Literal

from recrawl.book import Directories, LinkGraph

Way = Literal["out", "in"]


def directory_distance(folders: Directories, seed: int, other: int) -> float:
    """From a page in directory `seed` to a page in directory `other`: up positive, down negative, same directory 0.

    A page at http://u_1/u_2/.../u_m lies in a directory of level m - 2 (u_1 is the host, u_m the page itself), and
    two pages whose first c parts are equal have a common directory of level c - 1. So T's (m-c) + (n-c) - 2 is the
    number of steps in the tree from one directory up to the common one and down to the other.

    It is positive when the other page is not deeper than the seed, negative when it is. (Printed the other way round
    in eq. 2, against T's text and results, and with a sign(0) that would make all pages of one level neighbours.)
    Pages of different sites have no common directory: T speaks of the directory structure of a server.

    >>> import numpy as np
    >>> tree = Directories(np.array([-1, 0, 1, 0, 3]), np.array([0, 1, 2, 1, 2], np.int32))
    >>> [directory_distance(tree, 1, other) for other in range(5)]
    [1, 0, -1, 2, -3]
    """
    up = down = 0
    above, below = seed, other
    while above != below:
        if folders.level[above] >= folders.level[below]:
            above, up = int(folders.parent[above]), up + 1
        else:
            below, down = int(folders.parent[below]), down + 1
        if above < 0 or below < 0:
            return inf
    return up + down if down <= up else -(up + down)


def url_distance(seed: str, other: str) -> float:
    """The same from two addresses, by T's letters m, n and c (spec S3).

    T's example, seed http://www.abc.com/dir1/index1.htm: 0 is the same directory, positive the upper directories,
    negative the lower ones.

    >>> seed = "http://www.abc.com/dir1/index1.htm"
    >>> url_distance(seed, "http://www.abc.com/dir1/index2.htm")
    0
    >>> url_distance(seed, "http://www.abc.com/index.htm")
    1
    >>> url_distance(seed, "http://www.abc.com/dir1/sub/a.htm")
    -1
    >>> url_distance(seed, "http://www.abc.com/dir2/b.htm")
    2
    >>> url_distance(seed, "http://www.xyz.com/dir1/index1.htm")
    inf
    """
    u, v = _parts(seed), _parts(other)
    m, n = len(u), len(v)
    # The last part names the page; only those before it are directories that two pages can have in common.
    c = next((i for i, (a, b) in enumerate(zip(u[:-1], v[:-1], strict=False)) if a != b), min(m, n) - 1)
    if c == 0:
        return inf
    steps = (m - c) + (n - c) - 2
    return steps if n <= m else -steps


def link_distance(links: LinkGraph, seed: int, other: int, way: Way = "out") -> float:
    """From page `seed` to page `other`: h hops along links, -h against them, 0 for siblings (spec S2).

    Siblings have a common parent, a page that links to both, and are at 0 whatever other path there is. Where paths
    lead both ways eq. 1 gives two answers, but T's crawler follows only the out-links when d > 0 and only the
    in-links when d < 0; so `way` says which is asked for.

    >>> import numpy as np
    >>> links = LinkGraph(np.array([0, 2, 3, 3, 3]), np.array([1, 2, 3], np.int32))
    >>> link_distance(links, 0, 3), link_distance(links, 3, 0, "in"), link_distance(links, 1, 2)
    (2, -2, 0)
    >>> link_distance(links, 3, 0)
    inf
    """
    back = links.turned()
    if seed == other or {*back.of(seed).tolist()} & {*back.of(other).tolist()}:
        return 0
    graph, hops = (links if way == "out" else back), 0
    reached = edge = {seed}
    while edge:
        hops += 1
        edge = {page for at in edge for page in graph.of(at).tolist()} - reached
        if other in edge:
            return hops if way == "out" else -hops
        reached = reached | edge
    return inf


def _parts(url: str) -> list[str]:
    """u_1 to u_m: the host, the directories, the page (empty when the address ends in a slash)."""
    parts = url.partition("://")[2].partition("?")[0].partition("#")[0].split("/")
    return parts if len(parts) > 1 else [*parts, ""]
