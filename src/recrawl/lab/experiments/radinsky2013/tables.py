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
            for method in ("frequency", ONE, SINGLE, MULTIPLE)
        ]
        return [*rows, coin_row(world, test_days)], _claims_of_table_1(world, test_days)

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
            "The baseline predicts change where the frequency is one half or more; as a random draw it scores lower.",
        ],
        table=_TABLE,
    )


def _claims_of_table_1(world: PredictionWorld, test_days: range) -> list[Claim]:
    base, single, multiple = (setting_of(world, method) for method in ("frequency", SINGLE, MULTIPLE))
    first = compare(world, single, base, test_days)
    to_single, to_base = compare(world, multiple, single, test_days), compare(world, multiple, base, test_days)
    both = all_hold([better(to_single), better(to_base)])
    return [
        make_claim("single", world, better(first), describe_test(first)),
        make_claim(
            "multiple", world, both,
            f"to the single expert {describe_test(to_single)}; to the baseline {describe_test(to_base)}",
        ),
    ]  # fmt: skip


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
    single, base = setting_of(world, SINGLE), setting_of(world, "frequency")
    to_graph, to_content = (compare(world, chosen["xcorr"], chosen[kind], test_days) for kind in ("graph", "content"))
    to_dtw = compare(world, chosen["xcorr"], chosen["dtw"], test_days)
    gains = {
        kind: (compare(world, one, single, test_days), compare(world, one, base, test_days))
        for kind, one in chosen.items()
    }
    gained = all_hold([better(test) for both in gains.values() for test in both])
    score = {row["method"]: row["accuracy"] for row in rows}
    accuracies = ", ".join(f"{kind} {value:.1f} %" for kind, value in score.items() if value is not None)
    return [
        make_claim(
            "temporal", world, all_hold([better(to_graph), better(to_content)]),
            f"to graph {describe_test(to_graph)}; to content {describe_test(to_content)}",
        ),
        make_claim("alike", world, None if to_dtw["p"] is None else to_dtw["p"] >= r.LEVEL, describe_test(to_dtw)),
        make_claim(
            "all choices", world, gained,
            "; ".join(f"{kind} to 2D {describe_test(both[0])}" for kind, both in gains.items()),
        ),
        make_claim("graph", world, min(score, key=lambda kind: score[kind] or 0.0) == "graph", accuracies),
    ]  # fmt: skip
