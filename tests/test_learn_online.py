"""Online classifiers: the kernel map, learning and unlearning, and updated relations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.lab.predict.days import Planted, planted
from recrawl.lab.predict.evaluation import evaluate
from recrawl.lab.predict.methods import DayPasses, PredictionSetting, predict, vote_weights_by_day, word_sketch
from recrawl.learn.experts.online_learner import OnlineClassifiers, PolynomialMap
from recrawl.learn.experts.selection import by_time


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 10_000))
def test_the_map_is_the_kernel(features: int, degree: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(5, features))
    seen = PolynomialMap(features, degree)(x)
    assert seen @ seen.T == pytest.approx((x @ x.T + 1) ** degree, rel=1e-3, abs=1e-2)


def stream(machines: OnlineClassifiers, x: np.ndarray, yes: np.ndarray) -> np.ndarray:
    """The margins of two classifiers for each day before they learn from it; the second is never updated."""
    there = np.array([True, False])
    margins = []
    for values, label in zip(x, yes, strict=True):
        seen = machines.scale(np.stack((values, values)), there)
        margins.append(machines.margin(seen))
        machines.update(seen, np.array([label, label]), there)
    return np.array(margins)


def test_a_rule_is_learned_day_by_day_and_unlearned_when_it_changes() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 3)) * [1.0, 50.0, 0.0] + [7.0, 0.0, 3.0]
    yes = (x[:, 0] > 7) != (x[:, 1] > 0)  # only a product of two features tells
    yes[300:] = ~yes[300:]
    machines = OnlineClassifiers(2, 3)
    right = (stream(machines, x, yes) > 0)[:, 0] == yes
    assert right[200:300].mean() > 0.85
    assert right[300:320].mean() < 0.5
    assert right[500:].mean() > 0.85
    assert machines.examples.tolist() == [600, 0]


def test_a_classifier_without_features_does_not_change() -> None:
    machines = OnlineClassifiers(2, 3, grouped=2)
    margins = stream(machines, np.zeros((20, 3)), np.ones(20, bool))
    assert (margins[:, 1] == 0).all()
    assert margins[-1, 0] > 0  # one class only, and features that never vary: that class
    assert np.isfinite(margins).all()


def test_extreme_values_are_clipped() -> None:
    machines = OnlineClassifiers(2, 2)
    x = np.array([[0.0, 1.0], [1e12, -1e12], [3.0, 4.0]] * 10)
    assert np.isfinite(stream(machines, x, x[:, 0] > 1)).all()


def test_similar_texts_have_similar_sketches() -> None:
    days = planted(Planted(groups=3, size=2, days=30)).days
    found = word_sketch(days.bags, days.text)
    assert len(found) == days.bags.shape[0] + 1
    assert not found[-1].any()
    assert np.abs(found).max() <= 1
    assert not word_sketch(days.bags, np.full((2, 3), -1, np.int32)).any()


def test_relations_follow_the_newest_day() -> None:
    days = planted(Planted(groups=6, size=5, leaders=3, days=60, noise=0.02)).days
    words = DayPasses().words(days, 40, PredictionSetting())
    chosen = by_time(words, 4)
    found = vote_weights_by_day(days, range(40, 45), chosen, words, np.arange(len(days)))
    assert found.shape == (5, len(days), chosen.page.shape[1] + 1)
    assert (found[:, :, 0] == 1).all()
    assert found[0, :, 1:] == pytest.approx(chosen.weight, abs=1e-4)
    assert np.abs(found[4] - found[0]).max() > 0.01
    assert (found >= 0).all()


def test_related_pages_help_online_classifiers() -> None:
    world = planted(Planted(groups=6, size=5, leaders=3, days=100, noise=0.02))
    followers = (world.kind == 0) & (np.arange(len(world.kind)) - world.leader >= 3)
    over = range(85, 100)
    score = {
        method: np.nanmean(evaluate(world.days, PredictionSetting(method, k=4, train=80), over).by_page()[followers])
        for method in ("online-2d", "online-3d")
    }
    assert score["online-3d"] > score["online-2d"] + 0.15


def test_day_by_day_equals_all_days_at_once() -> None:
    """Predicting one day at a time gives the same result as all days at once."""
    days = planted(Planted(groups=3, size=4, days=40)).days
    setting = PredictionSetting("online-2d", train=20)
    together = predict(days, setting, range(30, 34)).decision
    assert (predict(days.between(0, 33), setting, range(30, 33)).decision == together[:, :3]).all()
