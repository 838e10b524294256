"""`lab run` and `lab compare`: replay archives under policies; options that the commands of the lab share."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack, cast

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, table
from recrawl.errors import UsageError
from recrawl.extras import CHARTS, require
from recrawl.parameters import (
    ChartMetric,
    CycleLength,
    CycleLengths,
    Policies,
    Replay,
    ReplayBudget,
    ReplayBudgets,
    SeedCount,
    SingleReplay,
)
from recrawl.times import duration

if TYPE_CHECKING:
    from recrawl.lab.replays.runner import Trial

Archives = Annotated[
    list[Path], typer.Argument(metavar="ARCHIVE...", help="Parquet files, folders of Parquet files, or CDX listings.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ignore the cache: read and replay again.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of processes. Default: as many as pay, at most one per core.")
]
COLUMNS = {
    "policy": "policy",
    "budget": ">budget",
    "cycle_days": ">cycle, days",
    "visits": ">visits",
    "found": ">found",
    "distinct": ">distinct",
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
_OF_SETUP = ("discover", "at_start", "failures", "late", "hints", "cost", "site_share", "copies", "shards")
"""Options of a replay that are fields of `Setup` as they are."""
_METRICS = (*(key for key in COLUMNS if key not in ("policy", "budget", "cycle_days")), *WEIGHTED.values())
_CHARTS = (".png", ".svg", ".html", ".json")
Charts = Annotated[
    list[Path] | None, typer.Option(help="Write a chart to this file: .png, .svg, .html or .json; repeatable.")
]


def cache_folder() -> Path:
    """The folder of cached archives and replays, which can be deleted at any time; `RECRAWL_CACHE` moves it."""
    named = os.environ.get("RECRAWL_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "recrawl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The replays to run: every policy with every budget, cycle length and seed."""

    archives: list[Path]
    policies: list[str]
    budgets: list[float]
    lengths: list[str]
    seeds: list[int]
    replay: SingleReplay


def run_command(
    archives: Archives,
    policy: Policies,
    budget: ReplayBudget = 0.01,
    cycle: CycleLength = "1d",
    seed: Annotated[
        list[int] | None, typer.Option(help="Random seed; repeatable: means and spread over all seeds.")
    ] = None,
    workers: Workers = None,
    no_cache: NoCache = False,
    json: AsJson = False,
    **replay: Unpack[SingleReplay],
) -> None:
    """Replay archives under policies and measure what each finds within the budget."""
    grid = Grid(archives=archives, policies=policy, budgets=[budget], lengths=[cycle], seeds=seed or [1], replay=replay)
    show_rows(replay_grid(grid, workers, no_cache), replay["importance"], json)


def show_rows(rows: list[dict[str, Any]], importance: str, json: bool) -> None:
    """Print results; with page weights, the weighted measures stand beside the plain ones."""
    from recrawl.lab.histories.weights import check_importance  # lazy: the help does without

    if json:
        as_json(rows)
        return
    columns: dict[str, str] = {}
    for key, heading in COLUMNS.items():
        columns[key] = heading
        if key == "found" and any(row["honest_found"] is not None for row in rows):
            columns |= {"honest_visits": ">visits, honest", "honest_found": ">found, honest"}
        if key in WEIGHTED and check_importance(importance) != "even":
            columns[WEIGHTED[key]] = ">by weight"
    table(rows, columns)


def replay_grid(grid: Grid, workers: int | None, no_cache: bool) -> list[dict[str, Any]]:
    """Run all replays of a grid; one row per policy, budget and cycle length, averaged over the seeds."""
    from recrawl.cli.terminal.progress import detailed  # lazy: the help does without
    from recrawl.lab.histories.history import without_start  # lazy: the help does without
    from recrawl.lab.histories.opening import open_history  # lazy: the help does without
    from recrawl.lab.histories.weights import check_importance, with_importance  # lazy: the help does without
    from recrawl.lab.replays.runner import (  # lazy: the help does without  # lazy: the help does without
        Trial,
        needs_of,
        over_seeds,
        run_all,
        trials_of,
    )
    from recrawl.lab.synth.adversaries import with_adversary  # lazy: the help does without
    from recrawl.settings import size  # lazy: the help does without

    asked = grid.replay
    weighted = check_importance(asked["importance"]) != "even"
    seconds, skipped = [duration(length) for length in grid.lengths], duration(asked["skip"])
    if min(seconds) <= 0:
        raise UsageError("invalid cycle length: must be longer than 0 s")
    needs = needs_of(grid.policies)
    cache = None if no_cache else cache_folder()
    with detailed() as bars:
        reading = bars.add_task("reading", total=None, detail="")

        def on_read(done: int, total: int) -> None:
            bars.update(reading, completed=done, total=total, detail=f"{done:,} of {total:,} versions")

        facts = cache / "facts" if cache else None
        history = open_history(
            grid.archives, asked["change"], facts, on_read, clusters="clusters" in needs, words="words" in needs
        )
        history = without_start(history, skipped) if skipped else history
        history = with_adversary(history, kind) if (kind := asked.get("adversary")) else history
        history, ignored = with_importance(history, asked["importance"])
        settings = {
            **{name: value for name, value in asked.items() if name in _OF_SETUP},
            "bytes": size(asked["bytes"]),
            "weighted": weighted,
        }
        trials = trials_of(history, grid.policies, grid.budgets, seconds, asked.get("cycles"), grid.seeds, **settings)
        running, replayed = bars.add_task("replaying", total=len(trials), detail=""), list[Trial]()

        def on_replayed(trial: Trial) -> None:
            replayed.append(trial)
            what = f"{trial.policy}, {trial.setup.budget:,} per cycle"
            bars.update(running, advance=1, detail=f"{len(replayed):,} of {len(trials):,}: {what}")

        trial_cache = cache / "trials" if cache else None
        results = run_all(history, trials, time.perf_counter, cache=trial_cache, workers=workers, progress=on_replayed)
    if ignored:
        note(f"of the weights in {asked['importance']}, {ignored}")
    return over_seeds(results)


def compare_command(
    archives: Archives,
    policy: Policies,
    budget: ReplayBudgets = None,
    cycle: CycleLengths = None,
    seeds: SeedCount = 3,
    metric: ChartMetric = "change_ratio",
    chart: Charts = None,
    workers: Workers = None,
    no_cache: NoCache = False,
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
