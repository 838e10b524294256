"""Estimators of change rates: against the figures that are known for them, and by their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.learn.rates import bias_reduced, irregular, last_modified

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
times = st.floats(1e-3, 1e4)


@pytest.mark.parametrize(("rate", "mean"), [(0.1, 0.100), (0.5, 0.500), (1.0, 1.002), (2.0, 1.938)])
def test_bias_reduced_has_the_known_mean(rate: float, mean: float) -> None:
    """From the distribution of X in ten visits; the means to compare with were simulated, good to 0.0015."""
    chance, x = -math.expm1(-rate), np.arange(11)
    weight = np.array([math.comb(10, k) * chance**k * (1 - chance) ** (10 - k) for k in x])
    assert float(weight @ bias_reduced(x, 10, 1.0)) == pytest.approx(mean, abs=0.0015)
    assert float(weight @ (x / 10)) == pytest.approx(chance), "the plain share is far below the rate"


@given(counts, times)
def test_bias_reduced_grows_with_the_changes_and_is_finite(count: tuple[int, int], interval: float) -> None:
    _, n = count
    rate = bias_reduced(np.arange(n + 1), n, interval)
    assert rate[0] == 0
    assert np.isfinite(rate).all()
    assert (np.diff(rate) > 0).all()


@given(counts, times, st.floats(0.01, 100))
def test_a_longer_interval_means_a_lower_rate_in_proportion(
    count: tuple[int, int], interval: float, times_longer: float
) -> None:
    once, longer = bias_reduced(*count, interval), bias_reduced(*count, interval * times_longer)
    assert float(longer * times_longer) == pytest.approx(float(once))
    once, longer = last_modified(*count, interval), last_modified(*count, interval * times_longer)
    assert float(longer * times_longer) == pytest.approx(float(once))


@given(counts, times)
def test_last_modified_lies_between_nothing_and_the_plain_ratio(count: tuple[int, int], exposure: float) -> None:
    x, _ = count
    rate = float(last_modified(*count, exposure))
    assert 0 <= rate <= x / exposure
    assert (rate == 0) == (x == 0 or count == (1, 1))


def test_last_modified_corrects_the_bias_of_the_plain_ratio() -> None:
    """Visits at unit intervals, rate 0.8, the time of the last change told at each: 25 visits, many times over."""
    rng = np.random.default_rng(5)
    since = rng.exponential(1 / 0.8, (60_000, 25))
    changed = since < 1
    x, exposure = changed.sum(axis=1), np.minimum(since, 1).sum(axis=1)
    plain, mended = (x / exposure).mean(), last_modified(x, 25, exposure).mean()
    assert plain == pytest.approx(0.820, abs=0.003)
    assert mended == pytest.approx(0.8015, abs=0.003)


def rows(gaps: list[float], changed: list[bool]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    return np.zeros(len(gaps), np.int64), np.array(gaps), np.array(changed), 1


def test_irregular_at_equal_intervals_is_the_closed_form() -> None:
    assert irregular(*rows([2.0] * 10, [True] * 3 + [False] * 7))[0] == pytest.approx(-math.log(0.7) / 2)


def test_irregular_solves_an_example_worked_by_hand() -> None:
    """One change within 1, none within 2: 1/(e^λ - 1) = 2, so e^λ = 1.5."""
    assert irregular(*rows([1.0, 2.0], [True, False]))[0] == pytest.approx(math.log(1.5))


def test_irregular_is_nan_where_it_is_undefined() -> None:
    page, gap = np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 2.0, 2.0])
    rate = irregular(page, gap, np.array([True, True, False, False]), 3)
    np.testing.assert_array_equal(rate, [np.inf, 0.0, np.nan])
    smooth = irregular(page, gap, np.array([True, True, False, False]), 3, smooth=0.5)
    assert np.isfinite(smooth).all()
    assert 0 < smooth[1] < smooth[2] < smooth[0]
    assert smooth[2] == pytest.approx(math.log(2) / 0.5)


def test_irregular_without_any_rows() -> None:
    none = np.zeros(0)
    assert irregular(none.astype(np.int64), none, none.astype(bool), 0).tolist() == []
    assert np.isnan(irregular(none.astype(np.int64), none, none.astype(bool), 2)).all()


visits = st.lists(st.tuples(st.floats(0.01, 100), st.booleans()), min_size=1, max_size=12)


@given(st.lists(visits, min_size=1, max_size=6))
def test_irregular_balances_both_sides_for_every_page_at_once(pages: list[list[tuple[float, bool]]]) -> None:
    page = np.repeat(np.arange(len(pages)), [len(row) for row in pages])
    gap = np.array([gap for row in pages for gap, _ in row])
    changed = np.array([changed for row in pages for _, changed in row])
    mixed = np.random.default_rng(1).permutation(len(page))
    together = irregular(page[mixed], gap[mixed], changed[mixed], len(pages))
    for number, row in enumerate(pages):
        rate = together[number]
        assert rate == pytest.approx(irregular(*rows([g for g, _ in row], [c for _, c in row]))[0])
        if 0 < rate < math.inf:
            left = sum(t / math.expm1(min(rate * t, 700)) for t, c in row if c)
            assert left == pytest.approx(sum(t for t, c in row if not c), rel=1e-6)


@given(visits, st.floats(0.01, 100))
def test_irregular_scales_with_time(row: list[tuple[float, bool]], by: float) -> None:
    gaps, changed = [g for g, _ in row], [c for _, c in row]
    once, later = irregular(*rows(gaps, changed))[0], irregular(*rows([g * by for g in gaps], changed))[0]
    assert later * by == pytest.approx(once, rel=1e-6)


@given(visits, st.integers(0, 11))
def test_irregular_grows_when_a_visit_turns_out_changed(row: list[tuple[float, bool]], which: int) -> None:
    gaps, changed = [g for g, _ in row], [c for _, c in row]
    more = [c or place == which % len(row) for place, c in enumerate(changed)]
    assert irregular(*rows(gaps, more))[0] >= irregular(*rows(gaps, changed))[0] * (1 - 1e-9)


def test_irregular_recovers_the_rate_from_irregular_visits() -> None:
    rng = np.random.default_rng(3)
    gap = rng.uniform(0.1, 3.0, 20_000)
    changed = rng.random(20_000) < -np.expm1(-0.7 * gap)
    assert irregular(np.zeros(20_000, np.int64), gap, changed, 1)[0] == pytest.approx(0.7, rel=0.03)
