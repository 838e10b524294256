"""The simulation of `python -m benchmarks.what_if`, on a history made here."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recrawl.lab.histories.history import ABSENT, History, assemble

DAY = 86400.0
CYCLES = 40
what_if: Any = importlib.import_module("benchmarks.what_if")  # without types, as benchmarks are


@pytest.fixture(scope="module")
def history() -> History:
    """Ten pages: the first changes every day, the second appears on day 10 and goes on day 20, the others rest."""
    urls = [f"http://a.example/{number}" for number in range(10)]
    rows = [(0, day * DAY - 1, day + 1) for day in range(1, CYCLES + 1)]
    rows += [(1, 10 * DAY, 1), (1, 20 * DAY, ABSENT)]
    rows += [(page, 0.0, 1) for page in range(10) if page != 1]
    page, time, version = (np.array(column) for column in zip(*sorted(rows), strict=True))
    made = assemble(urls, page, time.astype(np.float64), version, change="text", carries=frozenset())
    return replace(made, prior=np.zeros(len(urls), np.float32))


def test_the_last_version_of_a_day_counts(history: History) -> None:
    versions = what_if.versions_by_day(history, CYCLES)
    assert versions[:4, 0].tolist() == [1, 2, 3, 4]
    assert versions[[9, 10, 19, 20], 1].tolist() == [ABSENT, 1, 1, ABSENT]


def test_true_rates_find_all_that_the_clairvoyant_finds(history: History) -> None:
    world = what_if.world_of(history, 0.1, CYCLES)
    assert (world.visits, world.bound) == (1, CYCLES)
    assert what_if.simulate(world, what_if.Gamma(10, 0.5), 1, known=what_if.true_rates(world, 0)) == CYCLES


@pytest.mark.parametrize("model", [what_if.Gamma(10, 0.5), what_if.LogNormal(10, 1.5)])
def test_a_page_that_changes_daily_is_found(history: History, model: Any) -> None:
    assert what_if.simulate(what_if.world_of(history, 0.1, CYCLES), model, 1) > 10


def test_a_log_normal_rate_rises_faster_with_every_change() -> None:
    page, mean, gap = np.array([0]), np.array([0.003]), np.array([50.0])
    soon = []
    for model in (what_if.Gamma(1, 0.25), what_if.LogNormal(1, 1.5)):
        for _ in range(4):
            probability, rate = model.predict(page, mean, gap)
            model.observe(page, gap, np.array([True]), rate * gap / probability)
        soon.append(float(model.predict(page, mean, np.array([10.0]))[0][0]))
    assert soon[1] > soon[0]


def test_a_mean_over_days_keeps_the_sum() -> None:
    daily = np.zeros((9, 1))
    daily[4] = 1
    assert what_if.smoothed(daily, 1)[:, 0].round(2).tolist() == [0, 0, 0, 0.33, 0.67, 1, 1, 1, 1]
