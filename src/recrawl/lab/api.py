"""The lab for programs: replay one policy over a history, or compare several.

Both functions run the same replays as `recrawl lab run` and `recrawl lab compare` and return the same figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from recrawl.choose import Policy
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.lab.histories.weights import with_importance
from recrawl.lab.replays.runner import Trial, over_seeds, run_all, run_one, setup_for, trials_of
from recrawl.learn.value import kind_of
from recrawl.times import duration


class ReplayOptions(TypedDict, total=False):
    """Keyword arguments that `replay` and `compare` share."""

    hints: str | None
    """A simulated sitemap, such as `sitemap:honest` or `sitemap:noisy:0.2,0.5`; none by default."""
    bytes: float
    """Bytes that a cycle may download; 0 (the default) is no limit."""
    at_start: float
    """Share of a cycle's visits made at its start, the rest spread over the cycle; default 1."""
    failures: float
    """Share of visits that fail; default 0."""
    late: float
    """Share of a batch whose outcomes come with a later batch, for policies that do not wait for them; default 0."""
    discover: str
    """How pages born later become known: `births` (the default) or `links`."""
    importance: str
    """Page weights for policies: `even` (the default), `pagerank`, `file:PATH` or `clicks:PATH`."""
    cost: str
    """Cost of a visit for policies: `visit` (all equal, the default) or `bytes`."""
    copies: bool
    """Whether copies are known and left out until they are due; default False."""
    site_share: str
    """What one site may take of a cycle: `auto` (others keep a fair share, the default), `equal`, or the largest share;
    1 is no limit."""
    shards: int
    """Shards into which the pages are divided by site, default 1; a policy that cannot be split runs on one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """The figures of one replay, as in `recrawl lab run --json`; None where a figure is undefined."""

    policy: str
    pages: int
    sites: int
    change: str
    budget: int
    cycle_days: float
    cycles: int
    seed: int
    shards: int
    """Shards on which the policy ran."""
    visits: int
    found: int
    """Updates found: new, changed and removed pages."""
    distinct: int | None
    """The same counted once for each text of a site; None unless the change is `text` or `raw`."""
    honest_visits: int | None
    """Visits to the sites beside an adversary, if there is one; freshness and age are theirs."""
    honest_found: int | None
    change_ratio: float | None
    """Updates found per visit, mean over cycles."""
    change_ratio_by_cycle: list[float | None]
    weighted_change_ratio: float | None
    """The change ratio with each page counted by its weight."""
    success_rate: float | None
    """Updates found per visit over the whole replay."""
    freshness: float | None
    weighted_freshness: float | None
    embarrassment: float | None
    """Share of the users' requests, by page weight, that would get an outdated copy; None without `importance`."""
    age_days: float | None
    delay_days: float | None
    """Mean days from a change to the visit that finds it; only changes that were found count."""
    delay_days_of_all: float | None
    """The same over all changes; those not found by the end count up to then."""
    new_pages: int
    """Pages born during the replay."""
    discovery_days: float | None
    """Mean days from the birth of such a page to its first visit, its removal, or the end of the replay."""
    needless: int
    """Visits that found nothing new (Q fig. 1.3); failures do not count."""
    rate_accuracy: float | None
    """Accuracy of the estimated change rates of sites: 100 - |real - estimated|, in percentage points."""
    failed: int
    bytes: int
    busiest_visits_per_hour: float
    """Visits per hour to the site with most visits, over the whole replay."""
    busiest_bytes_per_hour: float
    load: list[dict[str, Any]]
    """By site, the busiest first: visits, found, bytes, visits_per_hour, bytes_per_hour."""
    recall: float | None
    """Share of all updates that were found."""
    share_of_clairvoyant: float | None
    """Updates found, as a share of the most that any policy could find with this budget."""
    seconds: float
    """Run time of the replay."""
    work: dict[str, int]
    """What the policy reports of its computing, such as machines fitted; empty for most policies."""

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as a dictionary that JSON can hold."""
        return asdict(self)


def replay(
    history: History,
    policy: str | Policy = "shock",
    *,
    budget: float = 0.01,
    cycle: str | float = "1d",
    cycles: int | None = None,
    seed: int = 1,
    **options: Unpack[ReplayOptions],
) -> ReplayResult:
    """Replay a history under a policy.

    Parameters
    ----------
    history
        The pages' versions over time, for example `History.read("sites/")`.
    policy
        A policy's text such as `"sampling(d=1)"`, or a policy object; the replay works on a copy of the object.
    budget
        Visits per cycle; a number between 0 and 1 is a share of the pages.
    cycle
        Length of a cycle: `"6h"`, `"1d"`, or seconds.
    cycles
        Number of cycles; by default as many as the history lasts.
    seed
        Random seed; the same seed gives the same choices.
    options
        See `ReplayOptions`.
    """
    history, settings = _prepared(history, options)
    setup = setup_for(history, budget, _seconds(cycle), cycles, seed, **settings)
    return ReplayResult(**run_one(history, Trial(policy, setup), time.perf_counter))


def compare(
    history: History,
    policies: Sequence[str | Policy],
    *,
    budgets: Sequence[float] = (0.0025, 0.01, 0.04),
    cycle: str | float | Sequence[str | float] = "1d",
    cycles: int | None = None,
    seeds: int | Sequence[int] = 3,
    workers: int = 1,
    cache: str | Path | None = None,
    **options: Unpack[ReplayOptions],
) -> list[dict[str, Any]]:
    """Replay a history under every policy, budget and cycle length; return one row each, as `recrawl lab compare`.

    A row holds the figures of `ReplayResult`, averaged over the seeds, and their standard deviations under `spread`.

    Parameters
    ----------
    policies, budgets, cycle, cycles
        As for `replay`, each repeatable except `cycles`.
    seeds
        The seeds, or their number.
    workers
        Processes. A script that asks for more than one needs the guard `if __name__ == "__main__":`. A policy object
        that cannot be pickled is replayed in this process.
    cache
        Folder in which results are kept, so that an equal trial is not run again.
    options
        See `ReplayOptions`.
    """
    history, settings = _prepared(history, options)
    lengths = [_seconds(length) for length in ([cycle] if isinstance(cycle, str | int | float) else cycle)]
    numbers = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    trials = trials_of(history, policies, budgets, lengths, cycles, numbers, **settings)
    folder = None if cache is None else Path(cache)
    return over_seeds(run_all(history, trials, time.perf_counter, cache=folder, workers=workers))


def _seconds(cycle: str | float) -> float:
    return duration(cycle) if isinstance(cycle, str) else float(cycle)


def _prepared(history: History, options: ReplayOptions) -> tuple[History, dict[str, Any]]:
    """The history with its page weights, and the fields of a `Setup`."""
    unknown = options.keys() - ReplayOptions.__annotations__.keys()
    if unknown:
        raise UsageError(f"unknown option {min(unknown)}; use {', '.join(ReplayOptions.__annotations__)}")
    settings: dict[str, Any] = dict(options)
    importance = settings.pop("importance", "even")
    settings["hints"] = settings.get("hints") or ""
    history, _ = with_importance(history, importance)
    return history, {**settings, "weighted": kind_of(importance)[0] != "even"}
