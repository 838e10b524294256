"""Similarity of series and expert selection, against slow implementations and planted relations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import sparse

from recrawl.book import LinkGraph
from recrawl.lab.predict.days import Planted, PlantedWorld, planted
from recrawl.learn.experts import selection
from recrawl.learn.experts.online_learner import IncrementalRelations
from recrawl.learn.experts.selection import (
    NO_EXPERT,
    Experts,
    RunningCorrelation,
    by_content,
    by_graph,
    by_time,
    dtw_distance,
    dtw_similarity,
    frame_means,
    lagged_correlations,
    normalized,
    pairs_sharing_words,
    top_correlated,
)
from recrawl.learn.experts.word_dynamics import OMEGAS, WordDynamics, word_dynamics

Array = NDArray[Any]
VALUES = st.integers(0, 5).map(float)


def slow_correlation(a: Array, b: Array, lag: int) -> float:
    """R's formula, term by term; b leads by `lag`."""
    n = len(a)
    if a.std() < 1e-12 or b.std() < 1e-12:
        return 0.0
    terms = [(a[i] - a.mean()) * (b[i - lag] - b.mean()) for i in range(lag, n)]
    return float(sum(terms) / (n * a.std() * b.std()))


def slow_dtw(a: Array, b: Array, band: int) -> float:
    """R's figure 5, cell by cell."""
    n = len(a)
    table = np.full((n + 1, n + 1), np.inf)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            if abs(i - j) <= band:
                table[i, j] = abs(a[i - 1] - b[j - 1]) + min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
    return float(table[n, n])


# -- series --------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, st.tuples(st.just(4), st.integers(1, 20)), elements=VALUES))
def test_correlation_matches_the_formula(series: Array) -> None:
    a, b = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 3])
    scaled = normalized(series)
    found = lagged_correlations(scaled, scaled, a, b, lags=5)
    for place in range(4):
        for lag in range(min(6, series.shape[1])):
            assert found[place, lag] == pytest.approx(
                slow_correlation(series[a[place]], series[b[place]], lag), abs=1e-5
            )


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, st.tuples(st.just(5), st.integers(1, 25)), elements=VALUES), st.integers(0, 6))
def test_running_correlations_equal_the_batch(series: Array, lags: int) -> None:
    """The running result equals the batch on every day, though no old day is stored."""
    a, b = np.array([0, 1, 2, 4]), np.array([1, 0, 3, 4])
    running = RunningCorrelation(5, a, b, lags)
    for day in range(series.shape[1]):
        running.add(series[:, day])
        scaled = normalized(series[:, : day + 1])
        assert running.correlations() == pytest.approx(lagged_correlations(scaled, scaled, a, b, lags), abs=1e-5)


def test_running_correlation_stores_no_old_days() -> None:
    running = RunningCorrelation(10, np.arange(9), np.arange(1, 10), lags=3)
    sizes = []
    for _ in range(50):
        running.add(np.ones(10))
        sizes.append(sum(value.nbytes for value in vars(running).values() if isinstance(value, np.ndarray)))
    assert len(set(sizes)) == 1


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.float32, st.tuples(st.just(3), st.integers(1, 12)), elements=st.floats(-3, 3, width=32)),
    st.integers(0, 12),
)
def test_dtw_matches_the_algorithm(series: Array, band: int) -> None:
    a, b = series, series[::-1]
    found = dtw_distance(a, b, band)
    assert found == pytest.approx([slow_dtw(x, y, band) for x, y in zip(a, b, strict=True)], abs=1e-4)
    assert dtw_distance(a, b) == pytest.approx([slow_dtw(x, y, 99) for x, y in zip(a, b, strict=True)], abs=1e-4)
    assert ((dtw_similarity(a, b) > 0) & (dtw_similarity(a, b) <= 1)).all()


def test_frame_means_keep_the_mean() -> None:
    series = np.arange(20, dtype=np.float32)[None]
    assert frame_means(series, 5).tolist() == [[1.5, 5.5, 9.5, 13.5, 17.5]]
    assert frame_means(series, 30) is series
    assert frame_means(np.ones((2, 7), np.float32), 3).tolist() == [[1.0] * 3] * 2  # frames of unequal length


def test_top_correlated_equals_all_pairs() -> None:
    series = normalized(np.random.default_rng(1).random((30, 25)))
    found = top_correlated(series, series, k=3, lags=4)
    best = np.array(
        [lagged_correlations(series, series, np.full(30, page), np.arange(30), 4).max(axis=1) for page in range(30)]
    )
    np.fill_diagonal(best, -np.inf)
    assert found.tolist() == np.argsort(-best, axis=1)[:, :3].tolist()


def test_top_correlated_of_one_page_is_empty() -> None:
    assert top_correlated(np.ones((1, 5), np.float32), np.ones((1, 5), np.float32), 3, 2).shape == (1, 0)


def test_constant_series_correlate_with_nothing() -> None:
    scaled = normalized(np.array([[7.0] * 9, [0.1] * 9, list(range(9))]))
    assert (scaled[:2] == 0).all()
    assert (lagged_correlations(scaled, scaled, np.array([0, 1]), np.array([2, 2]), 3) == 0).all()


# -- word dynamics -------------------------------------------------------------------------------------


def test_dynamics_are_counts_by_day_of_words_that_vary() -> None:
    bags = sparse.csr_array(np.array([[1, 0, 2], [1, 3, 2], [0, 1, 1]], np.uint16))
    found = word_dynamics(bags, np.array([[0, 0, -1, 1], [2, 2, 2, 2], [-1, -1, 0, 1]], np.int32))
    # Page 0: only word 1 varies; an unobserved day equals the day before. Page 1 never changes. Page 2 starts late.
    assert found.page.tolist() == [0, 2, 2, 2]
    assert found.word.tolist() == [1, 0, 1, 2]
    assert found.series[0].tolist() == [0, 0, 0, 3]
    assert found.series[1:].tolist() == [[0, 0, 1, 1], [0, 0, 0, 3], [0, 0, 2, 2]]
    assert found.weight[found.page == 2].sum() == pytest.approx(1)
    assert found.index_of(np.array([0, 1, 2]), np.array([1, 1, 2], np.int32)).tolist() == [0, -1, 3]


def test_dynamics_keep_the_most_characteristic_words() -> None:
    counts = np.zeros((4, 6), np.uint16)
    counts[:2, :] = 1
    counts[1, :] = [9, 8, 1, 1, 1, 2]
    counts[2:, :4] = 5  # other pages have these words too
    found = word_dynamics(sparse.csr_array(counts), np.array([[0, 1], [2, 2], [3, 3]], np.int32), words=2)
    assert found.word.tolist() == [0, 1]


def test_nothing_gives_no_dynamics() -> None:
    none = word_dynamics(sparse.csr_array((0, 8), dtype=np.uint16), np.zeros((0, 5), np.int32))
    assert none.series.shape == (0, 5)
    unseen = word_dynamics(sparse.csr_array((1, 8), dtype=np.uint16), np.full((3, 5), -1, np.int32))
    assert not len(unseen.page)
    assert (by_time(unseen, 2).page == NO_EXPERT).all()


# -- relations -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world() -> PlantedWorld:
    return planted(Planted(groups=9, size=5, days=90, lag=3, noise=0.02))


def chosen(world: PlantedWorld, how: str, **more: int) -> Experts:
    return by_time(word_dynamics(world.days.bags, world.days.text), 4, how, **more)


@pytest.mark.parametrize("how", ["xcorr", "dtw"])
def test_planted_relations_are_found(world: PlantedWorld, how: str) -> None:
    """Copies and pages with a common cause are each other's closest experts."""
    experts = chosen(world, how)
    related = world.kind != 2
    same = world.leader[np.maximum(experts.page, 0)] == world.leader[:, None]
    assert same[related, :2].all()
    assert (experts.page != np.arange(len(world.kind))[:, None]).all()


def test_the_lag_of_copies_is_found_and_named(world: PlantedWorld) -> None:
    experts = chosen(world, "xcorr")
    for page in np.flatnonzero((world.kind == 0) & (world.leader != np.arange(len(world.kind)))):
        by_page = {row["page"]: row for row in experts.of(int(page))}
        leader = by_page[int(world.leader[page])]
        assert leader["lag"] == 3
        assert leader["relation"] == "xcorr"
        assert leader["weight"] > 0.8
        assert all(
            row["lag"] == 0 for other, row in by_page.items() if row["weight"] > 0.8 and other != world.leader[page]
        )


def test_where_nothing_is_planted_relations_are_weak(world: PlantedWorld) -> None:
    experts = chosen(world, "xcorr")
    related = (world.kind == 0) & (world.leader != np.arange(len(world.kind)))
    assert experts.weight[world.kind == 2].max() < 0.6 < experts.weight[related, 0].min()


@pytest.mark.parametrize("how", ["xcorr", "dtw"])
def test_the_inverted_index_is_exact(world: PlantedWorld, how: str) -> None:
    """Pages that share no word cannot be experts of each other."""
    whole, found = chosen(world, how, candidates=len(world.kind)), chosen(world, how, candidates=8)
    assert (found.page == whole.page).all()
    assert found.weight == pytest.approx(whole.weight)


def test_the_inverted_index_is_skipped_where_all_pages_share_words() -> None:
    same = np.tile(np.arange(40, dtype=np.float32) % 3, (50, 1))
    page, word = np.arange(50, dtype=np.int32), np.zeros(50, np.int32)
    everywhere = WordDynamics(50, page, word, np.ones(50, np.float32), same)
    assert pairs_sharing_words(everywhere, 2) is None
    pairs = pairs_sharing_words(everywhere, 20)
    assert pairs is not None
    assert len(pairs[0]) == 50 * 49
    assert pairs_sharing_words(WordDynamics(0, page[:0], word[:0], np.ones(0, np.float32), same[:0]), 3) is not None


def test_approximate_candidates_find_the_best_experts(world: PlantedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few candidates from the fast search, the best experts equal those of all pairs."""
    whole = chosen(world, "xcorr")
    monkeypatch.setattr(selection, "_MAX_MEETINGS", 0)
    few = chosen(world, "xcorr", candidates=8)
    copies = np.flatnonzero((world.kind == 0) & (world.leader != np.arange(len(world.kind))))
    for page in copies:
        assert set(few.page[page, :3]) <= set(np.flatnonzero(world.leader == world.leader[page]))
    assert few.weight[copies, 0] == pytest.approx(whole.weight[copies, 0], abs=0.05)


def test_a_page_that_never_varies_is_no_expert_and_has_none(
    world: PlantedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = world.days.text.copy()
    text[7] = text[7, 0]
    monkeypatch.setattr(selection, "_MAX_MEETINGS", 0)
    found = by_time(word_dynamics(world.days.bags, text), 4, candidates=8)
    assert (found.page[7] == NO_EXPERT).all()
    assert not (found.page == 7).any()


def test_the_distance_matches_the_paper(world: PlantedWorld) -> None:
    """Σ ω(w)·Q(Dyn(w, p), Dyn(w, e)), written out."""
    dyn = word_dynamics(world.days.bags, world.days.text)
    experts = by_time(dyn, 4, lags=5)
    for page in (1, 7):
        other = int(experts.page[page, 1])
        total = 0.0
        for mine in np.flatnonzero(dyn.page == page):
            theirs = np.flatnonzero((dyn.page == other) & (dyn.word == dyn.word[mine]))
            if len(theirs):
                best = max(slow_correlation(dyn.series[mine], dyn.series[theirs[0]], lag) for lag in range(6))
                total += dyn.weight[mine] * best
        assert experts.weight[page, 1] == pytest.approx(total, abs=1e-4)


def test_incremental_relations_equal_the_batch(world: PlantedWorld) -> None:
    days = world.days
    words = word_dynamics(days.bags, days.text)
    pages = len(days)
    a, b = (x.ravel() for x in np.nonzero(~np.eye(pages, dtype=bool)))
    following = IncrementalRelations(words, a, b, lags=5)
    for day in range(days.seen.shape[1]):
        following.add(days.counts(day))
    online, whole = following.experts(4), by_time(words, 4, lags=5)
    copies = world.kind == 0
    assert online.weight == pytest.approx(whole.weight, abs=1e-4)
    assert (online.lag[copies] == whole.lag[copies]).all()
    # Copies of the same leader are equally close: their order depends on rounding.
    for page in np.flatnonzero(copies):
        assert set(online.page[page]) == set(whole.page[page])


def test_unobserved_pages_keep_their_words() -> None:
    bags = sparse.csr_array(np.array([[1, 4], [3, 0]], np.uint16))
    words = word_dynamics(bags, np.array([[0, 1, 0, 0], [0, 1, 1, 0]], np.int32))
    following = IncrementalRelations(words, np.array([0]), np.array([1]), lags=1)
    for rows, seen in (([0, 0], [1, 1]), ([1, 1], [1, 1]), ([0, 0], [1, 0]), ([0, 0], [1, 1])):
        following.add(bags[rows].astype(np.float32), np.array(seen) > 0)
    whole = by_time(words, 1, lags=1)
    assert following.experts(1).weight[0] == pytest.approx(whole.weight[0], abs=1e-5)


def test_graph_is_one_step_in_either_direction() -> None:
    links = LinkGraph(np.array([0, 2, 2, 3, 3, 4]), np.array([1, 0, 1, 4], np.int32))  # 0 and 4 link to themselves too
    experts = by_graph(links, 20)
    assert [set(row) - {NO_EXPERT} for row in experts.page.tolist()] == [{1}, {0, 2}, {1}, set(), set()]
    assert experts.weight.sum() == (experts.page != NO_EXPERT).sum()
    assert by_graph(links, 1).page.shape == (5, 1)


def test_content_is_the_cosine() -> None:
    counts = np.array([[3, 0, 1], [6, 0, 2], [0, 5, 0], [0, 0, 0], [1, 1, 1]], np.float32)
    experts = by_content(sparse.csr_array(counts), 2)
    assert experts.page[0].tolist() == [1, 4]
    assert experts.weight[0] == pytest.approx([1.0, 4 / np.sqrt(30)], abs=1e-5)
    assert (experts.page[3] == NO_EXPERT).all()  # no text
    assert 0 not in experts.page[2]


def test_empty_pages_have_no_experts_by_content() -> None:
    assert by_content(sparse.csr_array((4, 9), dtype=np.float32), 3).page.shape == (4, 0)


# -- word weights and lags --------------------------------------------------------------------------------------


@pytest.mark.parametrize("omega", OMEGAS)
def test_word_weights_are_those_of_their_definitions(omega: str) -> None:
    """Against loops over the series of each page."""
    days = planted(Planted(groups=3, size=3, days=30)).days
    found = word_dynamics(days.bags, days.text, words=6, omega=omega)
    plain = word_dynamics(days.bags, days.text, words=6)
    np.testing.assert_array_equal(found.series, plain.series)
    for page in range(len(days)):
        rows = np.flatnonzero(found.page == page)
        series = found.series[rows]
        changes = [sum(a != b for a, b in pairwise(line)) for line in series.tolist()]
        moves = [sum(abs(a - b) for a, b in pairwise(line)) for line in series.tolist()]
        counted = {"changes": changes, "moves": moves, "even": [1] * len(rows)}
        right = np.array(counted[omega]) / sum(counted[omega]) if omega in counted else plain.weight[rows]
        np.testing.assert_allclose(found.weight[rows], right, rtol=1e-5)
        assert len(rows) <= 6


def test_lags_begin_where_they_are_told_to() -> None:
    """R has lags from 1: pages that change together on one day are no experts of each other for that."""
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 9, 200)
    texts = np.stack((counts, counts, np.roll(counts, 3))).astype(np.float32)
    dynamics = WordDynamics(3, np.arange(3, dtype=np.int32), np.zeros(3, np.int32), np.ones(3, np.float32), texts)
    assert by_time(dynamics, 1, lags=7).page[0].tolist() == [1]
    later = by_time(dynamics, 2, lags=7, first_lag=1)
    assert later.page[2].tolist()[0] in (0, 1)
    assert later.lag[2, 0] == 3
    assert later.weight[2, 0] > 0.9
    assert later.weight[0].max() < 0.5
    assert (later.lag >= 1).all()
