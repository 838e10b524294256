"""Run many replays in parallel, with a cache of the results.

A cached result is a file named by a digest of everything it depends on: the rows of the history, the setup, the
policy's text, and the source of every module that takes part, including that of a policy given as `module:Class`.
Changing any of them replays again. Results of a policy object from outside recrawl are not cached.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import math
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from numpy.typing import NDArray

from recrawl.child_processes import worker_pool
from recrawl.choose import POLICIES, Policy, describe, make_policy
from recrawl.choose.custom import is_custom, source_of
from recrawl.choose.shards.rounds import why_one_shard
from recrawl.columns import DAY
from recrawl.durable_files import replace_file
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.lab.replays.clairvoyant import Clairvoyant, upper_bound
from recrawl.lab.replays.hint_sources import hints_key
from recrawl.lab.replays.replay import Setup, check, replay

# --------------------------------------------------------------------------------------------------------------------
# Which replays to run: every policy with every budget, cycle length and seed.


@dataclass(frozen=True, slots=True)
class Trial:
    """One replay to run."""

    policy: str | Policy
    """The text of a policy, or a policy object; each replay of an object works on a copy of it."""
    setup: Setup


def policy_for(policy: str | Policy, history: History, setup: Setup) -> Policy:
    """Return a fresh policy; only the clairvoyant gets the history and the setup."""
    if not isinstance(policy, str):
        return copy.deepcopy(policy)
    if is_clairvoyant(policy):
        if setup.discover == "crawl":
            raise UsageError("the clairvoyant needs a repository that holds all pages at first: use no discover=crawl")
        return Clairvoyant(history, setup.budget, setup.cycle, setup.cycles)
    return make_policy(policy)


def needs_of(policies: Iterable[str | Policy]) -> frozenset[str]:
    """Return what the policies together need from an archive."""
    return frozenset[str]().union(*(made(policy).needs for policy in policies if not is_clairvoyant(policy)))


def name_of(policy: str | Policy) -> str:
    """Return the policy's text in its canonical form; raise a UsageError for an invalid text."""
    if is_clairvoyant(policy):
        return Clairvoyant.name
    try:
        return describe(made(policy))
    except UsageError:
        if isinstance(policy, str):
            raise
        return policy.name  # an object that has no text, such as one of a local class


def made(policy: str | Policy) -> Policy:
    """Return the policy of a text, or the object itself."""
    return make_policy(policy) if isinstance(policy, str) else policy


def is_clairvoyant(policy: str | Policy) -> bool:
    """Whether this is the bound `clairvoyant`, which knows the history."""
    return isinstance(policy, str) and policy.strip() == Clairvoyant.name


def setup_for(
    history: History, budget: float, cycle: float, cycles: int | None = None, seed: int = 1, **options: Any
) -> Setup:
    """Return the setup of a replay; further options are fields of `Setup`. Sites keep a fair share, as in a crawl.

    Parameters
    ----------
    budget
        Visits per cycle; a number between 0 and 1 is a share of the history's pages, at least one visit.
    cycle
        Length of a cycle in seconds.
    cycles
        Number of cycles; by default as many as the history lasts.
    """
    if not 0 <= budget < float("inf"):
        raise UsageError(f"invalid budget {budget:g}; use a number of visits per cycle, or a share below 1")
    if not 0 < cycle < float("inf"):
        raise UsageError(f"invalid cycle length {cycle:g} s; it must be more than 0")
    return Setup(
        **{"site_share": "auto", **options},
        budget=max(1, round(budget * len(history))) if 0 < budget < 1 else int(budget),
        cycle=cycle,
        cycles=cycles or max(1, math.ceil(history.span / cycle)),
        seed=seed,
    )


def trials_of(
    history: History,
    policies: Iterable[str | Policy],
    budgets: Sequence[float],
    lengths: Sequence[float],
    cycles: int | None,
    seeds: Sequence[int],
    **options: Any,
) -> list[Trial]:
    """Return one trial for each cycle length, budget, policy and seed, without duplicates.

    Several shares of a small history can round to the same number of visits.
    """
    policies = [name_of(policy) if isinstance(policy, str) else policy for policy in policies]
    return list(
        dict.fromkeys(
            Trial(policy, setup_for(history, budget, length, cycles, seed, **options))
            for length in lengths
            for budget in budgets
            for policy in policies
            for seed in seeds
        )
    )


# --------------------------------------------------------------------------------------------------------------------


_SOURCES = ("choose", "learn", "lab", "book.py", "columns.py", "loop.py", "model.py")
"""The modules that a result depends on."""
_AVERAGED = (
    "found",
    "distinct",
    "visits",
    "honest_found",
    "honest_visits",
    "change_ratio",
    "weighted_change_ratio",
    "success_rate",
    "recall",
    "freshness",
    "weighted_freshness",
    "age_days",
    "embarrassment",
    "delay_days",
    "delay_days_of_all",
    "discovery_days",
    "needless",
    "rate_accuracy",
    "busiest_visits_per_hour",
    "busiest_bytes_per_hour",
    "share_of_clairvoyant",
    "failed",
    "bytes",
    "seconds",
)

SMALL_WORK = 2_000
"""Pages times replays. Up to this, a worker process takes longer to start than the replays take."""


def run_all(
    history: History,
    trials: Sequence[Trial],
    timer: Callable[[], float],
    *,
    cache: Path | None = None,
    workers: int | None = None,
    progress: Callable[[Trial], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Run the trials and return their results in the same order; `progress` gets each trial when it is done.

    Without a number of workers there is one per CPU core, and none for small work.
    """
    for trial in trials:
        if not is_clairvoyant(trial.policy):
            check(history, made(trial.policy), trial.setup)
    digest = _history_digest(history) if cache else ""
    paths = [_cache_path(cache, digest, trial) for trial in trials]
    results = {place: cached for place, path in enumerate(paths) if (cached := _from_cache(path)) is not None}
    for place in results:
        progress(trials[place])
    todo = [place for place in range(len(trials)) if place not in results]
    if workers is None:
        workers = 1 if len(history) * len(todo) <= SMALL_WORK else os.cpu_count() or 1
    for place, result in _run(history, trials, todo, timer, workers):
        results[place] = result
        _to_cache(paths[place], result)
        progress(trials[place])
    _bound.cache_clear()  # it holds the history
    return [results[place] for place in range(len(trials))]


def _run(
    history: History, trials: Sequence[Trial], todo: list[int], timer: Callable[[], float], workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    remote = [place for place in todo if _can_pickle(trials[place])] if workers > 1 and len(todo) > 1 else []
    yield from ((place, run_one(history, trials[place], timer)) for place in todo if place not in remote)
    if not remote:
        return
    # A worker gets the history once, when it starts, not with every task.
    with worker_pool(min(workers, len(remote)), _Worker.start, (history, timer)) as pool:
        pending = {pool.submit(_Worker.run, trials[place]): place for place in remote}
        for done in as_completed(pending):
            yield pending[done], done.result()


def _can_pickle(trial: Trial) -> bool:
    """Whether a worker process can get the trial; a policy of a local class, for example, cannot be pickled."""
    if isinstance(trial.policy, str):
        return True
    try:
        pickle.dumps(trial)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


class _Worker:
    """The state of a worker process between tasks."""

    history: History
    timer: Callable[[], float]

    @classmethod
    def start(cls, history: History, timer: Callable[[], float]) -> None:
        cls.history, cls.timer = history, staticmethod(timer)

    @classmethod
    def run(cls, trial: Trial) -> dict[str, Any]:
        return run_one(cls.history, trial, cls.timer)


def run_one(history: History, trial: Trial, timer: Callable[[], float]) -> dict[str, Any]:
    """Run one replay and return its figures."""
    setup = trial.setup
    policy = policy_for(trial.policy, history, setup)
    begun = timer()
    figures = replay(history, policy, setup).summary()
    seconds = timer() - begun
    bound, there = 0, 0  # what a crawl can find depends on the links that it follows: no bound is known
    if setup.discover != "crawl":
        bound, there = _bound(history, setup.budget, setup.cycle, setup.cycles, setup.at_start)
    return {
        "policy": name_of(trial.policy),
        "pages": len(history),
        "sites": len(history.sites),
        "change": history.change,
        "budget": setup.budget,
        "cycle_days": setup.cycle / DAY,
        "cycles": setup.cycles,
        "seed": setup.seed,
        "shards": 1 if why_one_shard(policy) else setup.shards,
        **{key: _number(value) for key, value in figures.items()},
        "recall": figures["found"] / there if there else None,
        "share_of_clairvoyant": figures["found"] / bound if bound else None,
        "seconds": round(seconds, 4),
    }


@functools.lru_cache(maxsize=16)
def _bound(history: History, budget: int, cycle: float, cycles: int, at_start: float) -> tuple[int, int]:
    """The bound of a replay; all policies and seeds on a history have the same."""
    setup = Setup(budget=budget, cycle=cycle, cycles=cycles, at_start=at_start)
    return upper_bound(history, *setup.moments(len(history)))


def over_seeds(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge results that differ only in their seed into one: means, and the standard deviation (`spread`)."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for result in results:
        key = tuple(result[name] for name in ("policy", "budget", "cycle_days", "cycles", "change"))
        groups.setdefault(key, []).append(result)
    return [_merged(group) for group in groups.values()]


def _merged(group: list[dict[str, Any]]) -> dict[str, Any]:
    if len(group) == 1:
        return group[0]
    whole = {key: value for key, value in group[0].items() if key != "seed"}
    spread = {}
    for key in _AVERAGED:
        values = [result[key] for result in group if result[key] is not None]
        whole[key] = fmean(values) if values else None
        spread[key] = stdev(values) if len(values) > 1 else None
    by_cycle = zip(*(result["change_ratio_by_cycle"] for result in group), strict=True)
    whole["load"] = _mean_load(group)
    whole["change_ratio_by_cycle"] = [None if None in ratios else fmean(ratios) for ratios in by_cycle]
    return {**whole, "seeds": [result["seed"] for result in group], "spread": spread}


def _mean_load(group: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The load by site, as means over the seeds; a seed without visits to a site counts as 0."""
    sites: dict[str, list[dict[str, Any]]] = {}
    for result in group:
        for row in result["load"]:
            sites.setdefault(row["site"], []).append(row)
    rows = [
        {"site": site, **{key: sum(row[key] for row in part) / len(group) for key in part[0] if key != "site"}}
        for site, part in sites.items()
    ]
    return sorted(rows, key=lambda row: -row["visits"])


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _history_digest(history: History) -> str:
    """Return a digest of the history's content."""
    digest = hashlib.blake2b(digest_size=16)
    columns: list[NDArray[Any]] = [
        history.site,
        history.folder,
        history.folders.parent,
        history.first,
        history.time,
        history.version,
        history.size,
    ]
    links, clusters = history.links, history.clusters
    columns += [links.of_row, links.start, links.target] if links else []
    columns += [clusters.of, clusters.nearest] if clusters else []
    words = history.words
    columns += [words.of_row, words.bags.indptr, words.bags.indices, words.bags.data] if words else []
    columns += [history.weight] if history.weight is not None else []
    columns += [history.facts[name] for name in sorted(history.facts)]
    for column in columns:
        digest.update(column.tobytes())
    return digest.hexdigest() + history.change


@functools.cache
def _source_digest() -> bytes:
    """Return a digest of the code that results depend on."""
    digest = hashlib.blake2b(digest_size=16)
    home = Path(str(files("recrawl")))
    for part in _SOURCES:
        path = home / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.digest()


def _cache_path(cache: Path | None, history: str, trial: Trial) -> Path | None:
    """Return the file of a trial's result; None for a result that is not cached."""
    policy = trial.policy
    if cache is None or not (isinstance(policy, str) or POLICIES.get(policy.name) is type(policy)):
        return None
    setup = asdict(trial.setup) | {"hints": hints_key(trial.setup.hints)}
    inputs = json.dumps([history, name_of(policy), setup], sort_keys=True).encode() + _source_digest()
    own = source_of(policy) if isinstance(policy, str) and is_custom(policy) else b""
    return cache / f"{hashlib.blake2b(inputs + own, digest_size=16).hexdigest()}.json"


def _from_cache(path: Path | None) -> dict[str, Any] | None:
    try:
        result: dict[str, Any] | None = json.loads(path.read_text()) if path else None
    except (OSError, ValueError):
        return None
    return result


def _to_cache(path: Path | None, result: dict[str, Any]) -> None:
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(result), synced=False)
