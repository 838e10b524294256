"""Replays for T's figures: policies on T's generated world, on its control, and on archives.

A thing is measured on each world with several seeds. On generated worlds a seed means another world and another run of
the policy; on archives, another run. Rows hold the mean and, as `low` and `high`, the least and the greatest.
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
from recrawl.lab.experiments.result import ExperimentOptions, Row
from recrawl.lab.experiments.tan2007.published import PAGES
from recrawl.lab.experiments.tan2007.world import SITES_ALIKE, TWorld
from recrawl.lab.histories.history import History
from recrawl.lab.replays.replay import Setup
from recrawl.lab.replays.runner import Trial, run_all
from recrawl.learn.structure.pagerank import log_scale, pagerank

WATCHED = 48
"""Weeks that all cycle lengths divide: 24 cycles of two, 12 of four, 6 of eight."""
ARCHIVES = "archives"


@dataclass(frozen=True, slots=True)
class ReplaySetting:
    """A policy under a name, and how it is run."""

    policy: str
    text: str
    weeks: int
    resources: int
    """R, as in T's world; other worlds get the same share of their pages."""
    extra: Mapping[str, Any]
    """Further columns of its row, such as d."""


def measure(
    options: ExperimentOptions,
    settings: Sequence[ReplaySetting],
    *,
    clusters: bool = False,
    control: bool = True,
    sites_alike: bool = False,
) -> list[Row]:
    """Every setting on every world that carries what its policy needs."""
    rows: list[Row] = []
    worlds = list(_worlds(options, clusters=clusters, control=control, sites_alike=sites_alike))
    total = sum(len(seeds) for _, seeds, _ in worlds) * len(settings)
    done = 0

    def told(_: Trial) -> None:
        nonlocal done
        done += 1
        options.progress(done, total)

    for label, seeds, build in worlds:
        found: dict[int, list[dict[str, Any]]] = {}
        for seed in seeds:
            history = build(seed)
            able = [place for place, it in enumerate(settings) if make_policy(it.text).needs <= history.carries]
            trials = [Trial(settings[place].text, _setup(settings[place], history, seed)) for place in able]
            results = run_all(
                history, trials, options.timer, cache=options.trials, workers=options.workers, progress=told
            )
            for place, result in zip(able, results, strict=True):
                found.setdefault(place, []).append(result)
            done += len(settings) - len(able)
        rows += [_row(label, settings[place], results) for place, results in sorted(found.items())]
    return rows


def _worlds(
    options: ExperimentOptions, *, clusters: bool, control: bool, sites_alike: bool
) -> Iterator[tuple[str, range, Callable[[int], History]]]:
    """Label, seeds, and how to make the world of a seed."""
    pages = pages_at(options.scale)
    seeds = range(1, options.seeds + 1)
    for together in (True, False) if control else (True,):
        world = TWorld(pages=pages, together=together, clusters=clusters)
        yield world.label, seeds, functools.partial(_made, world)
    if sites_alike:
        world = TWorld(pages=pages, clusters=clusters, nature=SITES_ALIKE)
        yield world.label, seeds, functools.partial(_made, world)
    if options.archives:
        yield ARCHIVES, seeds, lambda _: archives(options)


def _made(world: TWorld, seed: int) -> History:
    return made(replace(world, seed=seed))


def pages_at(scale: float) -> int:
    """The pages of T's world at a scale; a few hundred are the least that can have its domains and depths."""
    return max(500, round(PAGES * scale))


@functools.lru_cache(maxsize=4)
def made(world: TWorld) -> History:
    """A generated world with its pages weighed, kept for the next experiment."""
    return weighed(world.build())


def archives(options: ExperimentOptions) -> History:
    """The archives as one history, kept for the next experiment."""
    return _opened(options.archives, options.change, options.cache)


@functools.lru_cache(maxsize=1)
def _opened(paths: tuple[Path, ...], change: str, cache: Path | None) -> History:
    # Reading archives takes modules that are slow to load, and generated worlds do without.
    from recrawl.lab.histories import opening as histories  # lazy: loads slowly

    history: History = histories.open_history(paths, change, cache / "facts" if cache else None, clusters=True)
    return weighed(history)


def weighed(history: History) -> History:
    """The history with T's weights: PageRank from 0 to 10, here divided by its mean (spec M2)."""
    links = history.links
    if links is None:
        return history
    rank = log_scale(pagerank(links.at(links.of_row[history.first[:-1]]))).astype(np.float64)
    return replace(history, weight=rank / (rank.mean() or 1.0))


def _setup(setting: ReplaySetting, history: History, seed: int) -> Setup:
    budget = max(1, round(setting.resources / PAGES * len(history)))
    return Setup(
        budget=budget, cycle=setting.weeks * WEEK, cycles=WATCHED // setting.weeks, seed=seed, samples=1
    )  # freshness is not asked for


def _row(world: str, setting: ReplaySetting, results: Sequence[dict[str, Any]]) -> Row:
    ratios = [result["change_ratio"] for result in results]
    weighted = [result["weighted_change_ratio"] for result in results]
    cycles = zip(*(result["change_ratio_by_cycle"] for result in results), strict=True)
    return {
        "world": world,
        "policy": setting.policy,
        **setting.extra,
        "weeks": setting.weeks,
        "resources": setting.resources,
        "budget": results[0]["budget"],
        "pages": results[0]["pages"],
        "change_ratio": fmean(ratios),
        "low": min(ratios),
        "high": max(ratios),
        "weighted": fmean(weighted) if None not in weighted else None,
        "weighted_low": min(weighted) if None not in weighted else None,
        "weighted_high": max(weighted) if None not in weighted else None,
        "share_of_clairvoyant": fmean(result["share_of_clairvoyant"] or 0.0 for result in results),
        "by_cycle": [_spread(values) for values in cycles],
        "seeds": len(results),
    }


def _spread(values: Sequence[float | None]) -> tuple[float, float, float] | None:
    there = [value for value in values if value is not None]
    return (fmean(there), min(there), max(there)) if there else None


def worlds_of(options: ExperimentOptions, *, control: bool = True) -> list[str]:
    """A sentence on each world, for the report."""
    pages = pages_at(options.scale)
    told = [
        f"*{TWorld().label}*: {pages:,} pages by table 1, a year of changes, half of the pages without any",
    ]
    if control:
        told.append("*made, pages independent*: the same numbers of changes, dealt out to pages and days at random")
    if options.archives:
        history = archives(options)
        told.append(
            f"*archives*: {len(history):,} pages of {len(history.sites):,} real sites, change = {history.change}; "
            "each site on its own clock, resources R as the same share of the pages"
        )
    return told
