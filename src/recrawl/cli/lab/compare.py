"""`recrawl lab compare`: policies at several budgets and cycle lengths, as a table, JSON or charts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.lab.options import (
    Archives,
    AtStart,
    Bytes,
    Change,
    Costs,
    Cycles,
    Discover,
    Failures,
    HintsFrom,
    Late,
    NoCache,
    Policies,
    Skip,
    Weights,
    Workers,
)
from recrawl.cli.lab.run import COLUMNS, WEIGHTED, Grid, replay_grid, show_rows
from recrawl.cli.terminal.output import AsJson, note
from recrawl.errors import UsageError
from recrawl.settings import size

_CHARTS = (".png", ".svg", ".html", ".json")
_METRICS = (*(key for key in COLUMNS if key not in ("policy", "budget", "cycle_days")), *WEIGHTED.values())


def compare_command(
    archives: Archives,
    policy: Policies,
    budget: Annotated[
        list[float] | None, typer.Option(help="Visits per cycle; below 1, a share of the pages; repeatable.")
    ] = None,
    bytes_: Bytes = "0",
    cycle: Annotated[list[str] | None, typer.Option(help="Length of a cycle: 6h, 1d, 2w; repeatable.")] = None,
    cycles: Cycles = None,
    skip: Skip = "0d",
    seeds: Annotated[int, typer.Option(min=1, help="Number of random seeds; means and spread over them.")] = 3,
    change: Change = "text",
    discover: Discover = "births",
    at_start: AtStart = 1.0,
    failures: Failures = 0.0,
    late: Late = 0.0,
    hints: HintsFrom = "",
    importance: Weights = "even",
    cost: Costs = "visit",
    metric: Annotated[str, typer.Option(help=f"Measure on the chart: {', '.join(_METRICS)}.")] = "change_ratio",
    chart: Annotated[
        list[Path] | None, typer.Option(help="Write a chart to this file: .png, .svg, .html or .json; repeatable.")
    ] = None,
    workers: Workers = None,
    no_cache: NoCache = False,
    json: AsJson = False,
) -> None:
    """Compare policies at several budgets and cycle lengths, over several seeds."""
    charts = chart or []
    _check(metric, charts)
    settings = {"discover": discover, "at_start": at_start, "failures": failures, "late": late, "hints": hints}
    grid = Grid(
        archives=archives,
        policies=policy,
        budgets=budget or [0.0025, 0.01, 0.04],
        lengths=cycle or ["1d"],
        cycles=cycles,
        seeds=list(range(1, seeds + 1)),
        change=change,
        skip=skip,
        importance=importance,
        settings=settings | {"cost": cost, "bytes": size(bytes_)},
    )
    rows = replay_grid(grid, workers, no_cache)
    for path in charts:
        from recrawl.lab.charts import compared  # lazy: altair loads slowly

        compared(rows, metric, path)
        note(f"wrote {path}")
    show_rows(rows, importance, json)


def _check(metric: str, charts: list[Path]) -> None:
    """Refuse invalid options before the long work."""
    if metric not in _METRICS:
        raise UsageError(f"invalid --metric '{metric}': use one of {', '.join(_METRICS)}")
    for path in charts:
        if path.suffix.lower() not in _CHARTS:
            raise UsageError(f"invalid --chart '{path.name}': the name must end in {', '.join(_CHARTS)}")
        if not path.parent.is_dir():
            raise UsageError(f"cannot write {path}: folder {path.parent} does not exist")
