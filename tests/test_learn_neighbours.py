"""Neighbours by directory, link and cluster, against independent definitions of T's distances for a pair of pages."""

from __future__ import annotations

from math import inf
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Clusters, Directories, LinkGraph
from recrawl.learn.structure.directories import places
from recrawl.learn.structure.neighbours import ByCluster, ByDirectory, ByLink, within

Way = Literal["out", "in"]
words = st.sampled_from(["a", "b", "c"])
urls = st.builds(
    lambda host, path, page: "/".join([f"http://{host}.example", *path, page]),
    words,
    st.lists(words, max_size=5),
    st.sampled_from(["", "a", "x.html", "y.html?back=/a/b"]),
)
lists_of_urls = st.lists(urls, min_size=1, max_size=25, unique=True)
granularity = st.integers(-6, 8)


def taken(distance: float, d: int) -> bool:
    """What spec S2 and S3 say: d >= 0 takes 0 to d, d < 0 takes d to 0."""
    return 0 <= distance <= d if d >= 0 else d <= distance <= 0


@st.composite
def graphs(draw: Any) -> LinkGraph:
    pages = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, pages - 1), st.integers(0, pages - 1)), max_size=30))
    return graph(pages, pairs)


def graph(pages: int, pairs: list[tuple[int, int]]) -> LinkGraph:
    pairs = sorted(pairs)
    degree = np.bincount(np.array([source for source, _ in pairs], np.int64), minlength=pages)
    target = np.array([target for _, target in pairs], np.int32)
    return LinkGraph(np.concatenate(([0], np.cumsum(degree))), target)


def directory_distance(folders: Directories, seed: int, other: int) -> float:
    """Return the distance between pages of two directories (T eq. 2): up positive, down negative, same directory 0.

    A page at http://u_1/u_2/.../u_m lies in a directory of level m - 2 (u_1 is the host, u_m the page itself), and
    two pages whose first c parts are equal have a common directory of level c - 1. So T's (m-c) + (n-c) - 2 is the
    number of steps in the tree from one directory up to the common one and down to the other.

    It is positive if the other page is not deeper than the seed, and negative if it is. (Eq. 2 is printed the other way
    round, against T's text and results, and with a sign(0) that would make all pages of one level neighbours.) Pages of
    different sites have no common directory: T speaks of the directory structure of a server.

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
    """Return the same distance from two URLs, by T's m, n and c (spec S3).

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
    # The last part names the page; only the parts before it are directories.
    c = next((i for i, (a, b) in enumerate(zip(u[:-1], v[:-1], strict=False)) if a != b), min(m, n) - 1)
    if c == 0:
        return inf
    steps = (m - c) + (n - c) - 2
    return steps if n <= m else -steps


def link_distance(links: LinkGraph, seed: int, other: int, way: Way = "out") -> float:
    """Return the link distance of two pages (T eq. 1, spec S2): h hops along links, -h against them, 0 for siblings.

    Siblings have a common parent, a page that links to both, and are at 0 whatever other paths exist. Where paths lead
    both ways eq. 1 gives two answers; T's crawler follows only the out-links if d > 0 and only the in-links if d < 0,
    so `way` selects one.

    >>> links = LinkGraph(np.array([0, 2, 3, 3, 3]), np.array([1, 2, 3], np.int32))
    >>> link_distance(links, 0, 3), link_distance(links, 3, 0, "in"), link_distance(links, 1, 2)
    (2, -2, 0)
    >>> link_distance(links, 3, 0)
    inf
    """
    back = links.reversed()
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
    """Return u_1 to u_m: the host, the directories, the page (empty if the URL ends in a slash)."""
    parts = url.partition("://")[2].partition("?")[0].partition("#")[0].split("/")
    return parts if len(parts) > 1 else [*parts, ""]


# -- directories -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "distance"),
    [
        ("http://www.abc.com/dir1/index1.htm", 0),
        ("http://www.abc.com/dir1/index2.htm", 0),
        ("http://www.abc.com/dir1/", 0),
        ("http://www.abc.com/index.htm", 1),
        ("http://www.abc.com", 1),
        ("http://www.abc.com/dir1", 1),  # a page beside the directory, not in it
        ("http://www.abc.com/dir1/dir3/index.htm", -1),
        ("http://www.abc.com/dir2/index.htm", 2),  # as deep as the seed, yet no neighbour at 0
        ("http://www.abc.com/dir1/dir3/dir4/index.htm", -2),
        ("http://www.abc.com/dir2/dir3/index.htm", -3),
        ("http://www.xyz.com/dir1/index1.htm", inf),
    ],
)
def test_the_directories_of_the_paper(url: str, distance: float) -> None:
    """T fig. 2: same directory 0, upper directories positive, lower ones negative; every page in a directory alike."""
    assert url_distance("http://www.abc.com/dir1/index1.htm", url) == distance


@given(lists_of_urls)
def test_the_directory_tree_agrees_with_the_urls(pages: list[str]) -> None:
    _, _, folder, folders = places(pages)
    for one, here in enumerate(pages):
        for two, there in enumerate(pages):
            assert directory_distance(folders, int(folder[one]), int(folder[two])) == url_distance(here, there)


@given(urls, urls)
def test_the_same_directory_and_nothing_else_is_at_zero(one: str, two: str) -> None:
    _, _, folder, _ = places([one, two])
    assert (url_distance(one, two) == 0) == bool(folder[0] == folder[1])


@given(urls, urls)
def test_the_way_back_has_the_other_sign_but_for_pages_of_one_level(one: str, two: str) -> None:
    there, back = url_distance(one, two), url_distance(two, one)
    _, _, folder, folders = places([one, two])
    if there in (0, inf) or folders.level[folder[0]] == folders.level[folder[1]]:
        assert there == back >= 0
    else:
        assert there == -back


@given(urls, urls)
def test_names_do_not_matter(one: str, two: str) -> None:
    def renamed(url: str) -> str:
        return url.replace("a", "quite-another").replace("b", "name")

    assert url_distance(renamed(one), renamed(two)) == url_distance(one, two)


@given(urls, urls, urls)
def test_the_triangle_inequality_holds(one: str, two: str, three: str) -> None:
    assert abs(url_distance(one, three)) <= abs(url_distance(one, two)) + abs(url_distance(two, three))


@given(lists_of_urls, granularity, st.data())
def test_the_finder_returns_directories_by_distance(pages: list[str], d: int, data: Any) -> None:
    seeds = np.array(sorted(data.draw(st.sets(st.integers(0, len(pages) - 1), min_size=1, max_size=4))))
    _, _, folder, folders = places(pages)
    near = [
        page
        for page, url in enumerate(pages)
        if page not in seeds and any(taken(url_distance(pages[seed], url), d) for seed in seeds)
    ]
    assert within(ByDirectory(folder, folders, d), seeds, len(pages)).tolist() == near


@given(lists_of_urls, granularity)
def test_directories_come_nearest_first_with_their_distance(pages: list[str], d: int) -> None:
    _, _, folder, folders = places(pages)
    free = np.ones(len(pages), bool)
    free[0] = False
    for distance, near in ByDirectory(folder, folders, d).around(np.array([0]), free):
        assert {url_distance(pages[0], pages[page]) for page in near.tolist()} <= {distance}
        free[near] = False


def test_without_a_tree_the_same_directory_is_still_near() -> None:
    folder = np.array([2**62, -5, 2**62, 7])  # the numbers may be any
    assert within(ByDirectory(folder, None, 3), np.array([0]), 4).tolist() == [2]


# -- links -------------------------------------------------------------------------------------------------

# A web that fits what T says of fig. 1; page 0 is the seed p_s. Page 1 is its parent; 4 and 5 are its siblings, 5 also
# linked by the seed itself; two paths lead to 10, one of them longer; 2 and 3 link to the parent.
PAPER = graph(
    12,
    [
        (2, 1),
        (3, 1),
        (1, 0),
        (1, 4),
        (1, 5),
        (0, 5),
        (0, 6),
        (0, 7),
        (0, 10),
        (6, 8),
        (7, 9),
        (7, 10),
        (9, 10),
        (9, 11),
    ],
)


@pytest.mark.parametrize(
    ("d", "near"),
    [
        (0, [4, 5]),
        (1, [4, 5, 6, 7, 10]),  # as T lists them
        (2, [4, 5, 6, 7, 8, 9, 10]),
        (3, [4, 5, 6, 7, 8, 9, 10, 11]),
        (-1, [1, 4, 5]),
        (-2, [1, 2, 3, 4, 5]),
        (-6, [1, 2, 3, 4, 5]),
    ],
)
def test_the_links_of_the_paper(d: int, near: list[int]) -> None:
    assert within(ByLink(PAPER, 12, d), np.array([0]), 12).tolist() == near


def test_siblings_are_at_zero_though_a_link_leads_to_them_and_the_shortest_path_counts() -> None:
    assert link_distance(PAPER, 0, 5) == 0
    assert link_distance(PAPER, 0, 10) == 1
    assert link_distance(PAPER, 0, 11) == 3
    assert link_distance(PAPER, 0, 2, "in") == -2
    assert link_distance(PAPER, 0, 2, "out") == inf


@given(graphs())
def test_against_the_links_is_along_the_turned_links(links: LinkGraph) -> None:
    back = links.reversed()
    for one in range(len(links)):
        for two in range(len(links)):
            siblings = one == two or bool({*back.of(one).tolist()} & {*back.of(two).tolist()})
            there = link_distance(links, one, two, "out")
            assert (there == 0) == siblings
            if not siblings:
                assert link_distance(links, two, one, "in") == -there or there == inf


@given(graphs(), st.integers(-6, 6), st.data())
def test_the_finder_returns_links_by_distance(links: LinkGraph, d: int, data: Any) -> None:
    pages = len(links)
    seeds = np.array(sorted(data.draw(st.sets(st.integers(0, pages - 1), min_size=1, max_size=3))))
    near = [
        page
        for page in range(pages)
        if page not in seeds
        and any(taken(link_distance(links, seed, page, "out" if d >= 0 else "in"), d) for seed in seeds.tolist())
    ]
    assert within(ByLink(links, pages, d), seeds, pages).tolist() == near


@given(graphs(), st.integers(-6, 6), st.permutations(range(12)))
def test_the_finders_cache_hides_no_free_page(links: LinkGraph, d: int, order: list[int]) -> None:
    """Batch after batch of seeds brings the same pages as all seeds at once."""
    pages = len(links)
    batches = [np.array([page]) for page in order if page < pages][: pages // 2]
    finder, free = ByLink(links, pages, d), np.ones(pages, bool)
    found: set[int] = set()
    for seeds in batches:
        free[seeds] = False
        for _, near in finder.around(seeds, free):
            found |= set(near.tolist())
            free[near] = False
    seeds = np.concatenate([np.zeros(0, np.int64), *batches])
    alone = [within(ByLink(links, pages, d), np.array([seed]), pages).tolist() for seed in seeds.tolist()]
    assert found | set(seeds.tolist()) == {page for near in alone for page in near} | set(seeds.tolist())


def test_a_page_passed_with_few_hops_to_go_is_passed_again_with_more() -> None:
    chain = graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (5, 2)])
    finder, free = ByLink(chain, 6, 3), np.array([False, True, True, True, True, False])
    brought = []
    for seed in (0, 5):
        for _, near in finder.around(np.array([seed]), free):
            brought += near.tolist()
            free[near] = False
    assert brought == [1, 2, 3, 4], "page 4 is three hops from 5, and four from 0"


def test_pages_that_came_after_the_links_have_none() -> None:
    assert within(ByLink(graph(2, [(0, 1)]), 4, 3), np.array([0, 3]), 4).tolist() == [1]
    assert within(ByLink(None, 4, 3), np.array([0, 3]), 4).tolist() == []


# -- clusters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "near"), [(-1, []), (0, [1]), (1, [1, 4]), (2, [1, 2, 3, 4]), (9, [1, 2, 3, 4])])
def test_clusters_come_by_the_rank_of_their_centroids(d: int, near: list[int]) -> None:
    clusters = Clusters(np.array([0, 0, 1, 1, 2, -1], np.int32), np.array([[0, 2, 1], [1, 0, 2], [2, 0, 1]], np.int32))
    assert within(ByCluster(clusters, 7, d), np.array([0]), 7).tolist() == near
    assert within(ByCluster(clusters, 7, d), np.array([5, 6]), 7).tolist() == [], "in no cluster"
    assert within(ByCluster(None, 7, d), np.array([0]), 7).tolist() == []


def test_large_sites_are_searched_in_stretches() -> None:
    """A star of directories: every page's neighbours in one go, 200,000 pages."""
    pages = 200_000
    tree = Directories(np.r_[-1, np.zeros(999, np.int64)], np.r_[0, np.ones(999)].astype(np.int32))
    folder = np.arange(pages) % 1000
    seeds = np.arange(0, 500)
    assert len(within(ByDirectory(folder, tree, 2), seeds, pages)) == pages - 500
