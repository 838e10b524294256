"""One turn of a run: a crawl of what is new, then a cycle. `recrawl run` takes turns, and so does the service."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.choose import make_policy
from recrawl.crawl import cycles
from recrawl.crawl.cycles import Summary
from recrawl.crawl.tally import RunCounts
from recrawl.errors import UsageError
from recrawl.model import Outcome
from recrawl.repository.opening import held, load, options_of, with_bytes
from recrawl.repository.times import duration
from recrawl.settings import Settings

Progress = Callable[[RunCounts], None]
Watch = Callable[[str, int | None], AbstractContextManager[Progress]]
"""Given what is done and how many visits it may take: where the engine reports to while it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a turn is asked to do; what is left out is as the settings say."""

    period: float
    at_start: float = 1.0
    """Share of the visits that is made at the turn's start; the others are spread over the period."""
    budget: float | None = None
    bytes: str = ""
    policy: str = ""
    allow_private: bool = False
    delay: float | None = None


def unwatched(_title: str, _total: int | None) -> AbstractContextManager[Progress]:
    """For whoever does not want to watch."""
    return contextlib.nullcontext(lambda _: None)


def take(
    folder: Path,
    turn: Turn,
    stop: Callable[[], bool],
    *,
    wait: Callable[[str], bool] = lambda _: False,
    tell: Callable[[str], None] = lambda _: None,
    watch: Watch = unwatched,
) -> Summary | None:
    """Crawl what is new, then refresh; None when it was stopped before the refresh began.

    Settings are read anew, so that they can be changed between turns. Whatever was under way is resumed.
    """
    values = load(folder)
    chosen = make_policy(turn.policy or values["policy"])
    options = with_bytes(options_of(values, allow_private=turn.allow_private, delay=turn.delay), turn.bytes)
    with held(folder, "run", options, values, wait=wait, tell=tell) as repository:
        with watch("crawling", None) as progress:
            controls = cycles.Controls(stop=stop, progress=progress)
            cycles.crawl(repository, options, [seed.url for seed in values.seeds], controls, only_rested=True)
        if stop():
            return None
        before = cycles.unfinished(repository.store, "cycle")  # it keeps its budget
        asked = values["budget"] if turn.budget is None else turn.budget
        visits = cycles.budget_of(asked, repository.store) if before is None else before.budget
        release = cycles.spread(visits, turn.at_start, options.timer(), turn.period)
        with watch("visiting", visits) as progress:
            controls = cycles.Controls(stop=stop, progress=progress, release=release, period=turn.period)
            return cycles.cycle(repository, options, chosen, visits, values["seed"], controls)


def period_of(values: Settings, said: str = "") -> float:
    """Seconds from one turn's start to the next."""
    period = duration(said or values["every"])
    if period < 1:
        raise UsageError("the period of a run is at least a second")
    return period


def next_due(last: float, now: float, period: float) -> float:
    """The next multiple of the period after now, counted from the last due time.

    >>> next_due(0.0, 5.0, 10.0), next_due(0.0, 25.0, 10.0)
    (10.0, 30.0)
    """
    return last + period * max(1, int((now - last) // period) + 1)


def summary_of(summary: Summary) -> dict[str, Any]:
    """A run for machines."""
    return {
        "cycle": summary.cycle.id,
        "kind": summary.cycle.kind,
        "policy": summary.cycle.policy,
        "budget": summary.cycle.budget,
        "resumed": summary.resumed,
        "finished": summary.finished,
        **tally_of(summary.tally),
        "failures": dict(summary.tally.failures),
        "found": summary.tally.found,
        "received": summary.tally.received,
        "warnings": summary.tally.warnings,
        "seconds": round(summary.seconds, 3),
        "notes": list(summary.notes),
    }


def tally_of(tally: RunCounts) -> dict[str, int]:
    """Counts by outcome."""
    return {"visits": tally.visits, **{outcome.name.lower(): tally.outcomes[outcome] for outcome in Outcome}}
