"""PageRank against a direct solution, and the scale of 0 to 10."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse  # noqa: F401  # or the first test that loads it misses its deadline
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import LinkGraph
from recrawl.learn.structure.pagerank import log_scale, pagerank


@st.composite
def graphs(draw: Any, most: int = 15) -> LinkGraph:
    pages = draw(st.integers(1, most))
    rows = draw(st.lists(st.lists(st.integers(0, pages - 1), max_size=5), min_size=pages, max_size=pages))
    return linked(rows)


def linked(rows: list[list[int]]) -> LinkGraph:
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return LinkGraph(start, np.array([page for row in rows for page in row], np.int32))


def solved(links: LinkGraph, damping: float) -> np.ndarray:
    """The ranks by solving T eq. 9 as linear equations."""
    pages = len(links)
    follow = np.full((pages, pages), 1.0 / pages)
    for page in range(pages):
        row = links.of(page)
        if len(row):
            follow[page] = np.bincount(row, minlength=pages) / len(row)
    ranks: np.ndarray = np.linalg.solve(np.eye(pages) - damping * follow.T, np.full(pages, (1 - damping) / pages))
    return ranks


@given(graphs(), st.sampled_from([0.0, 0.5, 0.85, 0.99]))
def test_it_solves_the_equation_and_sums_to_one(links: LinkGraph, damping: float) -> None:
    ranks = pagerank(links, damping=damping, tolerance=1e-13, most=10_000)
    assert ranks.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(ranks, solved(links, damping), atol=1e-10)


@given(graphs(), st.data())
def test_a_warm_start_ends_at_the_same_ranks(links: LinkGraph, data: Any) -> None:
    start = np.array(data.draw(st.lists(st.floats(0.001, 1), max_size=len(links))))
    np.testing.assert_allclose(
        pagerank(links, start=start, tolerance=1e-13), pagerank(links, tolerance=1e-13), atol=1e-11
    )


def test_a_warm_start_from_the_answer_needs_one_round() -> None:
    rng = np.random.default_rng(1)
    links = linked([rng.integers(0, 500, 4).tolist() for _ in range(500)])
    ranks = pagerank(links, tolerance=1e-12)
    np.testing.assert_allclose(pagerank(links, start=ranks, most=1), ranks, atol=1e-12)
    assert np.abs(pagerank(links, most=1) - ranks).sum() > 0.01, "which is not enough from nothing"


@pytest.mark.parametrize("size", [2, 3, 10, 101])
def test_oscillating_steps_converge(size: int) -> None:
    """A ring with one page that hangs on it: power iteration goes round and round, and a leap can mislead."""
    rows = [[(page + 1) % size] for page in range(size)] + [[0]]
    links = linked(rows)
    np.testing.assert_allclose(pagerank(links, tolerance=1e-12), solved(links, 0.85), atol=1e-10)


def test_the_most_linked_page_ranks_highest_and_its_links_are_worth_most() -> None:
    ranks = pagerank(linked([[], [0], [0], [0, 2], [3]]))
    assert ranks.argmax() == 0
    assert ranks[3] > ranks[4] == ranks[1]


def test_no_pages_and_no_links() -> None:
    assert pagerank(linked([])).tolist() == []
    np.testing.assert_allclose(pagerank(linked([[], [], [], []])), 0.25)


# -- the scale -------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=30))
def test_the_scale_keeps_the_order_and_uses_its_ends(values: list[float]) -> None:
    ranks = np.array(values)
    scale = log_scale(ranks)
    assert ((scale >= 0) & (scale <= 10)).all()
    order = np.argsort(ranks, kind="stable")
    assert (np.diff(scale[order]) >= 0).all()
    if ranks.max() > ranks.min() * 1.001:
        assert scale[ranks.argmax()] == 10
        assert scale[ranks.argmin()] == 0


def test_each_step_of_the_scale_is_the_same_factor() -> None:
    assert log_scale(2.0 ** np.arange(0, 11.01, 0.5)).tolist() == [*np.repeat(np.arange(11), 2), 10]


@pytest.mark.parametrize("pages", [0, 1, 5])
def test_equal_ranks_give_scale_0(pages: int) -> None:
    ring = linked([[(page + 1) % pages] for page in range(pages)])
    assert log_scale(pagerank(ring)).tolist() == [0] * pages
    assert log_scale(np.full(pages, 0.1) * (1 + 1e-9 * np.arange(pages))).tolist() == [0] * pages
