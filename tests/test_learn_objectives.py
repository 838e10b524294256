"""What visits are worth, and how often pages should be visited: worked examples, brute force, laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.optimal.lambda_crawl import FREQUENCIES, allocate
from recrawl.columns import HOUR
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.learn.value import (
    OBJECTIVES,
    age_gain,
    expected_age,
    expected_index,
    freshness_gain,
    harmonic_gain,
    index,
    scalar_if_constant,
    time_to_age,
    time_to_change,
)
from recrawl.loop import drive, note
from recrawl.model import Outcomes, Picks

FIVE = np.arange(1.0, 6.0)
DAY = 86400.0
every_aim = pytest.mark.parametrize("aim", FREQUENCIES)
numbers = st.floats(0.01, 100)


def cost_of(aim: str, rate: np.ndarray, weight: np.ndarray, visits: np.ndarray) -> float:
    """What an allocation leaves to wish for, by the definitions; less is better."""
    r = rate / visits
    each = {
        "changes": -visits * -np.expm1(-r),
        "freshness": np.expm1(-r) / r,
        "age": (0.5 - 1 / r + -np.expm1(-r) / r**2) / visits,
        "harmonic": -np.log(visits / (visits + rate)),
        "binary": -visits / (visits + rate),
    }[aim]
    return float((weight * each).sum())


# -- allocations -------------------------------------------------------------------------------------------------


@every_aim
def test_no_other_allocation_is_better(aim: str) -> None:
    rng = np.random.default_rng(3)
    rate, weight, cost = rng.gamma(0.7, 2.0, 6) + 0.05, rng.gamma(1.0, 1.0, 6) + 0.1, rng.uniform(0.5, 2.0, 6)
    ours = allocate(aim, rate, 4.0, weight=weight, cost=cost)
    assert float(ours @ cost) == pytest.approx(4.0)
    best = min(
        float(
            optimize.minimize(
                lambda visits: cost_of(aim, rate, weight, visits),
                start * 4.0 / float(start @ cost),
                method="SLSQP",
                bounds=[(1e-6, None)] * 6,
                constraints={"type": "eq", "fun": lambda visits: visits @ cost - 4.0},
                options={"maxiter": 500, "ftol": 1e-12},
            ).fun
        )
        for start in rng.uniform(0.2, 1.0, (5, 6))
    )
    assert cost_of(aim, rate, weight, np.maximum(ours, 1e-6)) <= best + 1e-4 * abs(best)


def test_binary_is_the_closed_form() -> None:
    rng = np.random.default_rng(4)
    rate, weight = rng.gamma(0.5, 3.0, 40) + 0.01, rng.gamma(1.0, 1.0, 40) + 0.01
    active = np.argsort(-weight / rate)
    while True:
        root = np.sqrt(weight[active] * rate[active])
        visits = root * (5.0 + rate[active].sum()) / root.sum() - rate[active]
        if visits[-1] > 0:
            break
        active = active[:-1]
    closed = np.zeros(40)
    closed[active] = visits
    np.testing.assert_allclose(allocate("binary", rate, 5.0, weight=weight), closed, atol=1e-8)


@every_aim
@settings(max_examples=25)
@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8), numbers, st.floats(0, 2))
def test_the_budget_is_spent_and_the_floor_kept(
    aim: str, pages: list[tuple[float, float, float]], budget: float, floor: float
) -> None:
    rate, weight, cost = np.array(pages).T
    visits = allocate(aim, rate, budget, weight=weight, cost=cost, floor=floor)
    assert np.isfinite(visits).all()
    assert float(visits @ cost) == pytest.approx(budget, rel=1e-6)
    assert visits.min() >= min(floor, budget / cost.sum()) * (1 - 1e-9)


@pytest.mark.parametrize("aim", ["freshness", "age", "harmonic", "binary"])
@settings(max_examples=25)
@given(st.lists(numbers, min_size=2, max_size=8), numbers)
def test_a_higher_weight_never_gives_fewer_visits(aim: str, rate: list[float], budget: float) -> None:
    even = allocate(aim, np.array(rate), budget)
    more = allocate(aim, np.array(rate), budget, weight=np.array([2.0] + [1.0] * (len(rate) - 1)))
    assert more[0] >= even[0] * (1 - 1e-6)


def test_pages_without_change_or_weight_get_the_floor() -> None:
    rate, weight = np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0])
    assert allocate("harmonic", rate, 3.0, weight=weight, floor=0.5).tolist() == pytest.approx([0.5, 0.5, 2.0])
    assert allocate("age", np.zeros(2), 3.0).tolist() == [0, 0]
    assert allocate("age", np.zeros(0), 3.0).tolist() == []
    assert allocate("age", np.ones(2), 0.0).tolist() == [0, 0]


def test_changes_are_found_most_in_proportion_to_rates() -> None:
    np.testing.assert_allclose(allocate("changes", FIVE, 5.0), FIVE / 3)


# -- the worth of a visit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["freshness", "harmonic", "age"])
@given(st.floats(0.01, 2), st.floats(0.01, 10))
def test_the_index_is_the_growth_of_staleness(objective: str, rate: float, days: float) -> None:
    """t·D(t) - ∫D for the expected staleness D (Olston and Pandey)."""

    def staleness(t: float) -> float:
        if objective == "freshness":
            return -math.expm1(-rate * t)
        if objective == "age":
            return t + math.expm1(-rate * t) / rate
        return float(integrate.quad(lambda x: -math.expm1(-x) / x, 0, rate * t)[0])

    spent = integrate.quad(staleness, 0, days)[0]
    got = index(objective, np.array([-math.expm1(-rate * days)]), np.array([rate]))[0]
    assert float(got) == pytest.approx(days * staleness(days) - spent, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("objective", ["changes", "freshness", "harmonic", "age"])
@given(st.floats(0.2, 30), st.floats(0.1, 100), st.floats(0.01, 100))
@settings(max_examples=10)
def test_the_expected_index_is_the_mean_over_the_posterior(objective: str, a: float, b: float, days: float) -> None:
    rate = np.maximum(stats.gamma.ppf((np.arange(5_000) + 0.5) / 5_000, a) / b, 1e-9)
    forms = {
        "changes": (freshness_gain, 0),
        "freshness": (freshness_gain, 1),
        "harmonic": (harmonic_gain, 1),
        "age": (age_gain, 2),
    }
    form, power = forms[objective]
    each = form(rate * days) / rate**power
    got = expected_index(objective, np.array([a]), np.array([b]), np.array([days]))[0]
    assert float(got) == pytest.approx(float(each.mean()), rel=0.01)


@given(st.floats(0.25, 1e3), st.floats(1e-3, 1e6), st.floats(0, 0.9999))
def test_the_time_to_a_probability_gives_this_probability(a: float, b: float, chance: float) -> None:
    one, two = np.array([a]), np.array([b])
    days = time_to_change(one, two, np.array([chance]))
    assert 1 - float((b / (b + days[0])) ** a) == pytest.approx(chance, rel=1e-6, abs=1e-9)
    assert np.isfinite(time_to_change(one, two, np.ones(1)))


@given(st.floats(0.25, 1e3), st.floats(1e-2, 1e6), st.floats(0, 1e4))
def test_the_time_to_an_age_gives_this_age(a: float, b: float, age: float) -> None:
    one, two = np.array([a]), np.array([b])
    days = time_to_age(one, two, np.array([age]))
    assert days[0] >= age, "it was not out of date before it was seen"
    assert float(expected_age(one, two, days)[0]) == pytest.approx(age, rel=1e-3)


@given(st.floats(0.2, 30), st.floats(0.1, 100), st.floats(0.1, 100))
@settings(max_examples=10)
def test_the_expected_age_is_the_integral_of_the_probability(a: float, b: float, days: float) -> None:
    total = integrate.quad(lambda t: 1 - (b / (b + t)) ** a, 0, days)[0]
    assert float(expected_age(np.array([a]), np.array([b]), np.array([days]))[0]) == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(st.floats(1e-3, 1e6), st.floats(1e-6, 1e6), st.floats(-10, 1e6))
def test_the_expected_index_grows_with_waiting_time(objective: str, a: float, b: float, days: float) -> None:
    one, two = np.array([a]), np.array([b])
    now, later = (expected_index(objective, one, two, np.array([wait])) for wait in (days, max(days, 0) * 1.1 + 0.1))
    assert np.isfinite(now).all()
    assert 0 <= now[0] <= later[0] * (1 + 1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e3)), min_size=1, max_size=8))
def test_any_probability_and_rate_have_a_finite_index(objective: str, pages: list[tuple[float, float]]) -> None:
    chance, rate = np.array(pages).T
    worth = index(objective, chance, rate, weight=np.ones(len(rate)), cost=np.ones(len(rate)))
    assert np.isfinite(worth).all()
    assert (worth >= 0).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(st.floats(1e-6, 0.999), st.floats(0.01, 10), st.floats(1.001, 50))
def test_weight_and_cost_count_in_proportion(objective: str, chance: float, rate: float, by: float) -> None:
    both, rates = np.full(2, chance), np.full(2, rate)
    heavy = index(objective, both, rates, weight=np.array([1.0, by]))
    dear = index(objective, both, rates, cost=np.array([1.0, by]))
    assert heavy[1] == pytest.approx(by * heavy[0])
    assert dear[1] == pytest.approx(dear[0] / by)


@given(st.lists(st.floats(0, 0.9999), min_size=2, max_size=10, unique=True))
def test_with_equal_weights_changes_orders_pages_by_probability(chance: list[float]) -> None:
    told, rate = np.array(chance), np.ones(len(chance))
    np.testing.assert_array_equal(
        index("changes", told, rate, weight=scalar_if_constant(np.full(len(told), 2.0))), 2 * told
    )
    uneven = index("changes", told, rate, weight=np.append(np.ones(len(told) - 1), 1 + 1e-15))
    far = np.abs(np.subtract.outer(told, told)) > 1e-3
    assert (np.sign(np.subtract.outer(uneven, uneven)) == np.sign(np.subtract.outer(told, told)))[far].all()


def test_links_decay_and_more_new_links_raise_the_index() -> None:
    rate, days = np.full(3, 0.5), np.array([2.0, 2.0, 200.0])
    worth = index("links", -np.expm1(-rate * days), rate, links=np.array([1.0, 4.0, 1.0]))
    assert worth[1] == pytest.approx(4 * worth[0])
    assert worth[2] <= 0.5 * 7, "at most what fades in a day, however long ago"


@pytest.mark.parametrize(
    ("form", "power", "factor"), [(freshness_gain, 2, 0.5), (harmonic_gain, 2, 0.5), (age_gain, 3, 1 / 3)]
)
def test_small_values_keep_their_precision(form: Callable[[Any], Any], power: int, factor: float) -> None:
    u = np.geomspace(1e-12, 1e-3, 50)
    np.testing.assert_allclose(form(u), factor * u**power, rtol=1e-3)
    whole = form(np.geomspace(1e-6, 20, 4000))
    assert (np.diff(whole) > 0).all()


# -- policies -------------------------------------------------------------------------------------------------------


class Poisson:
    """Pages that change independently, at these rates a cycle."""

    def __init__(self, rate: np.ndarray, seed: int) -> None:
        self.rate, self.rng, self.now = rate, np.random.default_rng(seed), 0
        self.last = np.zeros(len(rate))
        self.visits = np.zeros(len(rate))

    def visit(self, picks: Picks) -> Outcomes:
        gone = self.now - self.last[picks.pages]
        self.last[picks.pages] = self.now
        self.visits[picks.pages] += 1
        changed = self.rng.random(len(gone)) < -np.expm1(-self.rate[picks.pages] * gone)
        return Outcomes(picks.pages, changed.astype(np.int8))


@pytest.mark.parametrize(
    ("text", "aim"),
    [
        ("optimal-freshness", "freshness"),
        ("optimal-freshness(estimator=irregular)", "freshness"),
        ("optimal-age", "age"),
        ("lambda-crawl", "harmonic"),
        ("lambda-crawl(penalty=binary)", "binary"),
    ],
)
def test_visit_frequencies_converge_to_the_optimum(text: str, aim: str) -> None:
    """A quarter of the pages is visited in a cycle; the rates have to be learned on the way."""
    rate = np.repeat([0.05, 0.2, 0.6], 40)
    policy, world = make_policy(text), Poisson(rate, 1)
    book = Book.blank(len(rate), now=0.0)
    book.visits[:], book.changes[:], book.last_visit[:], book.last_try[:] = 1, 1, 0.0, 0.0
    for cycle in range(1, 141):
        book.now, world.now = cycle * DAY, cycle
        if cycle == 71:
            world.visits[:] = 0
        (seen,) = drive(policy, world, book, 30, cycle)
        note(policy, book, seen, np.full(len(seen), book.now))
    share = world.visits.reshape(3, 40).mean(axis=1) / 70
    wanted = allocate(aim, rate, 30.0).reshape(3, 40).mean(axis=1)
    assert share.sum() == pytest.approx(0.75)
    np.testing.assert_allclose(share, wanted, atol=0.08)


def test_higher_weight_and_lower_cost_come_first() -> None:
    book = Book.blank(3, now=10 * DAY)
    book.visits[:], book.last_visit[:], book.last_try[:] = 1, 0.0, 0.0
    book.weight, book.cost = np.array([1.0, 5.0, 5.0]), np.array([1.0, 1.0, 0.5])
    for text in ("optimal-freshness", "optimal-age", "lambda-crawl", "optimal-age(estimator=naive)"):
        world = Poisson(np.ones(3), 1)
        assert [page for seen in drive(make_policy(text), world, book, 3, 1) for page in seen.pages] == [2, 1, 0]


def test_on_news_sites_the_age_objective_is_younger_than_visits_near_the_anchor(tmp_path: Path) -> None:
    """Neither is told where the anchors are; new pages become known when a visited page links to them."""
    for seed in (1, 2):
        file = tmp_path / f"{seed}.parquet"
        write(SyntheticWorld(seed=seed, sites=2, pages=60, days=12, kinds="news", links=20, size_min=1500), file)
        history = open_history([file])
        setup = Setup(budget=4, cycle=6 * HOUR, cycles=44, seed=1, discover="links")
        ours, theirs = (
            replay(history, make_policy(text), setup).age.mean() for text in ("shock(objective=age)", "anchor-depth")
        )
        assert ours < 0.9 * theirs
