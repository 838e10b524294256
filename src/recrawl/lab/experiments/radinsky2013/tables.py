"""R's tables 1, 2 and 3: settings, algorithms and ways to choose experts, with paired t-tests over pages."""

from __future__ import annotations

from recrawl.lab.experiments.radinsky2013 import published as r
from recrawl.lab.experiments.radinsky2013.settings import (
    LABELS,
    MULTIPLE,
    NAMES,
    ONE,
    SINGLE,
    Where,
    better,
    claimed,
    coin,
    compared,
    days_wanted,
    every,
    measured,
    setting_of,
    shown,
    stepping,
    worlds,
)
from recrawl.lab.experiments.result import Claim, ExperimentOptions, Picture, Result, Row

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
_OTHER_DATA = "R's pages and days are not to be had; these are others, and its change rate is not known."


def table_1(options: ExperimentOptions) -> Result:
    """1D, 2D and 3D features, under each label."""
    rows: list[Row] = []
    claims: list[Claim] = []
    places = worlds(options, LABELS)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(days_wanted(options))
        for method in ("frequency", ONE, SINGLE, MULTIPLE):
            setting = setting_of(where, method)
            rows.append(measured(where, setting, over, NAMES[method], r.TABLE_1.get(method)))
        rows.append(coin(where, over))
        claims += _of_table_1(where, over)
        step()
    picture = Picture(
        "grouped", "world", "accuracy", "Table 1: accuracy by features", "", "accuracy, %", colour="method",
        facet="label",
    )  # fmt: skip
    return Result(
        rows,
        published=[{"method": NAMES[key], "accuracy": value} for key, value in r.TABLE_1.items()],
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=[
            _OTHER_DATA,
            "The baseline says change where the frequency is one half or more; thrown as a coin it scores less.",
        ],
        table=_TABLE,
    )


def _of_table_1(where: Where, over: range) -> list[Claim]:
    base, single, multiple = (setting_of(where, method) for method in ("frequency", SINGLE, MULTIPLE))
    first = compared(where, single, base, over)
    to_single, to_base = compared(where, multiple, single, over), compared(where, multiple, base, over)
    both = every([better(to_single), better(to_base)])
    return [
        claimed("single", where, better(first), shown(first), "What one day shows adds too little to the page's rate."),
        claimed(
            "multiple", where, both, f"to the single expert {shown(to_single)}; to the baseline {shown(to_base)}",
            "Votes are weighted by the relation, not by success; r-table2 has a machine that can tell experts apart.",
        ),
    ]  # fmt: skip


def table_2(options: ExperimentOptions) -> Result:
    """Ways to use the features of related pages."""
    rows: list[Row] = []
    claims: list[Claim] = []
    places = worlds(options)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(days_wanted(options))
        for method, printed in r.TABLE_2.items():
            rows.append(measured(where, setting_of(where, method), over, NAMES[method], printed))
        claims += _of_table_2(where, over)
        step()
    picture = Picture(
        "grouped", "world", "accuracy", "Table 2: accuracy by algorithm", "", "accuracy, %", colour="method"
    )
    return Result(
        rows,
        published=[{"method": NAMES[key], "accuracy": value} for key, value in r.TABLE_2.items()],
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=[_OTHER_DATA, "20 experts by cross-correlation, 50 training days; 10 machines are bagged or boosted."],
        table=_TABLE,
    )


def _of_table_2(where: Where, over: range) -> list[Claim]:
    multiple, single = setting_of(where, MULTIPLE), setting_of(where, SINGLE)
    others = {
        name: compared(where, multiple, setting_of(where, name), over) for name in ("union", "bagging", "boosting")
    }
    best = every([better(test) for test in others.values()])
    numbers = "; ".join(f"to {name} {shown(test)}" for name, test in others.items())
    union = compared(where, setting_of(where, "union"), single, over)
    gain = better(union)
    return [
        claimed(
            "best", where, best, numbers,
            "One machine over all features can find out which expert matters; a vote weighted by relation cannot.",
        ),
        claimed(
            "not enough", where, None if gain is None else not gain, f"union to the single expert {shown(union)}",
            "The union learns which related page tells.",
        ),
    ]  # fmt: skip


def table_3(options: ExperimentOptions) -> Result:
    """Ways to choose experts."""
    rows: list[Row] = []
    claims: list[Claim] = []
    places = worlds(options)
    step = stepping(options, len(places))
    for where in places:
        over = where.last(days_wanted(options))
        for kind, printed in r.TABLE_3.items():
            rows.append(measured(where, setting_of(where, MULTIPLE, kind), over, kind, printed))
        claims += _of_table_3(where, over, rows)
        step()
    picture = Picture(
        "grouped", "world", "accuracy", "Table 3: accuracy by choice of experts", "", "accuracy, %", colour="method"
    )
    return Result(
        rows,
        published=[{"method": key, "accuracy": value} for key, value in r.TABLE_3.items()],
        claims=claims,
        pictures=[picture],
        worlds=[where.told() for where in places],
        notes=[
            _OTHER_DATA,
            "R's graph has 22 million pages. Here only links between the pages of an archive count.",
            "Daily archives have next to none: there a page chosen by graph has nobody but itself.",
        ],
        table=_TABLE,
    )


def _of_table_3(where: Where, over: range, rows: list[Row]) -> list[Claim]:
    chosen = {kind: setting_of(where, MULTIPLE, kind) for kind in r.TABLE_3}
    single, base = setting_of(where, SINGLE), setting_of(where, "frequency")
    to_graph, to_content = (compared(where, chosen["xcorr"], chosen[kind], over) for kind in ("graph", "content"))
    to_dtw = compared(where, chosen["xcorr"], chosen["dtw"], over)
    gains = {
        kind: (compared(where, one, single, over), compared(where, one, base, over)) for kind, one in chosen.items()
    }
    gained = every([better(test) for both in gains.values() for test in both])
    score = {row["method"]: row["accuracy"] for row in rows if row["world"] == where.name}
    told = ", ".join(f"{kind} {value:.1f} %" for kind, value in score.items() if value is not None)
    return [
        claimed(
            "temporal", where, every([better(to_graph), better(to_content)]),
            f"to graph {shown(to_graph)}; to content {shown(to_content)}",
        ),
        claimed("alike", where, None if to_dtw["p"] is None else to_dtw["p"] >= r.LEVEL, shown(to_dtw)),
        claimed(
            "all choices", where, gained,
            "; ".join(f"{kind} to 2D {shown(both[0])}" for kind, both in gains.items()),
        ),
        claimed("graph", where, min(score, key=lambda kind: score[kind] or 0.0) == "graph", told),
    ]  # fmt: skip
