"""Many replays in one go: every policy with every budget, cycle and seed, on all cores; each result is kept.

A result is a file in the cache, named by all that it depends on: the rows of the history, the setup, the policy's text
and the source of every module that takes part. What was measured once with the same code is not measured again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from numpy.typing import NDArray

from recrawl.choose import Policy, describe, make_policy
from recrawl.choose.custom import is_custom, source_of
from recrawl.lab.histories.history import History
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.lab.replays.clairvoyant_bound import most
from recrawl.lab.replays.replay import Setup, check, replay

_PARTS = ("choose", "learn", "lab", "book.py", "columns.py", "loop.py", "model.py")
"""The sources that a result depends on."""
_MEANS = (
    "found",
    "visits",
    "change_ratio",
    "weighted_change_ratio",
    "success_rate",
    "recall",
    "freshness",
    "weighted_freshness",
    "age_days",
    "delay_days",
    "share_of_clairvoyant",
    "failed",
    "bytes",
    "seconds",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One replay to be made."""

    policy: str
    setup: Setup


def policy_for(text: str, history: History, setup: Setup) -> Policy:
    """The policy that a text names; the clairvoyant is told what will happen."""
    if text.strip() == Clairvoyant.name:
        return Clairvoyant(history, setup.budget, setup.cycle, setup.cycles)
    return make_policy(text)


def needs_of(texts: Iterable[str]) -> frozenset[str]:
    """What policies need of an archive, all together."""
    plain = (text for text in texts if text.strip() != Clairvoyant.name)
    return frozenset[str]().union(*(make_policy(text).needs for text in plain))


def name_of(text: str) -> str:
    """The text as we write it, or a clear error."""
    return text.strip() if text.strip() == Clairvoyant.name else describe(make_policy(text))


def run_all(
    history: History,
    trials: Sequence[Trial],
    timer: Callable[[], float],
    *,
    cache: Path | None = None,
    workers: int | None = None,
    progress: Callable[[Trial], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """The result of every trial, in their order."""
    for trial in trials:
        if name_of(trial.policy) != Clairvoyant.name:
            check(history, make_policy(trial.policy), trial.setup)
    seal = _seal(history) if cache else ""
    names = [cache / f"{_key(seal, trial)}.json" if cache else None for trial in trials]
    results = {place: kept for place, name in enumerate(names) if (kept := _kept(name)) is not None}
    for place in results:
        progress(trials[place])
    todo = [place for place in range(len(trials)) if place not in results]
    for place, result in _made(history, trials, todo, timer, workers or os.cpu_count() or 1):
        results[place] = result
        _keep(names[place], result)
        progress(trials[place])
    return [results[place] for place in range(len(trials))]


def _made(
    history: History, trials: Sequence[Trial], todo: list[int], timer: Callable[[], float], workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    if workers == 1 or len(todo) <= 1:
        yield from ((place, run_one(history, trials[place], timer)) for place in todo)
        return
    # The history is handed over when a worker starts, not with every task. Forking would save that, but is not safe
    # once libraries have started threads.
    context = get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(todo)), context, _Worker.start, (history, timer)) as pool:
        pending = {pool.submit(_Worker.run, trials[place]): place for place in todo}
        try:
            for done in as_completed(pending):
                yield pending[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


class _Worker:
    """What a worker process keeps from task to task."""

    history: History
    timer: Callable[[], float]

    @classmethod
    def start(cls, history: History, timer: Callable[[], float]) -> None:
        cls.history, cls.timer = history, staticmethod(timer)

    @classmethod
    def run(cls, trial: Trial) -> dict[str, Any]:
        return run_one(cls.history, trial, cls.timer)


def run_one(history: History, trial: Trial, timer: Callable[[], float]) -> dict[str, Any]:
    """One replay and its figures."""
    setup = trial.setup
    policy = policy_for(trial.policy, history, setup)
    begun = timer()
    figures = replay(history, policy, setup).summary()
    seconds = timer() - begun
    bound, there = most(history, *setup.moments(len(history)))
    return {
        "policy": name_of(trial.policy),
        "pages": len(history),
        "sites": len(history.sites),
        "change": history.change,
        "budget": setup.budget,
        "cycle_days": setup.cycle / 86400.0,
        "cycles": setup.cycles,
        "seed": setup.seed,
        **{key: _number(value) for key, value in figures.items()},
        "recall": figures["found"] / there if there else None,
        "share_of_clairvoyant": figures["found"] / bound if bound else None,
        "seconds": round(seconds, 4),
    }


def over_seeds(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Results that differ by their seed only, as one: means, and the spread (standard deviation) over seeds."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for result in results:
        same = tuple(result[key] for key in ("policy", "budget", "cycle_days", "cycles", "change"))
        groups.setdefault(same, []).append(result)
    return [_one(group) for group in groups.values()]


def _one(group: list[dict[str, Any]]) -> dict[str, Any]:
    if len(group) == 1:
        return group[0]
    whole = {key: value for key, value in group[0].items() if key != "seed"}
    spread = {}
    for key in _MEANS:
        values = [result[key] for result in group if result[key] is not None]
        whole[key] = fmean(values) if values else None
        spread[key] = stdev(values) if len(values) > 1 else None
    by_cycle = zip(*(result["change_ratio_by_cycle"] for result in group), strict=True)
    whole["change_ratio_by_cycle"] = [None if None in ratios else fmean(ratios) for ratios in by_cycle]
    return {**whole, "seeds": [result["seed"] for result in group], "spread": spread}


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _seal(history: History) -> str:
    """A name for the history's content."""
    seal = hashlib.blake2b(digest_size=16)
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
    columns += [history.weight] if history.weight is not None else []
    for column in columns:
        seal.update(column.tobytes())
    return seal.hexdigest() + history.change


@functools.cache
def _sources() -> bytes:
    """A digest of the code that results come from."""
    seal = hashlib.blake2b(digest_size=16)
    home = Path(str(files("recrawl")))
    for part in _PARTS:
        path = home / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            seal.update(file.read_bytes())
    return seal.digest()


def _key(history: str, trial: Trial) -> str:
    said = json.dumps([history, name_of(trial.policy), asdict(trial.setup)], sort_keys=True)
    own = source_of(trial.policy) if is_custom(trial.policy) else b""
    return hashlib.blake2b(said.encode() + _sources() + own, digest_size=16).hexdigest()


def _kept(name: Path | None) -> dict[str, Any] | None:
    try:
        kept: dict[str, Any] | None = json.loads(name.read_text()) if name else None
    except (OSError, ValueError):
        return None
    return kept


def _keep(name: Path | None, result: dict[str, Any]) -> None:
    if name is None:
        return
    name.parent.mkdir(parents=True, exist_ok=True)
    part = name.with_name(f"{name.stem}.{os.getpid()}.part")
    part.write_text(json.dumps(result))
    part.replace(name)
