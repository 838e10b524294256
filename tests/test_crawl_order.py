"""The order of discovery (Q §2.1, spec K1, K6): ranks that change as links are found, and crawls that follow them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book, LinkGraph
from recrawl.choose.papers.explore import Explore
from recrawl.fetch.lanes import Lanes, RankedQueue
from recrawl.lab.replays.small_worlds import batches
from recrawl.learn.structure.neighbours import DAMPING, ImportanceRank, PathRank
from recrawl.learn.structure.pagerank import pagerank
from recrawl.model import ORDERS
from tests.world import Repo, Site, page

Start = Callable[..., Site]
graphs = st.lists(st.lists(st.integers(0, 11), max_size=5), min_size=12, max_size=12)


# -- the queue ---------------------------------------------------------------------------------------------------

steps = st.lists(st.one_of(st.tuples(st.integers(0, 20), st.floats(0, 9)), st.none()), max_size=60)


@given(steps)
def test_the_queue_gives_the_highest_rank_at_that_moment(steps: list[tuple[int, float] | None]) -> None:
    """Against a plain list: every step adds an item or changes its rank, or takes the best."""
    rank = np.zeros(21)
    queue, waiting = RankedQueue(lambda items: rank[items]), list[int]()
    for step in steps:
        if step is not None:
            item, value = step
            rank[item] = value
            if item not in waiting:
                queue.append(item)
                waiting.append(item)
        elif waiting:
            best = min(waiting, key=lambda item: (-rank[item], item))
            assert next(iter(queue)) == queue.popleft() == best
            waiting.remove(best)
        assert len(queue) == len(waiting)
    assert list(queue) == sorted(waiting, key=lambda item: (-rank[item], item))


def test_many_items_come_in_order_of_rank() -> None:
    rank = np.random.default_rng(1).permutation(5000).astype(float)
    queue = RankedQueue(lambda items: rank[items])
    for item in range(5000):
        queue.append(item)
    assert [queue.popleft() for _ in range(5000)] == np.argsort(-rank).tolist()


def test_resources_and_retries_come_first() -> None:
    lanes = Lanes(delay=0.0, order=lambda items: items.astype(float))
    for item in (3, 9, "robots.txt", 5):
        lanes.push(1, item)
    lanes.push_front(1, 4)
    lanes.push_last(1, 8)
    assert lanes.upcoming(1, 9) == [4, "robots.txt", 9, 5, 3, 8]
    popped = []
    while (turn := lanes.pop(0.0)) is not None:
        popped.append(turn[1])
        lanes.done(1, 0.0)
    assert popped == [4, "robots.txt", 9, 5, 3, 8]


# -- the ranks ---------------------------------------------------------------------------------------------------


def graph_of(links: list[list[int]]) -> LinkGraph:
    start = np.concatenate(([0], np.cumsum([len(out) for out in links])))
    return LinkGraph(start, np.array([target for out in links for target in out], np.int32))


@given(graphs, st.permutations(range(12)))
def test_importance_is_the_sum_over_the_visited_pages(links: list[list[int]], order: list[int]) -> None:
    """Against the formula, evaluated for each page from the visits so far."""
    rank = ImportanceRank(np.ones(1))
    passed: list[tuple[float, list[int]]] = []

    def value(p: int) -> float:
        links_in = sum(given / len(out) * out.count(p) for given, out in passed if out)
        return (1.0 if p == 0 else 1 - DAMPING) + DAMPING * links_in

    for visited in order:
        passed.append((value(visited), links[visited]))
        rank.visited(visited, np.array(links[visited], np.int32))
        assert rank.of(np.arange(12)).tolist() == pytest.approx([value(p) for p in range(12)])


def test_a_crawl_that_goes_on_starts_from_pagerank() -> None:
    links = graph_of([[1, 2], [2], [0], []])
    start = ImportanceRank.of_links(links).of(np.arange(4))
    assert start.tolist() == pytest.approx((4 * pagerank(links)).tolist())
    assert start.mean() == pytest.approx(1)


@given(graphs)
def test_path_lengths_are_those_of_the_visited_part(links: list[list[int]]) -> None:
    """Against breadth-first search from page 0 over the links of visited pages."""
    rank = PathRank(np.zeros(1))
    visited: set[int] = set()
    while waiting := {p: n for p, n in lengths(links, visited).items() if p not in visited}:
        pages = np.array(sorted(waiting))
        assert (-rank.of(pages)).tolist() == [waiting[p] for p in pages.tolist()]
        best = min(waiting, key=lambda p: (waiting[p], p))
        visited.add(best)
        rank.visited(best, np.array(links[best], np.int32))


def lengths(links: list[list[int]], visited: set[int]) -> dict[int, int]:
    """The number of links from page 0 to each page that the visited pages lead to."""
    length, edge = {0: 0}, [0]
    while edge:
        new = {target for p in edge if p in visited for target in links[p]} - length.keys()
        length |= dict.fromkeys(new, length[edge[0]] + 1)
        edge = sorted(new)
    return length


# -- as a policy, in the lab -----------------------------------------------------------------------------------------


def test_the_policy_explores_the_archive_in_its_order() -> None:
    """Pages 1 to 4 are new; the visited page 0 links to 4 and 3, page 5 was visited before and links to 3."""
    book = Book.blank(6)
    book.visits[[0, 5]], book.depth[:] = 1, [0, 3, 2, 1, 2, 0]
    book.found[:] = [0, 4, 3, 2, 1, 0]
    book.links = graph_of([[4, 3], [], [], [], [], [3]])
    orders = {order: visited(Explore(order=order), book) for order in ORDERS}
    assert orders["breadth"] == [4, 3, 2, 1, 0, 5]
    assert orders["depth"] == [1, 2, 3, 4, 0, 5]
    assert orders["path"] == [3, 4, 2, 1, 0, 5]
    assert orders["importance"] == [3, 4, 2, 1, 0, 5]


def visited(policy: Explore, book: Book) -> list[int]:
    return [page for pages in batches(policy, book, budget=6) for page in pages]


# -- live crawls -------------------------------------------------------------------------------------------------

HUB = {
    "/": ("/a", "/b", "/c"),
    "/a": ("/a1", "/hub"),
    "/b": ("/b1", "/hub"),
    "/c": ("/c1", "/hub"),
    "/a1": (),
    "/b1": (),
    "/c1": (),
    "/hub": (),
}
"""Three sections that all link to one page: after two of them, that page is the most important one that waits."""


def test_importance_first(repo: Repo, site: Start) -> None:
    here = site({path: page(path, *links) for path, links in HUB.items()})
    repo.config(order="importance", delay=0.2)
    repo.crawl(here.url("/"))
    # Each section is worth 0.15 + 0.85/3; a half of it goes to the hub, which after two sections outranks the third.
    section = 0.15 + 0.85 / 3
    assert 0.15 + 2 * 0.85 * section / 2 > section
    assert here.asked()[:4] == ["/", "/a", "/b", "/hub"]
    assert sorted(here.asked()) == sorted(HUB)


CHAIN = {
    "/": ("/x", "/y"),
    "/x": ("/x1",),
    "/x1": ("/x2",),
    "/x2": ("/far",),
    "/y": ("/y1",),
    "/y1": (),
    "/far": (),
}


def test_the_shortest_path_first(repo: Repo, site: Start) -> None:
    here = site({path: page(path, *links) for path, links in CHAIN.items()})
    repo.config(order="path", delay=0.2)
    repo.crawl(here.url("/"))
    assert here.asked() == ["/", "/x", "/y", "/x1", "/y1", "/x2", "/far"]


def test_an_interrupted_crawl_goes_on_by_importance(repo: Repo, site: Start) -> None:
    here = site({path: page(path, *links) for path, links in HUB.items()})
    repo.config(order="breadth", delay=0.2)
    repo.crawl(here.url("/"), "--limit", "4")
    assert here.asked() == ["/", "/a", "/b", "/c"]
    repo.add(here.url("/"), "--limit", "5")
    repo.json("crawl", "--order", "importance")
    assert here.asked()[4:] == ["/hub"]
