"""R's tables 1, 2 and 3: features, algorithms and ways to choose experts, with paired t-tests over pages."""

from __future__ import annotations

from dataclasses import replace

from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import (
    LABELS,
    MULTIPLE,
    NAMES,
    ONE,
    SINGLE,
    PredictionWorld,
    Row,
    all_hold,
    baselines,
    better,
    coin_row,
    compare,
    describe_test,
    make_claim,
    measure_worlds,
    measured_row,
    setting_of,
    test_day_count,
)
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result
from recrawl.lab.predict.methods import chosen_experts

_TABLE = {
    "world": "world",
    "label": "label",
    "method": "method",
    "accuracy": ">accuracy, %",
    "published": ">R, %",
    "precision": ">precision",
    "recall": ">recall",
    "auc": ">AUC",
    "brier": ">Brier",
    "middling_accuracy": ">middling pages, %",
    "change_rate": ">change rate",
    "pages": ">pages",
    "days": ">days",
}
_OTHER_DATA = "R's data are not available; these are other pages and days, and R's change rate is unknown."


def table_1(options: ExperimentOptions) -> Result:
    """1D, 2D and 3D features, under each label."""

    def measure(world: PredictionWorld) -> tuple[list[Row], list[Claim]]:
        test_days = world.last_days(test_day_count(options))
        rows = [
            measured_row(world, setting_of(world, method), test_days, NAMES[method], r.TABLE_1.get(method))
            for method in (ONE, SINGLE, MULTIPLE)
        ]
        threshold = measured_row(world, setting_of(world, "frequency"), test_days, NAMES["frequency"])
        return [coin_row(world, test_days), threshold, *rows], _claims_of_table_1(world, test_days)

    picture = Picture(
        "grouped", "world", "accuracy", "Table 1: accuracy by features", "", "accuracy, %", colour="method",
        facet="label",
    )  # fmt: skip
    return replace(
        measure_worlds(options, measure, LABELS),
        published=[{"method": NAMES[key], "accuracy": value} for key, value in r.TABLE_1.items()],
        pictures=[picture],
        notes=[
            _OTHER_DATA,
            "R's baseline predicts a change with probability p (§5.1): a coin; its expected accuracy is given.",
            "The threshold, a change where p is one half or more, is ours.",
        ],
        table=_TABLE,
    )


def _claims_of_table_1(world: PredictionWorld, test_days: range) -> list[Claim]:
    single, multiple = (setting_of(world, method) for method in (SINGLE, MULTIPLE))
    to_single = compare(world, multiple, single, test_days)
    claims = []
    of_multiple = baselines(world, multiple, test_days)
    for reading, first in baselines(world, single, test_days).items():
        to_base = of_multiple[reading]
        numbers = f"to the single expert {describe_test(to_single)}; to the baseline {describe_test(to_base)}"
        holds = all_hold([better(to_single), better(to_base)])
        claims += [
            make_claim("single", world, better(first), describe_test(first), reading=reading),
            make_claim("multiple", world, holds, numbers, reading=reading),
        ]
    return claims


def table_2(options: ExperimentOptions) -> Result:
    """Ways to use the features of related pages."""

    def measure(world: PredictionWorld) -> tuple[list[Row], list[Claim]]:
        test_days = world.last_days(test_day_count(options))
        rows = [
            measured_row(world, setting_of(world, method), test_days, NAMES[method], published_value)
            for method, published_value in r.TABLE_2.items()
        ]
        return rows, _claims_of_table_2(world, test_days)

    picture = Picture(
        "grouped", "world", "accuracy", "Table 2: accuracy by algorithm", "", "accuracy, %", colour="method"
    )
    return replace(
        measure_worlds(options, measure),
        published=[{"method": NAMES[key], "accuracy": value} for key, value in r.TABLE_2.items()],
        pictures=[picture],
        notes=[_OTHER_DATA, "20 experts by cross-correlation, 50 training days; bagging and boosting use 10 machines."],
        table=_TABLE,
    )


def _claims_of_table_2(world: PredictionWorld, test_days: range) -> list[Claim]:
    multiple, single = setting_of(world, MULTIPLE), setting_of(world, SINGLE)
    others = {
        name: compare(world, multiple, setting_of(world, name), test_days) for name in ("union", "bagging", "boosting")
    }
    best = all_hold([better(test) for test in others.values()])
    numbers = "; ".join(f"to {name} {describe_test(test)}" for name, test in others.items())
    union = compare(world, setting_of(world, "union"), single, test_days)
    gain = better(union)
    return [
        make_claim(
            "best", world, best, numbers,
        ),
        make_claim(
            "not enough", world, None if gain is None else not gain,
            f"union to the single expert {describe_test(union)}",
        ),
    ]  # fmt: skip


def table_3(options: ExperimentOptions) -> Result:
    """Ways to choose experts."""

    linked: list[str] = []

    def measure(world: PredictionWorld) -> tuple[list[Row], list[Claim]]:
        test_days = world.last_days(test_day_count(options))
        linked.append(f"{world.title} {_linked_share(world, test_days):.0%}")
        rows = [
            measured_row(world, setting_of(world, MULTIPLE, kind), test_days, kind, published_value)
            for kind, published_value in r.TABLE_3.items()
        ]
        return rows, _claims_of_table_3(world, test_days, rows)

    picture = Picture(
        "grouped", "world", "accuracy", "Table 3: accuracy by choice of experts", "", "accuracy, %", colour="method"
    )
    measured = measure_worlds(options, measure)
    return replace(
        measured,
        published=[{"method": key, "accuracy": value} for key, value in r.TABLE_3.items()],
        pictures=[picture],
        notes=[
            _OTHER_DATA,
            "R's graph has 22 million pages. Here only links between the pages of a world count.",
            f"Judged pages with a linked page (others have no expert by graph but themselves): {'; '.join(linked)}.",
        ],
        table=_TABLE,
    )


def _linked_share(world: PredictionWorld, test_days: range) -> float:
    """The share of judged pages that have an expert by graph."""
    experts = chosen_experts(world.days, setting_of(world, MULTIPLE, "graph"), test_days.start)
    return float((experts.page[world.judged] >= 0).any(axis=1).mean()) if experts.page.shape[1] else 0.0


def _claims_of_table_3(world: PredictionWorld, test_days: range, rows: list[Row]) -> list[Claim]:
    chosen = {kind: setting_of(world, MULTIPLE, kind) for kind in r.TABLE_3}
    single = setting_of(world, SINGLE)
    to_graph, to_content = (compare(world, chosen["xcorr"], chosen[kind], test_days) for kind in ("graph", "content"))
    to_dtw = compare(world, chosen["xcorr"], chosen["dtw"], test_days)
    to_2d = {kind: compare(world, one, single, test_days) for kind, one in chosen.items()}
    to_base = {kind: baselines(world, one, test_days) for kind, one in chosen.items()}
    score = {row["method"]: row["accuracy"] for row in rows}
    accuracies = ", ".join(f"{kind} {value:.1f} %" for kind, value in score.items() if value is not None)
    return [
        make_claim(
            "temporal", world, all_hold([better(to_graph), better(to_content)]),
            f"to graph {describe_test(to_graph)}; to content {describe_test(to_content)}",
        ),
        make_claim("alike", world, None if to_dtw["p"] is None else to_dtw["p"] >= r.LEVEL, describe_test(to_dtw)),
        *(
            make_claim(
                "all choices", world,
                all_hold([better(test) for kind in chosen for test in (to_2d[kind], to_base[kind][reading])]),
                "; ".join(f"{kind} to 2D {describe_test(to_2d[kind])}, to the baseline "
                          f"{describe_test(to_base[kind][reading])}" for kind in chosen),
                reading=reading,
            )
            for reading in next(iter(to_base.values()))
        ),
        make_claim("graph", world, min(score, key=lambda kind: score[kind] or 0.0) == "graph", accuracies),
    ]  # fmt: skip
