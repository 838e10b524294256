"""R's figures 6 and 7: accuracy by the number of training days, and by the number of experts."""

from __future__ import annotations

from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import (
    MULTIPLE,
    NAMES,
    SINGLE,
    Where,
    claimed,
    days_wanted,
    measured,
    stepping,
    worlds,
)
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row
from recrawl.lab.predict.methods import PredictionSetting

SIZES = (10, 20, 30, 50, 70)
COUNTS = (1, 2, 5, 10, 20, 40)
_POOR = 30
"""R: with fewer training days nothing works well."""
_CONSTANT = 3.0
"""Percentage points that still count as almost constant."""
_METHODS = ("frequency", SINGLE, MULTIPLE)


def fig_6(options: ExperimentOptions) -> Result:
    """Accuracy by training size."""
    rows: list[Row] = []
    claims: list[Claim] = []
    places = worlds(options)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(max(3, days_wanted(options) // 2), max(SIZES))
        mine: list[Row] = []
        for train in SIZES:
            for method in _METHODS:
                setting = PredictionSetting(method, train=train, workers=where.workers)
                mine.append({**measured(where, setting, over, NAMES[method]), "train": train})
        rows += mine
        claims += _of_fig_6(where, mine)
        step()
    picture = Picture(
        "line", "train", "accuracy", "Fig. 6: accuracy by training size", "training days", "accuracy, %",
        colour="method", facet="world", zero=False,
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=[f"R's values are printed nowhere. 'Almost constant' is taken to be within {_CONSTANT:g} points."],
        table={
            "world": "world",
            "train": ">days",
            "method": "method",
            "accuracy": ">accuracy, %",
            "auc": ">AUC",
            "brier": ">Brier",
        },
    )


def _of_fig_6(where: Where, rows: list[Row]) -> list[Claim]:
    base, single, multiple = ({row["train"]: row["accuracy"] for row in rows if row["method"] == NAMES[method]}
                              for method in _METHODS)  # fmt: skip
    if any(value is None for line in (base, single, multiple) for value in line.values()):
        return []
    large = [size for size in SIZES if size >= _POOR]
    ordered = all(multiple[size] > single[size] > base[size] for size in large)
    spread = max(multiple[size] for size in large) - min(multiple[size] for size in large)
    drop = min(multiple[size] for size in large) - max(multiple[size] for size in SIZES if size < _POOR)
    told = "; ".join(f"{size} days: {base[size]:.1f}, {single[size]:.1f}, {multiple[size]:.1f} %" for size in large)
    return [
        claimed("all sizes", where, ordered, told),
        claimed("constant", where, spread <= _CONSTANT, f"multiple experts vary by {spread:.1f} points"),
        claimed("under 30", where, drop > 0, f"multiple experts gain {drop:+.1f} points from under 30 days to more"),
    ]


def fig_7(options: ExperimentOptions) -> Result:
    """Accuracy by number of experts."""
    rows: list[Row] = []
    claims: list[Claim] = []
    places = worlds(options)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(max(3, days_wanted(options) // 2))
        alone = measured(where, PredictionSetting(SINGLE, train=r.TRAIN, workers=where.workers), over, NAMES[SINGLE])
        mine: list[Row] = []
        for k in COUNTS:
            setting = PredictionSetting(MULTIPLE, k=k, train=r.TRAIN, workers=where.workers)
            mine.append({**measured(where, setting, over, NAMES[MULTIPLE]), "experts": k})
            mine.append({**alone, "experts": k})
        rows += mine
        claims += _of_fig_7(where, mine)
        step()
    picture = Picture(
        "line", "experts", "accuracy", "Fig. 7: accuracy by number of experts", "experts", "accuracy, %",
        colour="method", facet="world", zero=False,
    )  # fmt: skip
    return Result(
        rows,
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=["R's values are printed nowhere."],
        table={
            "world": "world",
            "experts": ">experts",
            "method": "method",
            "accuracy": ">accuracy, %",
            "auc": ">AUC",
            "brier": ">Brier",
        },
    )


def _of_fig_7(where: Where, rows: list[Row]) -> list[Claim]:
    many = {row["experts"]: row["accuracy"] for row in rows if row["method"] == NAMES[MULTIPLE]}
    alone = next(row["accuracy"] for row in rows if row["method"] == NAMES[SINGLE])
    if alone is None or any(value is None for value in many.values()):
        return []
    told = ", ".join(f"{k}: {value:.1f} %" for k, value in many.items())
    return [
        claimed("peak", where, max(many, key=lambda k: many[k]) == r.K, told),
        claimed("robust", where, all(value > alone for value in many.values()), f"single expert {alone:.1f} %; {told}"),
    ]
