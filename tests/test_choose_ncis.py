"""GREEDY-NCIS: the formula against Monte-Carlo and its limits, the policy against honest and lying sitemaps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.choose import make_policy
from recrawl.choose.optimal.ncis import signal_index
from recrawl.lab.histories.history import History
from recrawl.lab.replays.replay import Setup, replay
from tests.test_lab_simulated_hints import living

DAY = 86400.0


def drawn(x: float, rate: float, silent: float, false: float, many: int = 60_000) -> float:
    """V from histories that are drawn: how long a page is fresh, and how long until it reaches the threshold."""
    rng = np.random.default_rng(1)
    told, jump = rate - silent, np.log1p((rate - silent) / false)
    time, level = np.zeros(many), np.zeros(many)
    changed, end = rng.exponential(1 / silent, many), np.full(many, np.nan)
    going = np.arange(many)
    while len(going):
        then = time[going] + rng.exponential(1 / (told + false), len(going))
        reached = (x - level[going]) / silent
        over = then >= reached
        end[going[over]] = reached[over]
        going, then = going[~over], then[~over]
        time[going] = then
        level[going] += jump
        true = rng.random(len(going)) < told / (told + false)
        changed[going[true]] = np.minimum(changed[going[true]], then[true])
        there = level[going] + silent * then >= x
        end[going[there]] = then[there]
        going = going[~there]
    return float(np.minimum(changed, end).mean() - np.exp(-x) * end.mean())


@pytest.mark.parametrize(
    ("x", "rate", "silent", "false"), [(0.5, 0.1, 0.05, 0.01), (1.0, 0.3, 0.1, 0.2), (2.0, 0.3, 0.01, 0.05)]
)
def test_the_formula_equals_a_simulation(x: float, rate: float, silent: float, false: float) -> None:
    columns = (np.array([value]) for value in (x, rate, silent, false))
    assert signal_index(*columns)[0] == pytest.approx(drawn(x, rate, silent, false), rel=0.02)


@given(st.floats(1e-3, 20), st.floats(1e-4, 5))
def test_without_signals_it_is_plain_freshness(x: float, rate: float) -> None:
    plain = (1 - (1 + x) * np.exp(-x)) / rate
    for silent in (rate, rate * (1 - 1e-7)):
        got = signal_index(np.array([x]), np.array([rate]), np.array([silent]), np.array([0.1]))
        assert got[0] == pytest.approx(plain, rel=1e-4, abs=1e-9)


def test_a_signal_that_is_never_false_gives_a_page_its_maximum_value() -> None:
    """Without false alarms: μ/Δ after a signal, and before it what silence leaves (algorithms §7)."""
    rate, silent, waited = 0.2, 0.05, 4.0
    told = np.array([50.0]), np.array([rate]), np.array([silent]), np.array([1e-200])
    assert signal_index(*told)[0] == pytest.approx(1 / rate, rel=1e-6)
    quiet = np.array([silent * waited]), np.array([rate]), np.array([silent]), np.array([1e-200])
    heard = rate - silent
    expected = -np.expm1(-rate * waited) / rate + np.exp(-silent * waited) * np.expm1(-heard * waited) / heard
    assert signal_index(*quiet)[0] == pytest.approx(expected, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_the_value_grows_with_the_change_probability(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rate = np.full(50, 10 ** rng.uniform(-4, 1))
    silent, false = rate * rng.random(), np.full(50, 10 ** rng.uniform(-6, 1))
    value = signal_index(np.sort(rng.random(50) * 10), rate, silent, false)
    assert np.isfinite(value).all()
    assert (value > -1e-9 / rate[0]).all()
    assert (np.diff(value) > -1e-2 / rate[0]).all()


@pytest.fixture(scope="module")
def world() -> History:
    return living(pages=120, days=60, rate=0.05, seed=4)


def freshness(world: History, hints: str) -> float:
    setup = Setup(budget=4, cycle=DAY, cycles=60, hints=hints)
    return float(replay(world, make_policy("ncis"), setup).summary()["freshness"])


@pytest.mark.slow
def test_a_correct_sitemap_adds_much_freshness_and_a_false_one_costs_little(world: History) -> None:
    alone = freshness(world, "")
    assert freshness(world, "sitemap:honest") > alone + 0.1
    for how in ("lying", "random", "silent", "future", "never"):
        assert freshness(world, f"sitemap:{how}") > alone - 0.02, how
