"""The `pooled` predictor: ledger, features, model, and that it cannot see the future."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from recrawl.columns import DAY
from recrawl.lab.experiments.radinsky2013.extensions import ablation
from recrawl.lab.predict.days import Days, observed
from recrawl.lab.predict.pooled_predictor import FAMILIES, Relatives, predict
from recrawl.lab.predict.scores import auc, calibration_error
from recrawl.learn.pooled import model as pooled
from recrawl.learn.pooled.features import BASELINE, feature_names, features
from recrawl.learn.pooled.ledger import Ledger, weekday
from recrawl.learn.pooled.model import Trees

START = 1_700_000_000


def days_from(changed: NDArray[np.bool_], seen: NDArray[np.bool_] | None = None, per_site: int = 10) -> Days:
    """Days on which pages change as given."""
    pages, days = changed.shape
    version = np.cumsum(changed, axis=1, dtype=np.int64)
    there = np.ones(changed.shape, np.bool_) if seen is None else seen
    return observed(
        [f"https://s{page // per_site}.example/{page}" for page in range(pages)],
        START + int(DAY) * np.arange(days),
        version,
        there,
        label="text",
        text=np.where(there, 0, -1).astype(np.int32),
        bags=sparse.csr_array(np.ones((1, 2), np.uint16)),
    )


def coins(rates: NDArray[np.float64], days: int, seed: int = 1) -> NDArray[np.bool_]:
    """Pages that change at random each day, each at its own rate."""
    return np.random.default_rng(seed).random((len(rates), days)) < rates[:, None]


# -- the ledger ---------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_the_ledger_equals_a_plain_list(seed: int, visits: int) -> None:
    rng = np.random.default_rng(seed)
    ledger = Ledger.of(np.zeros(3, np.int64), np.arange(3) % 2)
    past: list[list[tuple[float, bool]]] = [[], [], []]
    now = 0.0
    for _ in range(visits):
        now += float(rng.integers(1, 20)) * DAY / 4
        pages = np.flatnonzero(rng.random(3) < 0.6)
        found = rng.random(len(pages)) < 0.5
        ledger.note(pages, now, found)
        for page, hit in zip(pages.tolist(), found.tolist(), strict=True):
            past[page].append((now, hit))
    for page, mine in enumerate(past):
        later = [hit for _, hit in mine[1:]]
        assert ledger.compared[page] == len(later)
        assert ledger.changed[page] == sum(later)
        assert int(ledger.bits[page]) == sum(hit << place for place, hit in enumerate(reversed(later)))
        if mine:
            assert ledger.last[page] == mine[-1][0]
            gaps = np.diff([at for at, _ in mine]) / DAY
            faded = sum(hit * 0.5 ** ((mine[-1][0] - at) / DAY / 10.0) for at, hit in mine[1:])
            assert ledger.changes[page, 2] == pytest.approx(faded, rel=1e-4, abs=1e-6)
            assert ledger.days[page, 3] <= gaps.clip(max=7).sum() + 1e-4


def test_a_ledger_survives_storage_and_new_pages() -> None:
    ledger = Ledger.of(np.zeros(2, np.int64), np.zeros(2, np.int64))
    for day in range(5):
        ledger.note(np.array([0, 1]), day * DAY, np.array([day % 2 == 0, True]))
    again = Ledger.restored(ledger.arrays(), np.array([0, 0, 1]), np.array([0, 0, 1]))
    rows, more = features(ledger, np.array([0, 1]), 5 * DAY), features(again, np.array([0, 1, 2]), 5 * DAY)
    np.testing.assert_array_equal(rows, more[:2])
    assert np.isnan(again.last[2])


def test_weekdays_are_distinguished() -> None:
    """A page that changes on Mondays only: on a Monday its rate is high, on other days low."""
    ledger = Ledger.of(np.zeros(1, np.int64), np.zeros(1, np.int64))
    column = feature_names(depth=False).index(BASELINE)
    rates_by_day = []
    for day in range(70):
        at = START + day * DAY
        monday = bool(weekday(np.array([at]))[0] == 0)
        if day > 40:
            rates_by_day.append((monday, float(features(ledger, np.array([0]), at)[0, column])))
        ledger.note(np.array([0]), at, np.array([monday]))
    assert min(value for monday, value in rates_by_day if monday) > 0.5
    assert max(value for monday, value in rates_by_day if not monday) < 0.1


def test_others_of_the_site_are_counted_without_the_page_itself() -> None:
    ledger = Ledger.of(np.zeros(2, np.int64), np.zeros(2, np.int64))
    for day in range(10):
        ledger.note(np.array([0, 1]), day * DAY, np.array([True, False]))
    rows = features(ledger, np.array([0, 1]), 10 * DAY)
    place = feature_names(depth=False).index("site.lately")
    assert rows[0, place] == pytest.approx(0.0, abs=1e-3)
    assert rows[1, place] == pytest.approx(1.0, abs=1e-3)


# -- trees and the model -------------------------------------------------------------------------------------------


def test_trees_as_arrays_equal_scikit_learn() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(3)
    rows = rng.random((800, 4)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    labels = np.nan_to_num(rows[:, 1], nan=0.9) > rng.random(800)
    with threadpool_limits(1):
        model = ensemble.HistGradientBoostingClassifier(max_iter=15, random_state=1).fit(rows, labels)
    trees = Trees.from_sklearn(model, np.arange(4))
    np.testing.assert_array_equal(trees.scores(rows), model.decision_function(rows))
    np.testing.assert_allclose(trees.stages(rows)[:, -1], trees.scores(rows))
    np.testing.assert_allclose(trees.first(7).scores(rows), trees.stages(rows)[:, 7])
    again = Trees.restored(trees.arrays())
    np.testing.assert_array_equal(again.scores(rows), trees.scores(rows))
    many = np.tile(rows, (10, 1))  # more than go down together
    np.testing.assert_array_equal(trees.scores(many), np.tile(trees.scores(rows), 10))


@pytest.mark.parametrize("rows", [0, 1, 5, 150])
@pytest.mark.parametrize("kind", [True, False])
def test_one_class_only_leaves_the_own_rate(rows: int, kind: bool) -> None:
    rng = np.random.default_rng(1)
    table = rng.random((rows, 3)).astype(np.float32)
    model = pooled.fit(table, np.full(rows, kind), np.arange(float(rows)), 0, rng)
    asked = np.array([[0.3, 1.0, 1.0], [np.nan, np.nan, np.nan]], np.float32)
    assert model.probability(asked) == pytest.approx([0.3, 0.5])


def test_constant_and_empty_columns_are_ignored() -> None:
    rng = np.random.default_rng(1)
    table = np.column_stack((rng.random(2000), np.full(2000, np.nan), np.ones(2000))).astype(np.float32)
    labels = rng.random(2000) < table[:, 0]
    model = pooled.fit(table, labels, np.arange(2000.0), 0, rng)
    assert np.isfinite(model.probability(table)).all()
    bare = pooled.fit(table[:, 1:], labels, np.arange(2000.0), 1, rng)
    assert bare.probability(table[:3, 1:]) == pytest.approx([labels.mean()] * 3, abs=0.05)


def test_sampled_certain_rows_are_weighted_up() -> None:
    """19 of 20 pages change on one visit in 50; sampling must neither lose nor double that rate."""
    rng = np.random.default_rng(5)
    rate = np.where(np.arange(20_000) % 20 == 0, 0.5, 0.001)
    table = np.column_stack((rate, rng.random(20_000))).astype(np.float32)
    labels = np.where(rate == 0.5, table[:, 1] > 0.5, rng.random(20_000) < 0.02)
    model = pooled.fit(table, labels, np.arange(20_000.0), 0, rng)
    quiet, low, high = model.probability(np.array([[0.001, 0.5], [0.5, 0.1], [0.5, 0.9]], np.float32))
    assert quiet == pytest.approx(0.02, abs=0.015)
    assert low < 0.1
    assert high > 0.9


def test_a_model_survives_storage() -> None:
    rng = np.random.default_rng(1)
    table = rng.random((3000, 3)).astype(np.float32)
    model = pooled.fit(table, table[:, 1] > table[:, 2], np.arange(3000.0), 0, rng)
    again = pooled.PooledModel.restored(model.arrays())
    np.testing.assert_array_equal(again.probability(table), model.probability(table))
    assert len(model.trees) > 5


# -- on days --------------------------------------------------------------------------------------------------------


def test_planted_rates_are_recovered_and_probabilities_calibrated() -> None:
    rates = np.linspace(0.05, 0.95, 150)
    changed = coins(rates, 110)
    days = days_from(changed)
    over = range(70, 110)
    probability = predict(days, 60, over, 1, retrain=40)
    assert np.abs(probability.mean(axis=1) - rates).mean() < 0.08
    truth = days.changed[:, 70:]
    error = calibration_error(truth.ravel(), probability.ravel())
    assert error is not None
    assert error < 0.04
    best = ((rates[:, None] - truth) ** 2).mean()
    assert ((probability - truth) ** 2).mean() < best + 0.012, "nearly as good as knowing the true rates"


def test_a_copy_one_day_later_is_predicted() -> None:
    """Two pages of different sites: the second shows today what the first showed yesterday."""
    leaders = coins(np.full(20, 0.5), 130, seed=4)
    followers = np.roll(leaders, 1, axis=1)
    days = days_from(np.concatenate((leaders, followers)), per_site=1)
    probability = predict(days, 100, range(100, 130), 1, retrain=30)
    truth = days.changed[:, 100:]
    auc_copies = auc(truth[20:].ravel(), probability[20:].ravel())
    auc_leaders = auc(truth[:20].ravel(), probability[:20].ravel())
    assert auc_copies is not None
    assert auc_leaders is not None
    assert auc_copies > 0.9
    assert auc_leaders < 0.65


def test_unrelated_pages_have_no_relatives() -> None:
    noise = coins(np.full(60, 0.5), 100).astype(np.float32) - 0.5
    found = Relatives.search(noise, np.random.default_rng(1))
    assert sum(weight.nnz for weight in found.weights) < 6


def test_relatives_are_the_most_correlated_pages() -> None:
    """Against a slow search: 14 pages follow one stream a day later, and 10 of their leaders are kept."""
    rng = np.random.default_rng(2)
    stream = rng.normal(size=81)
    leaders = stream[1:] + 0.5 * rng.normal(size=(14, 80))
    followers = stream[:-1] + 0.5 * rng.normal(size=(14, 80))
    surprise = np.concatenate((leaders, followers, rng.normal(size=(5, 80)))).astype(np.float32)
    weight = Relatives.search(surprise, rng).weights[0].toarray()
    limit = np.sqrt(2 * np.log(33) / 79) + 0.05
    for page in range(33):
        alike = np.array([np.corrcoef(surprise[page, 1:], other[:-1])[0, 1] for other in surprise])
        alike[page] = 0.0
        best = [int(other) for other in np.argsort(-alike)[:10] if alike[other] > limit]
        assert sorted(np.flatnonzero(weight[page]).tolist()) == sorted(best)
        np.testing.assert_allclose(weight[page, best], alike[best], atol=1e-4)
    assert (weight[14:28] > 0).sum(axis=1).min() == 10


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 1000))
def test_predictions_do_not_depend_on_the_future(seed: int) -> None:
    rng = np.random.default_rng(seed)
    changed = coins(rng.random(30), 60, seed)
    other = changed.copy()
    other[:, 50:] = rng.random((30, 10)) < 0.5
    before = predict(days_from(changed), 30, range(45, 60), 1, retrain=10)
    after = predict(days_from(other), 30, range(45, 60), 1, retrain=10)
    np.testing.assert_array_equal(before[:, :6], after[:, :6])
    assert not np.array_equal(before[:, 6:], after[:, 6:])


def test_a_page_has_a_probability_from_its_second_day_on_despite_missing_days() -> None:
    changed = coins(np.full(20, 0.5), 40)
    seen = np.ones(changed.shape, np.bool_)
    seen[0, :30] = False
    seen[1, 10:32] = False
    seen[2] = False
    probability = predict(days_from(changed, seen), 25, range(28, 40), 1)
    assert np.isnan(probability[0, : 31 - 28]).all(), "born on day 30, nothing is known before"
    assert np.isfinite(probability[0, 31 - 28 :]).all()
    assert np.isfinite(probability[1]).all()
    assert np.isnan(probability[2]).all()
    known = probability[np.isfinite(probability)]
    assert known.min() > 0
    assert known.max() < 1


def test_a_new_page_is_predicted_from_its_site() -> None:
    """On its second day only a page's site is known, which already predicts most."""
    busy = np.repeat(np.tile([True, False], 6), 10)  # sites of ten pages
    changed = coins(np.where(busy, 0.85, 0.08), 90, seed=3)
    seen = np.ones(changed.shape, np.bool_)
    born = np.arange(len(busy)) % 10 == 9
    seen[born, :80] = False
    days = days_from(changed, seen)
    second = predict(days, 60, range(80, 84), 1)[born, 1]
    truth = days.changed[born, 81]
    assert second[busy[born]].min() > 0.5 > second[~busy[born]].max()
    blind = np.full(born.sum(), days.changed[:, :80].mean())
    assert ((second - truth) ** 2).mean() < 0.7 * ((blind - truth) ** 2).mean()


def test_bad_pages_get_a_probability_or_none() -> None:
    """Empty texts, pages without words or links, one removed, one observed once, days without observations."""
    changed = coins(np.linspace(0.1, 0.9, 20), 50)
    seen = np.ones(changed.shape, np.bool_)
    seen[:, 20:23] = False
    seen[0, 1:] = False
    seen[1, 30:] = False
    days = days_from(changed, seen)
    empty = replace(days, words=np.zeros_like(days.words), size=np.zeros_like(days.size), bags=sparse.csr_array((1, 2)))
    probability = predict(empty, 30, range(40, 50), 1)
    assert np.isfinite(probability).all(), "all were seen once"
    assert ((probability > 0) & (probability < 1)).all()
    assert not (probability[2:] == 0.5).all(axis=1).any()


def test_no_history_gives_no_prediction() -> None:
    changed = coins(np.full(3, 0.5), 6)
    nothing = days_from(changed, np.zeros(changed.shape, np.bool_))
    assert np.isnan(predict(nothing, 3, range(4, 6), 1)).all()
    assert np.isnan(predict(days_from(changed), 1, range(2), 1)[:, 0]).all()


@pytest.mark.parametrize("always", [True, False])
def test_pages_that_always_or_never_change(always: bool) -> None:
    changed = np.full((10, 30), always)
    probability = predict(days_from(changed), 20, range(22, 30), 1)
    assert (probability > 0.9).all() if always else (probability < 0.1).all()


def test_ablation_names_every_family() -> None:
    days = days_from(coins(np.linspace(0.1, 0.9, 30), 40))
    rows = list(ablation(days, 25, range(30, 40), 1, families=("history", "rhythm")))
    assert [row["without"] for row in rows] == ["nothing", "history", "rhythm"]
    assert all(0 <= row["brier"] <= 1 and row["middling"]["accuracy"] is not None for row in rows)
    assert {name.partition(".")[0] for name in feature_names()} <= set(FAMILIES)
