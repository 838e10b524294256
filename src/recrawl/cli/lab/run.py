"""`recrawl lab run`: replay archives under policies; also the replays behind `recrawl lab compare`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.lab import options
from recrawl.cli.terminal.output import AsJson, as_json, note, table
from recrawl.cli.terminal.progress import detailed
from recrawl.errors import UsageError
from recrawl.lab.histories.history import without_start
from recrawl.lab.histories.opening import open_history
from recrawl.lab.histories.weights import check_importance, with_importance
from recrawl.lab.replays.runner import over_seeds, run_all
from recrawl.lab.replays.trials import Trial, needs_of, trials_of
from recrawl.settings import size
from recrawl.times import duration

COLUMNS = {
    "policy": "policy",
    "budget": ">budget",
    "cycle_days": ">cycle, days",
    "visits": ">visits",
    "found": ">found",
    "change_ratio": ">change ratio",
    "recall": ">recall",
    "share_of_clairvoyant": ">of clairvoyant",
    "freshness": ">freshness",
    "age_days": ">age, days",
    "needless": ">needless",
    "rate_accuracy": ">rate accuracy",
    "busiest_visits_per_hour": ">visits/h, busiest site",
    "seconds": ">seconds",
}
WEIGHTED = {"change_ratio": "weighted_change_ratio", "freshness": "weighted_freshness"}
"""Measure to the same measure weighted by importance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The replays to run: every policy with every budget, cycle length and seed."""

    archives: list[Path]
    policies: list[str]
    budgets: list[float]
    lengths: list[str]
    cycles: int | None
    seeds: list[int]
    change: str
    skip: str
    importance: str
    settings: dict[str, Any]
    """Fields of `Setup` that all replays share."""


def run_command(
    archives: options.Archives,
    policy: options.Policies,
    budget: Annotated[float, typer.Option(help="Visits per cycle; below 1, a share of the pages.")] = 0.01,
    bytes_: options.Bytes = "0",
    cycle: Annotated[str, typer.Option(help="Length of a cycle: 6h, 1d, 2w.")] = "1d",
    cycles: options.Cycles = None,
    skip: options.Skip = "0d",
    seed: Annotated[
        list[int] | None, typer.Option(help="Random seed; repeatable: means and spread over all seeds.")
    ] = None,
    change: options.Change = "text",
    discover: options.Discover = "births",
    at_start: options.AtStart = 1.0,
    failures: options.Failures = 0.0,
    late: options.Late = 0.0,
    hints: options.HintsFrom = "",
    importance: options.Weights = "even",
    cost: options.Costs = "visit",
    shards: options.Shards = 1,
    workers: options.Workers = None,
    no_cache: options.NoCache = False,
    json: AsJson = False,
) -> None:
    """Replay archives under policies and measure what each finds within the budget."""
    settings = {"discover": discover, "at_start": at_start, "failures": failures, "late": late, "hints": hints}
    grid = Grid(
        archives=archives,
        policies=policy,
        budgets=[budget],
        lengths=[cycle],
        cycles=cycles,
        seeds=seed or [1],
        change=change,
        skip=skip,
        importance=importance,
        settings=settings | {"cost": cost, "bytes": size(bytes_), "shards": shards},
    )
    show_rows(replay_grid(grid, workers, no_cache), importance, json)


def show_rows(rows: list[dict[str, Any]], importance: str, json: bool) -> None:
    """Print results; with page weights, the weighted measures stand beside the plain ones."""
    if json:
        as_json(rows)
        return
    columns: dict[str, str] = {}
    for key, heading in COLUMNS.items():
        columns[key] = heading
        if key in WEIGHTED and check_importance(importance) != "even":
            columns[WEIGHTED[key]] = ">by weight"
    table(rows, columns)


def replay_grid(grid: Grid, workers: int | None, no_cache: bool) -> list[dict[str, Any]]:
    """Run all replays of a grid; one row per policy, budget and cycle length, averaged over the seeds."""
    weighted = check_importance(grid.importance) != "even"
    seconds, skipped = [duration(length) for length in grid.lengths], duration(grid.skip)
    if min(seconds) <= 0:
        raise UsageError("invalid cycle length: must be longer than 0 s")
    needs = needs_of(grid.policies)
    cache = None if no_cache else options.cache_folder()
    with detailed() as bars:
        reading = bars.add_task("reading", total=None, detail="")

        def on_read(done: int, total: int) -> None:
            bars.update(reading, completed=done, total=total, detail=f"{done:,} of {total:,} versions")

        facts = cache / "facts" if cache else None
        history = open_history(
            grid.archives, grid.change, facts, on_read, clusters="clusters" in needs, words="words" in needs
        )
        history = without_start(history, skipped) if skipped else history
        history, ignored = with_importance(history, grid.importance)
        settings = {**grid.settings, "weighted": weighted}
        trials = trials_of(history, grid.policies, grid.budgets, seconds, grid.cycles, grid.seeds, **settings)
        running, replayed = bars.add_task("replaying", total=len(trials), detail=""), list[Trial]()

        def on_replayed(trial: Trial) -> None:
            replayed.append(trial)
            what = f"{trial.policy}, {trial.setup.budget:,} per cycle"
            bars.update(running, advance=1, detail=f"{len(replayed):,} of {len(trials):,}: {what}")

        trial_cache = cache / "trials" if cache else None
        results = run_all(history, trials, time.perf_counter, cache=trial_cache, workers=workers, progress=on_replayed)
    if ignored:
        note(f"of the weights in {grid.importance}, {ignored}")
    return over_seeds(results)
