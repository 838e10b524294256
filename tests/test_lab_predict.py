"""Days from archives, the prediction methods, their evaluation, and the command `lab predict`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats.archive import schema
from recrawl.lab.predict.days import Days, Planted, PlantedWorld, labels, planted, read_days
from recrawl.lab.predict.evaluation import (
    evaluate,
    evaluate_predictions,
    often_flipping,
    predictable_days,
    random_observations,
    sample_pages,
)
from recrawl.lab.predict.methods import (
    EXPERTS,
    METHODS,
    Predictions,
    PredictionSetting,
    frequency,
    predict,
)
from recrawl.lab.predict.scores import auc, calibration, paired, score_predictions
from tests.complaints import complaint
from tests.world import command

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "daily"
LEARNING = [method for method in METHODS if method not in ("frequency", "pooled")]
Array = NDArray[Any]
START = 1_700_006_400
DAY = 86_400  # an integer, as archives store times


@pytest.fixture(scope="module")
def world() -> PlantedWorld:
    return planted(Planted(groups=6, size=5, leaders=3, days=60, noise=0.02))


def archive(folder: Path, pages: dict[str, dict[int, str | None]], times: str | None = None) -> Path:
    """An archive from pages by URL: their HTML from each day on."""
    rows = [
        {"url": url, "time": START + day * DAY, "html": None if html is None else html.encode()}
        for url, states in sorted(pages.items())
        for day, html in sorted(states.items())
    ]
    file = folder / "daily.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema()), file)
    if times is not None:
        file.with_suffix(".times").write_text(times)
    return file


PAGES: dict[str, dict[int, str | None]] = {
    "https://a.example/": {
        0: "<p>one two</p><a href='/x'>x</a>",
        2: "<p>one two three</p><a href='/x'>x</a>",
        4: "<p>one two three</p><a href='/new'>x</a>",
    },
    "https://a.example/x": {1: "<p>born late", 3: None},
    "https://b.example/": {0: ""},
}


# -- days ----------------------------------------------------------------------------------------------


def test_days_of_an_archive(tmp_path: Path) -> None:
    days = read_days([archive(tmp_path, PAGES)])
    assert days.urls == sorted(PAGES)
    assert days.seen.astype(int).tolist() == [[1, 1, 1, 1, 1], [0, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert days.changed.astype(int).tolist() == [[0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert days.labelled.astype(int).tolist() == [[0, 1, 1, 1, 1], [0, 0, 1, 0, 0], [0, 1, 1, 1, 1]]
    assert days.words[0].tolist() == [3, 3, 4, 4, 4]
    assert days.counts(2).sum(axis=1).tolist() == [4, 2, 0]
    assert days.counts(3).sum(axis=1).tolist() == [4, 0, 0]
    assert days.links_on(1).of(0).tolist() == [1]
    assert days.take(np.array([1, 2])).links_on(1).target.tolist() == []
    assert days.take(np.array([1, 0])).links_on(1).of(1).tolist() == [0]


def test_observation_times_beside_the_archive_are_used(tmp_path: Path) -> None:
    file = archive(tmp_path, PAGES, f"{START + DAY}\n{START + 4 * DAY}\n")
    days = read_days([file])
    assert days.times.tolist() == [START + DAY, START + 4 * DAY]
    assert days.changed.astype(int).tolist() == [[0, 1], [0, 0], [0, 0]]
    file.with_suffix(".times").write_text("soon")
    with pytest.raises(BadArchive, match="one time per line"):
        read_days([file])


def test_a_new_link_is_a_label(tmp_path: Path) -> None:
    days = read_days([archive(tmp_path, PAGES)], "new-link")
    assert days.changed.astype(int)[0].tolist() == [0, 0, 0, 0, 1]  # /x was linked from the start
    assert not days.changed[1:].any()


def test_a_change_of_relevance_is_a_label(tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("three\n\n+one +two\n")
    days = read_days([archive(tmp_path, PAGES)], f"relevance:{queries}")
    assert days.changed.astype(int)[0].tolist() == [0, 0, 1, 0, 0]
    queries.write_text("\n")
    with pytest.raises(UsageError, match="holds no query"):
        read_days([archive(tmp_path, PAGES)], f"relevance:{queries}")


@pytest.mark.parametrize("label", ["divergence:0.3", "words:20", "significant"])
def test_steps_are_labels(tmp_path: Path, label: str) -> None:
    many = "common words that stand there often " * 60
    states: dict[int, str | None] = {0: many, 1: many + " more", 2: "quite another text of its own " * 9, 3: ""}
    days = read_days([archive(tmp_path, {"https://a.example/": states})], label)
    assert days.changed[0, :3].tolist() == [False, False, True]


@pytest.mark.parametrize("label", ["", "texts", "divergence:2", "relevance:nowhere.txt"])
def test_invalid_labels_are_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(UsageError):
        read_days([archive(tmp_path, PAGES)], label)


def test_only_visits_are_known(world: PlantedWorld) -> None:
    where = random_observations(world.days, 0.5, seed=1)
    known = world.days.visited(where)
    assert known.seen.mean() == pytest.approx(0.5, abs=0.05)
    assert not (known.changed & ~known.seen).any()
    assert (known.text[~where] == -1).all()
    # The label of a visit is against the last one, so it holds where any day between had a change that lasted.
    again, _ = labels(np.where(where, world.days.version, -1), where)
    assert (known.changed == again).all()
    assert known.rate().mean() > world.days.rate().mean()


# -- methods -------------------------------------------------------------------------------------------


def test_frequency_is_the_share_in_the_window(world: PlantedWorld) -> None:
    found = frequency(world.days, 20, range(30, 32))
    assert found[:, 0] == pytest.approx(world.days.changed[:, 10:30].mean(axis=1))
    assert found[:, 1] == pytest.approx(world.days.changed[:, 11:31].mean(axis=1))


@pytest.mark.parametrize("method", ["frequency", *LEARNING])
@pytest.mark.parametrize("observe", [1.0, 0.6])
def test_the_future_does_not_change_a_prediction(world: PlantedWorld, method: str, observe: float) -> None:
    """Predictions for a day stay the same when days from then on, and their pages, are shuffled."""
    days = world.days if observe == 1 else world.days.visited(random_observations(world.days, observe, 3))
    setting = PredictionSetting(method, k=4, train=25)
    other = scrambled(days, 40, np.random.default_rng(1))
    assert (other.changed[:, 40:] != days.changed[:, 40:]).any()
    now, then = (predict(it, setting, range(39, 41)) for it in (days, other))
    np.testing.assert_array_equal(now.probability, then.probability)
    np.testing.assert_array_equal(now.decision, then.decision)


def scrambled(days: Days, start: int, rng: np.random.Generator) -> Days:
    """The same until a day; from then on days and pages are shuffled."""
    pages, order = rng.permutation(len(days)), rng.permutation(np.arange(start, days.seen.shape[1]))

    def mixed(column: Array) -> Array:
        column = column.copy()
        column[:, start:] = column[pages][:, order]
        return column

    names = ("seen", "version", "changed", "labelled", "words", "size", "text")
    assert days.lists is not None
    columns: dict[str, Any] = {name: mixed(getattr(days, name)) for name in names}
    return replace(days, lists=mixed(days.lists), **columns)


def test_related_pages_help_where_they_lead(world: PlantedWorld) -> None:
    followers = (world.kind == 0) & (np.arange(len(world.kind)) - world.leader >= 3)
    over = range(45, 60)
    score = {
        method: np.nanmean(evaluate(world.days, PredictionSetting(method, k=4, train=40), over).by_page()[followers])
        for method in ("frequency", "2d", "3d", "union")
    }
    assert score["3d"] > max(score["frequency"], score["2d"]) + 0.2
    assert score["union"] > 0.85


def test_probabilities_are_calibrated(world: PlantedWorld) -> None:
    found = evaluate(world.days, PredictionSetting("union", k=4, train=30), range(35, 60)).summary()
    assert found["calibration_error"] < 0.1
    assert found["brier"] < 0.25
    assert found["auc"] > 0.6


@pytest.mark.parametrize("method", METHODS[:-1])
def test_bad_pages_are_predicted_or_counted(world: PlantedWorld, method: str) -> None:
    """One class, empty texts, a page never observed or twice, missing days: no crash, and all are counted."""
    days = world.days
    seen = days.seen.copy()
    seen[0] = False
    seen[1] = False
    seen[1, [3, 5]] = True
    seen[2:, 20:23] = False
    version, text = days.version.copy(), days.text.copy()
    version[3] = 1  # never changes
    text[3] = text[3, 0]
    version[4] = np.arange(60)  # changes every day
    bags = days.bags.copy()
    bags.data[bags.indptr[text[5].min()] : bags.indptr[text[5].max() + 1]] = 0
    bags.eliminate_zeros()
    changed, labelled = labels(np.where(seen, version, -1), seen)
    bad = replace(days, seen=seen, version=version, text=np.where(seen, text, -1).astype(np.int32), bags=bags,
                  changed=changed, labelled=labelled)  # fmt: skip
    over = range(40, 44)
    found = predict(bad, PredictionSetting(method, k=4, train=25), over)
    assert np.isnan(found.probability[0]).all()
    assert np.isnan(found.probability[1]).all()
    assert np.isfinite(found.probability[2:]).all()
    assert (found.probability[3] < 0.5).all()
    assert not found.decision[3].any()
    assert (found.probability[4] > 0.5).all()
    assert found.decision[4].all()
    assert ((found.probability[2:] >= 0) & (found.probability[2:] <= 1)).all()
    assert evaluate_predictions(days, found, over).missing == 8


def test_a_page_not_observed_yesterday_falls_back_to_its_frequency(world: PlantedWorld) -> None:
    where = np.ones(world.days.seen.shape, bool)
    where[7, 39] = False
    found = predict(world.days.visited(where), PredictionSetting("2d", train=25), range(40, 41))
    assert found.fallback[:, 0].tolist() == [page == 7 for page in range(len(where))]
    changes = world.days.visited(where).changed[7, 15:40].sum()
    assert found.probability[7, 0] == pytest.approx((changes + 1) / (24 + 2))  # Laplace's rule


def test_invalid_settings_are_refused(world: PlantedWorld) -> None:
    for wrong in ({"method": "4d"}, {"experts": "friends"}, {"k": 0}, {"train": 0}, {"window": 0}):
        with pytest.raises(UsageError):
            PredictionSetting(**wrong)
    with pytest.raises(UsageError, match="52 days of history"):
        predict(world.days, PredictionSetting("2d", train=50), range(40, 41))
    with pytest.raises(UsageError, match="consecutive days"):
        predict(world.days, PredictionSetting("2d", train=20), range(50, 70))
    with pytest.raises(UsageError, match="not enough history"):
        predictable_days(world.days, PredictionSetting(train=80), None)
    with pytest.raises(UsageError, match="share of observed"):
        evaluate(world.days, PredictionSetting("frequency", train=5), range(50, 60), observe=0)


# -- scores --------------------------------------------------------------------------------------------


def test_scores_of_a_known_case() -> None:
    truth = np.array([[True, False], [True, False]])
    probability = np.array([[0.8, 0.6], [0.4, np.nan]])
    found = score_predictions(truth, probability, probability >= 0.5, np.isfinite(probability))
    assert found["accuracy"] == pytest.approx(1 / 3)
    assert (found["precision"], found["recall"], found["auc"]) == (0.5, 0.5, 0.5)
    assert found["brier"] == pytest.approx((0.04 + 0.36 + 0.36) / 3)


def test_undefined_scores_are_none() -> None:
    none = np.zeros((1, 2), bool)
    found = score_predictions(none, np.array([[0.1, 0.2]]), none, ~none)
    assert (found["accuracy"], found["precision"], found["recall"], found["auc"]) == (1.0, None, None, None)
    assert score_predictions(none, np.zeros((1, 2)), none, none)["accuracy"] is None
    assert auc(np.array([True, False]), np.array([0.5, 0.5])) == 0.5
    assert [row["count"] for row in calibration(np.array([True, False]), np.array([1.0, 0.05]))] == [1, 1]


def test_the_paired_test_sees_a_difference() -> None:
    rng = np.random.default_rng(1)
    base = rng.random(40)
    assert paired(base + 0.1 + rng.normal(0, 0.05, 40), base)["p"] < 0.01
    assert paired(base, rng.permutation(base))["p"] > 0.05
    assert paired(base, base)["p"] is None
    assert paired(np.array([np.nan, 1.0]), base[:2])["pages"] == 1


def test_pages_that_flip() -> None:
    seen = np.ones((3, 21), bool)
    changed = np.zeros((3, 21), bool)
    changed[1, ::2] = True
    changed[2, 1:] = True
    days = replace(planted(Planted(groups=3, size=1, days=21)).days, changed=changed, labelled=seen)
    assert often_flipping(days).tolist() == [False, True, False]


def test_middling_pages_are_scored_separately(world: PlantedWorld) -> None:
    days = world.days
    version = days.version.copy()
    version[:10] = 1
    calm = replace(days, version=version, changed=labels(version, days.seen)[0])
    never = np.zeros((len(days), 2))
    found = evaluate_predictions(calm, Predictions(never, never > 0, never > 0), range(50, 52)).summary()
    assert found["pages"] == 30
    assert found["middling"]["pages"] == 20
    assert found["accuracy"] > found["middling"]["accuracy"]


def test_a_sample_is_a_subset_of_the_pages(world: PlantedWorld) -> None:
    sample = sample_pages(world.days, 7, seed=1)
    assert len(sample) == 7
    assert set(sample.urls) < set(world.days.urls)
    assert sample_pages(world.days, 99, seed=1) is world.days


# -- the command ---------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pages: dict[str, dict[int, str | None]] = {
        f"https://a.example/{n}": {
            day: f"<p>{' '.join(f'w{w}' for w in rng.integers(0, 30, 8))}"
            for day in range(30)
            if day == 0 or rng.random() < 0.5
        }
        for n in range(6)
    }
    file = archive(tmp_path, pages)
    words = ("--train", 15, "--days", 4, "--k", 3, "--json")
    result = json.loads(command("lab", "predict", file, *words).out)
    assert {"accuracy", "precision", "recall", "auc", "brier", "pages", "days", "seconds", "middling"} <= set(result)
    assert (result["method"], result["pages"], result["days"], result["middling"]["pages"]) == ("3d", 6, 4, 6)
    output = command("lab", "predict", file, "--train", 15, "--days", 4, "--method", "frequency", "--alpha", 0.1).out
    assert "too little history for 0 predictions" in output
    complaint(command("lab", "predict", file, "--train", 99), "use a smaller --train")


@pytest.mark.skipif(not DATA.is_dir(), reason="the real daily archives are not here")
@pytest.mark.slow
@pytest.mark.parametrize("experts", EXPERTS)
def test_a_real_archive_is_predicted(experts: str) -> None:
    days = sample_pages(
        read_days([DATA / "news-fronts-2024.parquet"], cache=Path.home() / ".cache/recrawl/facts"), 25, 1
    )
    found = evaluate(
        days, PredictionSetting("3d", experts=experts, k=5), predictable_days(days, PredictionSetting(), 3)
    ).summary()
    assert found["accuracy"] > 0.6
    assert found["brier"] < 0.25
