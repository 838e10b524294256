"""`recrawl lab run` and `recrawl lab compare`: policies against real histories."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

from recrawl.cli.cache_folder import cache_folder
from recrawl.cli.output import AsJson, as_json, note, table
from recrawl.cli.progress import progress
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.lab.histories.opening import open_history
from recrawl.lab.histories.slicing import later
from recrawl.lab.histories.weights import told_weights
from recrawl.lab.replays.replay import Setup
from recrawl.lab.replays.runner import Trial, name_of, needs_of, over_seeds, run_all
from recrawl.lab.replays.simulated_hints import HOWS
from recrawl.learn.value.importance import kind_of
from recrawl.repository.times import duration
from recrawl.settings import size

_COLUMNS = {
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
    "seconds": ">seconds",
}
_CHARTS = (".png", ".svg", ".html", ".json")
_WEIGHTED = {"change_ratio": "weighted_change_ratio", "freshness": "weighted_freshness"}
METRICS = (*(key for key in _COLUMNS if key not in ("policy", "budget", "cycle_days")), *_WEIGHTED.values())

Archives = Annotated[
    list[Path], typer.Argument(metavar="ARCHIVE...", help="Parquet files or folders of them, or CDX listings.")
]
Policies = Annotated[
    list[str], typer.Option("--policy", metavar="P", help="A policy, as round-robin or greedy(sample=20); repeatable.")
]
Change = Annotated[
    str, typer.Option(help="What counts as change: text, raw, significant, or divergence:0.1 (share of words).")
]
Cycles = Annotated[int | None, typer.Option(min=1, help="How many cycles; as many as the archives last if not given.")]
Skip = Annotated[
    str,
    typer.Option(metavar="TIME", help="Leave out so much of each site's beginning, as 365d: what was tuned on."),
]
Bytes = Annotated[
    str,
    typer.Option("--bytes", metavar="AMOUNT", help="Most bytes a cycle, as 200MB: a visit brings the page; 0: any."),
]
Discover = Annotated[str, typer.Option(help="How pages born later become known: births, or links.")]
AtStart = Annotated[
    float, typer.Option(min=0, max=1, help="Share of a cycle's visits made at its start; the rest is spread over it.")
]
Failures = Annotated[float, typer.Option(min=0, max=1, help="Share of visits that fail.")]
Late = Annotated[float, typer.Option(min=0, max=1, help="Share of answers that come after the policy is done.")]
HintsFrom = Annotated[
    str, typer.Option("--hints", metavar="SOURCE", help=f"What the sites volunteer: sitemap: with {', '.join(HOWS)}.")
]
Weights = Annotated[
    str,
    typer.Option(
        "--importance",
        metavar="KIND",
        help="How much pages matter to policies: even, pagerank, file:PATH or clicks:PATH.",
    ),
]
Costs = Annotated[str, typer.Option("--cost", help="What a visit costs policies: visit (all alike), or bytes.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Read and replay everything again.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; one per core if not given.")]


def run_command(
    archives: Archives,
    policy: Policies,
    budget: Annotated[float, typer.Option(help="Visits a cycle; under 1 a share of the pages.")] = 0.01,
    bytes_: Bytes = "0",
    cycle: Annotated[str, typer.Option(help="How long a cycle is: 6h, 1d, 2w.")] = "1d",
    cycles: Cycles = None,
    skip: Skip = "0d",
    seed: Annotated[list[int] | None, typer.Option(help="Repeatable; means and spread over all.")] = None,
    change: Change = "text",
    discover: Discover = "births",
    at_start: AtStart = 1.0,
    failures: Failures = 0.0,
    late: Late = 0.0,
    hints: HintsFrom = "",
    importance: Weights = "even",
    cost: Costs = "visit",
    workers: Workers = None,
    no_cache: NoCache = False,
    json: AsJson = False,
) -> None:
    """Replay archives under policies: what would each have found with this budget?"""
    settings: dict[str, Any] = {"discover": discover, "at_start": at_start, "failures": failures, "late": late}
    settings |= {"hints": hints, "cost": cost, "bytes": size(bytes_)}
    asked = _Asked(archives, policy, [budget], [cycle], cycles, seed or [1], change, skip, importance)
    rows = _run(asked, settings, workers, no_cache)
    as_json(rows) if json else table(rows, _shown(importance))


def compare_command(
    archives: Archives,
    policy: Policies,
    budget: Annotated[list[float] | None, typer.Option(help="Visits a cycle, or a share; repeatable.")] = None,
    bytes_: Bytes = "0",
    cycle: Annotated[list[str] | None, typer.Option(help="How long a cycle is; repeatable.")] = None,
    cycles: Cycles = None,
    skip: Skip = "0d",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; means and spread over them.")] = 3,
    change: Change = "text",
    discover: Discover = "births",
    at_start: AtStart = 1.0,
    failures: Failures = 0.0,
    late: Late = 0.0,
    hints: HintsFrom = "",
    importance: Weights = "even",
    cost: Costs = "visit",
    metric: Annotated[str, typer.Option(help=f"What the chart shows: {', '.join(METRICS)}.")] = "change_ratio",
    chart: Annotated[
        list[Path] | None, typer.Option(help="Write a chart: a name ending in .png, .svg or .html; repeatable.")
    ] = None,
    workers: Workers = None,
    no_cache: NoCache = False,
    json: AsJson = False,
) -> None:
    """Compare policies at several budgets and cycles, over several seeds: a table, a chart, JSON."""
    if metric not in METRICS:
        raise UsageError(f"--metric is one of {', '.join(METRICS)}, not '{metric}'")
    for path in chart or []:  # before the long work
        if path.suffix.lower() not in _CHARTS:
            raise UsageError(f"a chart's name ends in {', '.join(_CHARTS)}, not as '{path.name}' does")
        if not path.parent.is_dir():
            raise UsageError(f"there is no folder {path.parent} to write a chart to")
    settings: dict[str, Any] = {"discover": discover, "at_start": at_start, "failures": failures, "late": late}
    settings |= {"hints": hints, "cost": cost, "bytes": size(bytes_)}
    asked = _Asked(
        archives,
        policy,
        budgets=budget or [0.0025, 0.01, 0.04],
        lengths=cycle or ["1d"],
        cycles=cycles,
        seeds=list(range(1, seeds + 1)),
        change=change,
        skip=skip,
        importance=importance,
    )
    rows = _run(asked, settings, workers, no_cache)
    for path in chart or []:
        from recrawl.lab.comparison_chart import compared  # lazy: the libraries for charts load slowly

        compared(rows, metric, path)
        note(f"wrote {path}")
    as_json(rows) if json else table(rows, _shown(importance))


def _shown(importance: str) -> dict[str, str]:
    """The table's columns; with weights, what is measured by them comes beside the plain figures."""
    if kind_of(importance)[0] == "even":
        return _COLUMNS
    shown: dict[str, str] = {}
    for key, heading in _COLUMNS.items():
        shown[key] = heading
        if key in _WEIGHTED:
            shown[_WEIGHTED[key]] = ">by weight"
    return shown


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be replayed, as it was asked for."""

    archives: list[Path]
    policies: list[str]
    budgets: list[float]
    lengths: list[str]
    cycles: int | None
    seeds: list[int]
    change: str
    skip: str
    importance: str


def _run(asked: _Asked, settings: dict[str, Any], workers: int | None, no_cache: bool) -> list[dict[str, Any]]:
    kind_of(asked.importance)  # what is no importance is refused before the long work
    seconds, skipped = [duration(length) for length in asked.lengths], duration(asked.skip)
    if min(seconds) <= 0:
        raise UsageError("a cycle must last longer than nothing")
    needs = needs_of(asked.policies)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    cache = None if no_cache else cache_folder()
    with progress(*columns) as bars:
        reading = bars.add_task("reading", total=None, told="")

        def read(done: int, total: int) -> None:
            bars.update(reading, completed=done, total=total, told=f"{done:,} of {total:,} versions")

        facts = cache / "facts" if cache else None
        history = open_history(asked.archives, asked.change, facts, read, clusters="clusters" in needs)
        history = later(history, skipped) if skipped else history
        history, ignored = told_weights(history, asked.importance)
        settings = {**settings, "weighted": kind_of(asked.importance)[0] != "even"}
        setups = (
            (text, _setup(history, budget, length, asked.cycles, seed, settings))
            for length in seconds
            for budget in asked.budgets
            for text in asked.policies
            for seed in asked.seeds
        )
        # Shares of few pages can be the same number of visits: what is asked for twice is done once.
        trials = list(dict.fromkeys(Trial(name_of(text), setup) for text, setup in setups))
        running = bars.add_task("replaying", total=len(trials), told="")

        def ran(trial: Trial) -> None:
            bars.update(running, advance=1, told=f"{trial.policy}, {trial.setup.budget:,} a cycle")

        results = run_all(
            history, trials, time.perf_counter, cache=cache / "trials" if cache else None, workers=workers, progress=ran
        )
    if ignored:
        note(f"of the weights in {asked.importance}, {ignored}")
    return over_seeds(results)


def _setup(
    history: History, budget: float, cycle: float, cycles: int | None, seed: int, settings: dict[str, Any]
) -> Setup:
    if not 0 <= budget < float("inf"):
        raise UsageError(f"a budget is zero or more, not {budget:g}")
    share = 0 < budget < 1
    return Setup(
        budget=max(1, round(budget * len(history))) if share else int(budget),
        cycle=cycle,
        cycles=cycles or max(1, math.ceil(history.span / cycle)),
        seed=seed,
        **settings,
    )
