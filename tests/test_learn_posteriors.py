"""Estimators by name and Gamma posteriors: planted rates are found, all is finite, more change is a higher rate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from recrawl.book import Book
from recrawl.columns import DAY
from recrawl.learn.rates import (
    ESTIMATORS,
    FIRST_RATE,
    MAX_GAP,
    MIN_GAP,
    Gaps,
    GapSums,
    Posterior,
    censored_term,
    estimate,
    nested,
    posterior,
    solve_rates,
)
from recrawl.model import Outcomes

answers = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.floats(allow_nan=True, allow_infinity=True),
        st.booleans(),
        st.floats(allow_nan=True, allow_infinity=True),
    ),
    max_size=30,
)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def made(rows: list[tuple[int, float, bool, float]], *, quiet: bool = False) -> Gaps:
    page, gap, changed, since = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Gaps.of(page, gap, changed, pages=4, quiet=since if quiet else None)


def planted(rate: np.ndarray, visits: int, seed: int, *, told: bool = False) -> Gaps:
    """Visits at odd times to pages that change at these rates."""
    rng = np.random.default_rng(seed)
    page = np.repeat(np.arange(len(rate)), visits)
    gap = rng.exponential(1.0, len(page)) + 0.01
    since = rng.exponential(1 / rate[page])
    return Gaps.of(page, gap, since < gap, pages=len(rate), quiet=since if told else None)


# -- estimators -----------------------------------------------------------------------------------------------


@every_estimator
@given(rows=answers, quiet=st.booleans())
def test_any_outcomes_give_a_finite_rate(name: str, rows: list[tuple[int, float, bool, float]], quiet: bool) -> None:
    gaps = made(rows, quiet=quiet)
    rate = estimate(name, gaps, [np.array([0, 0, 1, 1])])
    seen = gaps.visits > 0
    assert np.isnan(rate[~seen]).all()
    assert np.isfinite(rate[seen]).all()
    assert (rate[seen] >= 0).all()


@every_estimator
@given(rows=answers.filter(bool), which=st.integers(0, 29))
def test_one_more_change_never_lowers_the_rate(
    name: str, rows: list[tuple[int, float, bool, float]], which: int
) -> None:
    gaps = made(rows)
    if not len(gaps.page):
        return
    more = gaps.changed.copy()
    more[which % len(more)] = True
    rate, higher = estimate(name, gaps), estimate(name, replace(gaps, changed=more))
    mine = gaps.page[which % len(more)]
    assert higher[mine] >= rate[mine] * (1 - 1e-6) - 1e-12


@pytest.mark.parametrize("name", ["irregular", "moment", "gamma", "averaged", "modified"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0])
def test_a_planted_rate_is_found(name: str, rate: float) -> None:
    """Gaps are drawn from an exponential distribution, as `averaged` asks for."""
    rng = np.random.default_rng(11)
    gap = rng.exponential(1.0, 40_000)
    changed = rng.random(len(gap)) < -np.expm1(-rate * gap)
    gaps = Gaps.of(np.zeros(len(gap), int), gap, changed, pages=1)
    assert estimate(name, gaps)[0] == pytest.approx(rate, rel=0.04)


def test_naive_has_its_known_bias() -> None:
    rng = np.random.default_rng(2)
    gaps = Gaps.of(np.zeros(40_000, int), np.ones(40_000), rng.random(40_000) < -math.expm1(-1), pages=1)
    assert estimate("naive", gaps)[0] == pytest.approx(0.632, abs=0.01)
    assert estimate("regular", gaps)[0] == pytest.approx(1.0, rel=0.02)


def test_moment_at_equal_gaps_is_the_bias_reduced_estimator() -> None:
    gaps = Gaps.of(np.repeat([0, 1, 2], 4), np.full(12, 3.0), [0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1], pages=3)
    np.testing.assert_allclose(estimate("moment", gaps), estimate("regular", gaps))


def test_change_times_of_servers_improve_the_estimate() -> None:
    rate = np.full(2000, 1.5)
    gaps = planted(rate, 10, 4, told=True)
    errors = {name: np.mean((estimate(name, gaps) - rate) ** 2) for name in ("irregular", "modified", "gamma")}
    blind = np.mean((estimate("gamma", planted(rate, 10, 4)) - rate) ** 2)
    assert errors["modified"] < errors["irregular"]
    assert errors["gamma"] < blind


@every_estimator
def test_counted_rows_equal_repeated_rows(name: str) -> None:
    page, gap, changed = np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])
    often = np.array([3, 2, 1, 4])
    rows = Gaps.of(np.repeat(page, often), np.repeat(gap, often), np.repeat(changed, often), pages=2)
    np.testing.assert_allclose(
        estimate(name, Gaps.of(page, gap, changed, pages=2, times=often)), estimate(name, rows), rtol=1e-9
    )


# -- the equation ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(MIN_GAP, MAX_GAP), st.integers(1, 50)), max_size=6),
    st.floats(1e-3, 100),
    st.floats(1e-6, 1e6),
)
def test_the_equation_is_solved_and_the_curvature_is_right(rows: list[tuple[float, int]], a: float, b: float) -> None:
    gap, times = (np.array(column, float) for column in (zip(*rows, strict=True) if rows else ((), ())))
    rate, worth = solve_rates(np.zeros(len(rows), np.int64), gap, times, np.array([a]), np.array([b]))
    assert a + float((times * censored_term(rate[0] * gap)).sum()) == pytest.approx(b * float(rate[0]), rel=1e-6)

    def slope(log: float) -> float:
        return a + float((times * censored_term(np.exp(log) * gap)).sum()) - b * math.exp(log)

    at = math.log(float(rate[0]))
    assert -(slope(at + 1e-5) - slope(at - 1e-5)) / 2e-5 == pytest.approx(float(worth[0]), rel=1e-3, abs=1e-5)


# -- posteriors --------------------------------------------------------------------------------------------------


@given(st.integers(0, 40), st.floats(0.01, 100), st.floats(0.1, 10), st.floats(0.1, 100))
def test_known_times_are_the_exact_conjugate_update(changes: int, days: float, a: float, b: float) -> None:
    gaps = Gaps.of(
        np.zeros(changes + 1, int),
        np.append(np.full(changes, 200.0), days),
        np.append(np.ones(changes, bool), False),
        pages=1,
        quiet=np.full(changes + 1, 3.0),
    )
    after = posterior(gaps, a, b)
    assert float(after.a[0]) == pytest.approx(a + changes)
    assert float(after.b[0]) == pytest.approx(b + 3.0 * changes + days)


def test_the_posterior_is_near_the_exact_one() -> None:
    """Three visits a day apart that found a change and four that did not, against numerical integration."""
    a, b = 1.0, 2.0
    gaps = Gaps.of(np.zeros(7, int), np.ones(7), [1, 1, 1, 0, 0, 0, 0], pages=1)

    def density(rate: float) -> float:
        return math.exp((a - 1) * math.log(rate) - (b + 4) * rate) * (-math.expm1(-rate)) ** 3

    whole = integrate.quad(density, 0, 20)[0]
    mean = integrate.quad(lambda rate: rate * density(rate), 0, 20)[0] / whole
    after = posterior(gaps, a, b)
    assert float(after.rate[0]) == pytest.approx(mean, rel=0.03)
    low, high = after.interval(0.9)
    inside = integrate.quad(density, float(low[0]), float(high[0]))[0] / whole
    assert inside == pytest.approx(0.9, abs=0.02)


def test_intervals_have_their_nominal_coverage() -> None:
    rng = np.random.default_rng(5)
    rate = rng.gamma(0.5, 1.0, 4000)
    belief = nested(planted(np.maximum(rate, 1e-6), 8, 6))
    low, high = belief.interval(0.9)
    assert np.mean((low <= rate) & (rate <= high)) == pytest.approx(0.9, abs=0.025)


def test_a_new_page_uses_its_directory_and_a_directory_its_site() -> None:
    site = np.array([0] * 40 + [1] * 40)
    folder = np.arange(80) // 20
    rate = np.choose(folder, [2.0, 0.05, 0.05, 0.05])
    gaps = planted(rate, 10, 1)
    unseen = gaps.page % 20 != 0
    seen = Gaps.of(gaps.page[unseen], gaps.gap[unseen], gaps.changed[unseen], pages=80)
    believed = nested(seen, [site, folder]).rate[::20]
    assert believed[0] == pytest.approx(2.0, rel=0.5)
    assert believed[1:] == pytest.approx(0.05, rel=0.6)
    by_site = nested(seen, [site]).rate[::20]
    assert by_site[0] == pytest.approx(by_site[1])
    assert by_site[2] < by_site[0] < believed[0]


def test_neighbours_improve_the_estimate_of_a_new_page() -> None:
    rng = np.random.default_rng(8)
    folder = np.repeat(np.arange(50), 20)
    rate = rng.gamma(0.5, 0.4, 50)[folder] * rng.gamma(3.0, 1 / 3, 1000) + 1e-4
    gaps = planted(rate, 2, 9)
    alone, shared = (np.mean(np.abs(nested(gaps, levels).rate - rate)) for levels in ([], [folder]))
    assert shared < 0.85 * alone


def test_without_visits_the_rate_is_the_prior() -> None:
    belief = nested(Gaps.of([], [], [], pages=3), [np.zeros(3, int)])
    assert belief.rate == pytest.approx(FIRST_RATE)
    assert len(nested(Gaps.of([], [], [], pages=0), [np.zeros(0, int)]).rate) == 0


@given(st.floats(0.3, 1e4), st.floats(1e-3, 1e4), st.floats(0.01, 0.99))
def test_intervals_contain_the_median_and_nest(a: float, b: float, share: float) -> None:
    belief = Posterior(np.array([a]), np.array([b]))
    low, high = belief.interval(share)
    wider = belief.interval((1 + share) / 2)
    assert 0 <= wider[0] <= low <= high <= wider[1]
    assert float(belief.probability(belief.median_days())[0]) == pytest.approx(0.5)


# -- tallies -----------------------------------------------------------------------------------------------------


def test_sums_of_regular_visits_equal_the_visits() -> None:
    rng = np.random.default_rng(1)
    book, rows = Book.blank(20, now=0.0), []
    book.visits[:], book.last_visit[:] = 1, 0.0
    tally = GapSums.kept(book, "mine")
    for day in range(1, 30):
        what = (rng.random(20) < 0.3).astype(np.int8)
        seen, at = Outcomes(np.arange(20), what), np.full(20, day * DAY)
        rows.append(seen.changed)
        tally.add(book, seen, at)
        book.note(seen, at)
    tally.keep(book, "mine")
    whole = Gaps.of(np.tile(np.arange(20), 29), np.ones(580), np.concatenate(rows), pages=20)
    for name in ESTIMATORS:
        np.testing.assert_allclose(estimate(name, GapSums.kept(book, "mine").gaps()), estimate(name, whole))


def test_sums_of_irregular_visits_nearly_equal_the_visits() -> None:
    rng = np.random.default_rng(3)
    rate = rng.gamma(1.0, 0.3, 500) + 1e-3
    gaps = planted(rate, 20, 2)
    tally = GapSums(
        gaps.changes,
        gaps.sums(gaps.gap * gaps.changed),
        gaps.visits - gaps.changes,
        gaps.sums(gaps.gap * ~gaps.changed),
    )
    exact, rough = nested(gaps).rate, nested(tally.gaps()).rate
    assert np.mean(np.abs(rough - exact)) < 0.05 * np.mean(exact)


def test_failures_and_first_visits_carry_no_evidence() -> None:
    book = Book.blank(3, now=DAY)
    book.visits[:], book.last_visit[:] = [0, 1, 1], [-np.inf, 0.0, 2 * DAY]
    tally = GapSums.kept(book, "mine")
    tally.add(book, Outcomes(np.arange(3), np.array([2, 4, 1], np.int8)), np.full(3, DAY))
    assert tally.changed.tolist() == [0, 0, 1]
    assert tally.changed_days.tolist() == pytest.approx([0, 0, MIN_GAP]), "a clock that stepped back"
