"""`recrawl lab compare`: policies at several budgets and cycle lengths, as a table, JSON or charts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.lab import options
from recrawl.cli.lab.run import COLUMNS, WEIGHTED, Grid, replay_grid, show_rows
from recrawl.cli.terminal.output import AsJson, note
from recrawl.errors import UsageError
from recrawl.settings import size

_CHARTS = (".png", ".svg", ".html", ".json")
_METRICS = (*(key for key in COLUMNS if key not in ("policy", "budget", "cycle_days")), *WEIGHTED.values())

Budgets = Annotated[
    list[float] | None, typer.Option(help="Visits per cycle; below 1, a share of the pages; repeatable.")
]
Lengths = Annotated[list[str] | None, typer.Option(help="Length of a cycle: 6h, 1d, 2w; repeatable.")]
Charts = Annotated[
    list[Path] | None, typer.Option(help="Write a chart to this file: .png, .svg, .html or .json; repeatable.")
]


def compare_command(
    archives: options.Archives,
    policy: options.Policies,
    budget: Budgets = None,
    bytes_: options.Bytes = "0",
    cycle: Lengths = None,
    cycles: options.Cycles = None,
    skip: options.Skip = "0d",
    seeds: Annotated[int, typer.Option(min=1, help="Number of random seeds; means and spread over them.")] = 3,
    change: options.Change = "text",
    discover: options.Discover = "births",
    at_start: options.AtStart = 1.0,
    failures: options.Failures = 0.0,
    late: options.Late = 0.0,
    hints: options.HintsFrom = "",
    importance: options.Weights = "even",
    cost: options.Costs = "visit",
    metric: Annotated[str, typer.Option(help=f"Measure on the chart: {', '.join(_METRICS)}.")] = "change_ratio",
    chart: Charts = None,
    workers: options.Workers = None,
    no_cache: options.NoCache = False,
    json: AsJson = False,
) -> None:
    """Compare policies at several budgets and cycle lengths, over several seeds."""
    _check(metric, chart or [])
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
    _draw(rows, metric, chart or [])
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


def _draw(rows: list[dict[str, Any]], metric: str, charts: list[Path]) -> None:
    for path in charts:
        from recrawl.lab.charts import compared  # lazy: altair loads slowly

        compared(rows, metric, path)
        note(f"wrote {path}")
