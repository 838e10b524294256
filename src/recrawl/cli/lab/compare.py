"""`recrawl lab compare`: policies at several budgets and cycle lengths, as a table, JSON or charts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Unpack, cast

import typer

from recrawl.cli.lab import options
from recrawl.cli.lab.run import COLUMNS, WEIGHTED, Grid, replay_grid, show_rows
from recrawl.cli.terminal.output import AsJson, note
from recrawl.errors import UsageError
from recrawl.extras import CHARTS, require
from recrawl.parameters import (
    ChartMetric,
    CycleLengths,
    Policies,
    Replay,
    ReplayBudgets,
    SeedCount,
    SingleReplay,
)

_CHARTS = (".png", ".svg", ".html", ".json")
_METRICS = (*(key for key in COLUMNS if key not in ("policy", "budget", "cycle_days")), *WEIGHTED.values())

Charts = Annotated[
    list[Path] | None, typer.Option(help="Write a chart to this file: .png, .svg, .html or .json; repeatable.")
]


def compare_command(
    archives: options.Archives,
    policy: Policies,
    budget: ReplayBudgets = None,
    cycle: CycleLengths = None,
    seeds: SeedCount = 3,
    metric: ChartMetric = "change_ratio",
    chart: Charts = None,
    workers: options.Workers = None,
    no_cache: options.NoCache = False,
    json: AsJson = False,
    **replay: Unpack[Replay],
) -> None:
    """Compare policies at several budgets and cycle lengths, over several seeds."""
    _check(metric, chart or [])
    if chart:
        require(*CHARTS)
    grid = Grid(
        archives=archives,
        policies=policy,
        budgets=budget or [0.0025, 0.01, 0.04],
        lengths=cycle or ["1d"],
        seeds=list(range(1, seeds + 1)),
        replay=cast("SingleReplay", replay),
    )
    rows = replay_grid(grid, workers, no_cache)
    _draw(rows, metric, chart or [])
    show_rows(rows, replay["importance"], json)


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
