"""R's figures 6 and 7: accuracy by the number of training days, and by the number of experts."""

from __future__ import annotations

from dataclasses import replace

from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import (
    COIN,
    MULTIPLE,
    NAMES,
    SINGLE,
    PredictionWorld,
    Row,
    coin_row,
    make_claim,
    measure_worlds,
    measured_row,
    test_day_count,
)
from recrawl.lab.experiments.readings import SENTENCES
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result
from recrawl.lab.predict.methods import PredictionSetting

SIZES = (10, 20, 30, 50, 70)
COUNTS = (1, 2, 5, 10, 20, 40)
_MIN_TRAIN = 30
"""R: with fewer training days nothing works well."""
_CONSTANT = 3.0
"""Percentage points within which accuracy counts as almost constant."""
_METHODS = ("frequency", SINGLE, MULTIPLE)
_TABLE = {"method": "method", "accuracy": ">accuracy, %", "auc": ">AUC", "brier": ">Brier"}


def fig_6(options: ExperimentOptions) -> Result:
    """Accuracy by training size."""

    def measure(world: PredictionWorld) -> tuple[list[Row], list[Claim]]:
        test_days = world.last_days(max(3, test_day_count(options) // 2), max(SIZES))
        rows: list[Row] = []
        for train in SIZES:
            for method in _METHODS:
                setting = PredictionSetting(method, train=train, workers=world.workers)
                rows.append({**measured_row(world, setting, test_days, NAMES[method]), "train": train})
            rows.append({**coin_row(world, test_days, train), "published": None, "train": train})
        return rows, _claims_of_fig_6(world, rows)

    picture = Picture(
        "line", "train", "accuracy", "Fig. 6: accuracy by training size", "training days", "accuracy, %",
        colour="method", facet="world", zero=False,
    )  # fmt: skip
    return replace(
        measure_worlds(options, measure),
        pictures=[picture],
        notes=[f"R does not print the values. 'Almost constant' means within {_CONSTANT:g} points."],
        table={"world": "world", "train": ">days", **_TABLE},
    )


def _claims_of_fig_6(world: PredictionWorld, rows: list[Row]) -> list[Claim]:
    threshold, single, multiple, coin = (
        {row["train"]: row["accuracy"] for row in rows if row["method"] == name}
        for name in (*(NAMES[method] for method in _METHODS), COIN)
    )
    if any(value is None for line in (threshold, single, multiple, coin) for value in line.values()):
        return []
    large_sizes = [size for size in SIZES if size >= _MIN_TRAIN]
    spread = max(multiple[size] for size in large_sizes) - min(multiple[size] for size in large_sizes)
    small_sizes = [size for size in SIZES if size < _MIN_TRAIN]
    drop = {
        name: min(line[size] for size in large_sizes) - max(line[size] for size in small_sizes)
        for name, line in (("single expert", single), ("multiple experts", multiple))
    }
    gains = ", ".join(f"{name} {gain:+.1f}" for name, gain in drop.items())
    claims = []
    for one, base in zip(SENTENCES["probability"].readings, (coin, threshold), strict=True):
        ordered = all(multiple[size] > single[size] > base[size] for size in large_sizes)
        accuracies = "; ".join(
            f"{size} days: {base[size]:.1f}, {single[size]:.1f}, {multiple[size]:.1f} %" for size in large_sizes
        )
        claims.append(make_claim("all sizes", world, ordered, accuracies, reading=one.name))
    return [
        *claims,
        make_claim("constant", world, spread <= _CONSTANT, f"multiple experts vary by {spread:.1f} points"),
        make_claim(
            "under 30", world, all(gain > 0 for gain in drop.values()),
            f"gain in points from under 30 days to more: {gains}",
        ),
    ]  # fmt: skip


def fig_7(options: ExperimentOptions) -> Result:
    """Accuracy by number of experts."""

    def measure(world: PredictionWorld) -> tuple[list[Row], list[Claim]]:
        test_days = world.last_days(max(3, test_day_count(options) // 2))
        single_expert = measured_row(
            world, PredictionSetting(SINGLE, train=r.TRAIN, workers=world.workers), test_days, NAMES[SINGLE]
        )
        rows: list[Row] = []
        for k in COUNTS:
            setting = PredictionSetting(MULTIPLE, k=k, train=r.TRAIN, workers=world.workers)
            rows.append({**measured_row(world, setting, test_days, NAMES[MULTIPLE]), "experts": k})
            rows.append({**single_expert, "experts": k})
        return rows, _claims_of_fig_7(world, rows)

    picture = Picture(
        "line", "experts", "accuracy", "Fig. 7: accuracy by number of experts", "experts", "accuracy, %",
        colour="method", facet="world", zero=False,
    )  # fmt: skip
    return replace(
        measure_worlds(options, measure),
        pictures=[picture],
        notes=["R does not print the values."],
        table={"world": "world", "experts": ">experts", **_TABLE},
    )


def _claims_of_fig_7(world: PredictionWorld, rows: list[Row]) -> list[Claim]:
    by_count = {row["experts"]: row["accuracy"] for row in rows if row["method"] == NAMES[MULTIPLE]}
    single_expert = next(row["accuracy"] for row in rows if row["method"] == NAMES[SINGLE])
    if single_expert is None or any(value is None for value in by_count.values()):
        return []
    accuracies = ", ".join(f"{k}: {value:.1f} %" for k, value in by_count.items())
    return [
        make_claim("peak", world, max(by_count, key=lambda k: by_count[k]) == r.K, accuracies),
        make_claim(
            "robust",
            world,
            all(value > single_expert for value in by_count.values()),
            f"single expert {single_expert:.1f} %; {accuracies}",
        ),
    ]
