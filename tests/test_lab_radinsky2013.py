"""R's figure 8: crawls by machines that are trained once, and by policies that learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recrawl.lab.experiments.radinsky2013 import crawling, published
from recrawl.lab.experiments.radinsky2013.crawling import CrawlPlan, Losses, carried_forward, frozen_crawl, online_crawl
from recrawl.lab.predict.days import Planted, as_history, planted
from recrawl.lab.predict.methods import FrozenMachines, PredictionSetting, chosen_experts, margins_by_day

WORLD = planted(Planted(groups=3, size=4, days=60))
DAYS = WORLD.days


@pytest.mark.parametrize("method", ["random", "frequency", "2d"])
def test_more_visits_give_higher_freshness(method: str) -> None:
    few, many = (frozen_crawl(DAYS, CrawlPlan(method, share, 20, 10, seed=1)).mean() for share in (0.1, 0.6))
    assert few < many < 1
    assert frozen_crawl(DAYS, CrawlPlan(method, 1.0, 20, 10, seed=1)).all()


def test_the_same_seed_gives_the_same_crawl() -> None:
    first, second = (frozen_crawl(DAYS, CrawlPlan("frequency", 0.3, 20, 10, seed=3)) for _ in range(2))
    assert first.shape == (len(DAYS), 10)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, frozen_crawl(DAYS, CrawlPlan("frequency", 0.3, 20, 10, seed=4)))


@pytest.mark.parametrize("method", ["2d", "3d"])
def test_on_the_day_of_the_fit_frozen_machines_are_those_of_the_lab(method: str) -> None:
    setting = PredictionSetting(method, experts="graph", k=3, train=25)
    machines = FrozenMachines.fit(DAYS, setting, 30)
    experts = None if method == "2d" else chosen_experts(DAYS, setting, 30)
    margin = margins_by_day(DAYS, setting, range(30, 31), experts, np.arange(len(DAYS)))[1][:, 0]
    np.testing.assert_allclose(machines.margin(DAYS, 30), margin, rtol=1e-3, atol=1e-3)


def test_frozen_machines_are_asked_with_new_features() -> None:
    """A page that copies its leader a day later: what the leader did yesterday decides, on every day of the crawl."""
    machines = FrozenMachines.fit(DAYS, PredictionSetting("3d", experts="graph", k=3, train=40), 45)
    margin = np.stack([machines.margin(DAYS, day) for day in range(45, 60)], axis=1)
    copies = np.flatnonzero((WORLD.kind == 0) & (WORLD.leader != np.arange(len(DAYS))))
    label = DAYS.changed[copies, 45:60]
    assert margin[copies][label].mean() > margin[copies][~label].mean() + 0.5


def test_frozen_machines_are_not_trained_again() -> None:
    """What happens after the fit gives features, but no examples: another label of the day asked changes nothing."""
    machines = FrozenMachines.fit(DAYS, PredictionSetting("2d", train=25), 30)
    changed = DAYS.changed.copy()
    changed[:, 32] = ~changed[:, 32]
    other = replace(DAYS, changed=changed)
    np.testing.assert_array_equal(machines.margin(other, 32), machines.margin(DAYS, 32))
    assert (machines.margin(other, 33) != machines.margin(DAYS, 33)).any()


def test_losses_compare_the_same_visits() -> None:
    losses = Losses()
    losses.add(np.array([0.9, np.nan]), np.array([0.5, 0.5]), np.array([True, True]))
    assert (losses.visits, losses.predicted) == (2, 1)
    assert losses.method == pytest.approx(-np.log(0.9))
    assert losses.frequency == pytest.approx(np.log(2))


def test_a_policy_crawls_the_same_days() -> None:
    fresh = online_crawl(DAYS, "predicted(method=2d, train=10, pick=coin)", 0.5, 60, seed=1)
    assert fresh.shape == DAYS.seen.shape
    assert 0.3 < fresh[:, 5:].mean() < 1
    assert online_crawl(DAYS, "round-robin", 1.0, 10, seed=1).all()


def test_between_visits_versions_are_carried_forward_and_labels_are_not() -> None:
    where = np.zeros(DAYS.seen.shape, np.bool_)
    where[:, [0, 10, 20]] = True
    known = DAYS.visited(where)
    held = carried_forward(known)
    assert (held.text[:, 19] == DAYS.text[:, 10]).all()
    assert (held.text[:, 25] == DAYS.text[:, 20]).all()
    assert np.array_equal(held.labelled, known.labelled)
    assert held.labelled.sum() == 2 * len(DAYS)


@pytest.mark.parametrize("key", published.STATEMENTS)
@pytest.mark.parametrize("made", [True, False])
def test_every_statement_has_a_reason_for_not_holding(key: str, made: bool) -> None:
    assert published.why(key, made=made)


def test_what_is_said_of_a_crawl_comes_from_its_losses() -> None:
    good, bad = Losses(10, 10, 4.0, 5.0), Losses(10, 10, 6.0, 5.0)
    assert "predicted the visits better" in crawling._why({"2d": good, "3d": good}, 1.0, False)
    assert crawling._why({"2d": good, "3d": bad}, 1.0, False).startswith("tested: 3d predicted the visits no better")
    assert "0.600" in crawling._why({"2d": good, "3d": bad}, 1.0, False)
    assert "30%" in crawling._why({"2d": good, "3d": bad}, 0.3, None)


def test_days_become_a_history_whatever_their_versions_are() -> None:
    """Versions of archives are digests, which may be negative or beyond 32 bits."""
    digests = np.random.default_rng(1).integers(-(2**62), 2**62, int(DAYS.version.max()) + 1)
    plain, hashed = as_history(DAYS), as_history(replace(DAYS, version=digests[DAYS.version]))
    assert hashed.time.tolist() == plain.time.tolist()
    assert len(plain.time) == len(DAYS) + int(DAYS.changed.sum())
    for page in range(len(DAYS)):
        rows = slice(int(plain.first[page]), int(plain.first[page + 1]))
        assert (plain.time[rows] / 86400).tolist() == [0.0, *np.flatnonzero(DAYS.changed[page]).tolist()]
