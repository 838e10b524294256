"""Replays for T's figures: policies on T's generated world, on its control, and on archives.

Every setting runs on each world with several seeds. On a generated world a seed means another world and another run of
the policy; on archives, another run. Rows hold the mean, its 95 % interval (`low`, `high`), and the values of the seeds
in their order (`by_seed`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from recrawl.choose import make_policy
from recrawl.columns import WEEK
from recrawl.lab.experiments.intervals import interval
from recrawl.lab.experiments.result import ExperimentOptions, Row
from recrawl.lab.experiments.tan2007.published import PAGES
from recrawl.lab.experiments.tan2007.world import SITES_ALIKE, TEXT_TELLS, TWorld
from recrawl.lab.histories.history import History
from recrawl.lab.replays.replay import Setup
from recrawl.lab.replays.runner import run_all
from recrawl.lab.replays.trials import Trial
from recrawl.learn.structure.pagerank import log_scale, pagerank

OBSERVED_WEEKS = 48
"""Weeks that all cycle lengths divide: 24 cycles of two, 12 of four, 6 of eight."""
ARCHIVES = "archives"
NEIGHBOURS = {"DB": "directory", "LB": "links", "CB": "clusters"}


@dataclass(frozen=True, slots=True)
class ReplaySetting:
    """A policy under a short name, with cycle length and budget."""

    policy: str
    text: str
    weeks: int
    resources: int
    """R for T's world; other worlds get the same share of their pages."""
    columns: Mapping[str, Any]
    """Further columns of its row, such as d."""
    cycles: int = 0
    """Number of cycles; 0 for those of T's 48 weeks."""


def sampling(kind: str, d: int, phi: str = "status", batch: int = 1, reading: str = "") -> str:
    """The text of a sampling policy, with one sample at a time as in T's algorithm; `reading` is a further parameter.

    In batches, the neighbourhoods of many seeds use up the budget at distance 0, so a larger d makes no difference.

    >>> sampling("LB", 3)
    'sampling(neighbours=links, d=3, phi=status, batch=1)'
    """
    given = f", {reading}" if reading else ""
    return f"sampling(neighbours={NEIGHBOURS[kind]}, d={d}, phi={phi}{given}, batch={batch})"


def run_settings(
    options: ExperimentOptions,
    settings: Sequence[ReplaySetting],
    *,
    clusters: bool = False,
    control: bool = True,
    sites_alike: bool = False,
    generated_too: bool = True,
) -> list[Row]:
    """Run every setting on every world that has the data its policy needs."""
    rows: list[Row] = []
    worlds = list(_worlds(options, clusters=clusters, control=control, sites_alike=sites_alike))
    worlds = [world for world in worlds if generated_too or world[0] == ARCHIVES]
    total = sum(len(seeds) for _, seeds, _ in worlds) * len(settings)
    done = 0

    def step(_: Trial) -> None:
        nonlocal done
        done += 1
        options.progress(done, total)

    for label, seeds, build in worlds:
        by_setting: dict[int, list[dict[str, Any]]] = {}
        for seed in seeds:
            history = build(seed)
            usable = [index for index, it in enumerate(settings) if make_policy(it.text).needs <= history.carries]
            trials = [Trial(settings[index].text, _setup(settings[index], history, seed)) for index in usable]
            results = run_all(
                history, trials, options.timer, cache=options.trials, workers=options.workers, progress=step
            )
            for index, result in zip(usable, results, strict=True):
                by_setting.setdefault(index, []).append(result)
            done += len(settings) - len(usable)
        rows += [_row(label, settings[index], results) for index, results in sorted(by_setting.items())]
    return rows


def _worlds(
    options: ExperimentOptions, *, clusters: bool, control: bool, sites_alike: bool
) -> Iterator[tuple[str, range, Callable[[int], History]]]:
    """Label, seeds, and a function that builds the world of a seed."""
    pages = page_count(options.scale)
    seeds = range(1, options.seeds + 1)
    for together in (True, False) if control else (True,):
        world = TWorld(pages=pages, together=together, clusters=clusters)
        yield world.label, seeds, functools.partial(_generated_with_seed, world)
    if sites_alike:
        world = TWorld(pages=pages, clusters=clusters, process=SITES_ALIKE)
        yield world.label, seeds, functools.partial(_generated_with_seed, world)
    if clusters:
        world = TWorld(pages=pages, clusters=True, process=TEXT_TELLS)
        yield world.label, seeds, functools.partial(_generated_with_seed, world)
    if options.archives:
        yield ARCHIVES, seeds, lambda _: archive_history(options)


def _generated_with_seed(world: TWorld, seed: int) -> History:
    return generated(replace(world, seed=seed))


def page_count(scale: float) -> int:
    """The pages of T's world at a scale; at least 500, so that all domains and depths occur."""
    return max(500, round(PAGES * scale))


@functools.lru_cache(maxsize=8)
def generated(world: TWorld) -> History:
    """A generated world with PageRank weights, cached for the next experiment.

    The cache has room for all worlds of figure 6: clustering one at full scale takes longer than its replays.
    """
    return with_pagerank_weights(world.build())


def archive_history(options: ExperimentOptions) -> History:
    """The archives as one history, cached for the next experiment."""
    return _open_archives(options.archives, options.change, options.cache)


@functools.lru_cache(maxsize=1)
def _open_archives(paths: tuple[Path, ...], change: str, cache: Path | None) -> History:
    from recrawl.lab.histories import opening as histories  # lazy: slow to load, and generated worlds do without

    history: History = histories.open_history(paths, change, cache / "facts" if cache else None, clusters=True)
    return with_pagerank_weights(history)


def with_pagerank_weights(history: History) -> History:
    """The history with T's weights: PageRank from 0 to 10, divided by its mean (spec M2)."""
    links = history.links
    if links is None:
        return history
    rank = log_scale(pagerank(links.at(links.of_row[history.first[:-1]]))).astype(np.float64)
    return replace(history, weight=rank / (rank.mean() or 1.0))


def _setup(setting: ReplaySetting, history: History, seed: int) -> Setup:
    budget = max(1, round(setting.resources / PAGES * len(history)))
    return Setup(
        budget=budget,
        cycle=setting.weeks * WEEK,
        cycles=setting.cycles or OBSERVED_WEEKS // setting.weeks,
        seed=seed,
        samples=1,
    )


def _row(world: str, setting: ReplaySetting, results: Sequence[dict[str, Any]]) -> Row:
    ratios = [result["change_ratio"] for result in results]
    weighted = [result["weighted_change_ratio"] for result in results]
    cycles = zip(*(result["change_ratio_by_cycle"] for result in results), strict=True)
    mean, by_weight = interval(ratios), None if None in weighted else interval(weighted)
    return {
        "world": world,
        "policy": setting.policy,
        **setting.columns,
        "weeks": setting.weeks,
        "resources": setting.resources,
        "budget": results[0]["budget"],
        "pages": results[0]["pages"],
        "change_ratio": mean.mean,
        "low": mean.low,
        "high": mean.high,
        "by_seed": ratios,
        "weighted": by_weight.mean if by_weight else None,
        "weighted_low": by_weight.low if by_weight else None,
        "weighted_high": by_weight.high if by_weight else None,
        "weighted_by_seed": weighted,
        "share_of_clairvoyant": fmean(result["share_of_clairvoyant"] or 0.0 for result in results),
        "by_cycle": [None if None in values else list(values) for values in cycles],
        "seeds": len(results),
    }


def budget_text(rows: Sequence[Row], weeks: int, resources: int = 25_000) -> str:
    """Cycle length and R, as T has them and as the run had them."""
    ran = {(row["budget"], row["pages"]): row["world"] for row in rows if row["resources"] == resources}
    shown = "; ".join(f"{budget:,} of {pages:,} ({world})" for (budget, pages), world in ran.items())
    return f"{weeks}-week cycles, R = {resources:,} of {PAGES:,} pages in T; here {shown}"


def describe_worlds(options: ExperimentOptions, *, control: bool = True, clusters: bool = False) -> list[str]:
    """One sentence per world, for the report."""
    pages = page_count(options.scale)
    sentences = [
        f"*{TWorld().label}*: {pages:,} pages as in table 1, one year of changes, half of the pages unchanged",
    ]
    if control:
        sentences.append("*made, pages independent*: the same numbers of changes, assigned to random pages and days")
    if clusters:
        sentences.append("*made, text tells*: change follows a page's kind, which its words show, not its directory")
    if options.archives:
        history = archive_history(options)
        sentences.append(
            f"*archives*: {len(history):,} pages of {len(history.sites):,} real sites, change = {history.change}; "
            "each site on its own clock; R is the same share of the pages"
        )
    return sentences
