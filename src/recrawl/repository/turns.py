"""Crawls, cycles and turns of a run: what `recrawl crawl`, `cycle`, `run` and the service do.

A turn is a crawl of new pages followed by a cycle. Settings are read at the start of each call, so that they can
change between two turns; whatever was interrupted is resumed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recrawl.choose import Policy, describe, make_policy, policy_of
from recrawl.crawl import cycles, outside
from recrawl.crawl.cycles import Summary
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.outside import MadeVisit
from recrawl.crawl.reports.summaries import summarise
from recrawl.crawl.state import limits
from recrawl.crawl.state.book_columns import delete_columns
from recrawl.crawl.tally import RunCounts
from recrawl.errors import UsageError
from recrawl.parameters import RunRules
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.repository.marks import due_pages
from recrawl.repository.opening import Notify, held, load, options_of, silent, with_bytes
from recrawl.repository.reader import Reader
from recrawl.repository.results.runs import Report, counts
from recrawl.repository.running import shown
from recrawl.settings import Settings
from recrawl.times import next_allowed

Tally = RunCounts
"""Counts of a run, as the callbacks that follow it get them."""
CountsCallback = Callable[[Tally], None]
Watch = Callable[[str, int | None], AbstractContextManager[CountsCallback]]
"""Given a title and the visits that may be made: a context with the callback for progress."""

AT_START = {"start": 1.0, "most-at-start": 0.75, "even": 0.0}
"""Synchronisation points (spec P1): the share of a cycle's visits made at its start; the rest is spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Options of a turn; what is left out follows the settings."""

    period: float
    """Seconds from one turn's start to the next."""
    at_start: float = 1.0
    """Share of the visits made at the turn's start; the others are spread over the period."""
    budget: float | None = None
    bytes: str = ""
    policy: str = ""
    rules: RunRules = field(default_factory=RunRules)
    requests_only: bool = False
    """Visit only pages that were requested or whose interval is over."""
    crawl_only: bool = False
    """Crawl new pages, and make no cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """How a caller follows and ends a run."""

    stop: Callable[[], bool] = lambda: False
    wait: Callable[[str], bool] = lambda _: False
    """Called with the holder of the lock between two tries; False gives up."""
    notify: Notify = silent
    watch: Watch = lambda _title, _total: contextlib.nullcontext(lambda _: None)


@contextlib.contextmanager
def watched(folder: Path, calls: Callbacks, title: str, total: int | None) -> Iterator[CountsCallback]:
    """The callback for progress, which also keeps what `Repository.running` reads up to date."""
    kind = {"crawling": "crawl", "rechecking": "recheck", "recording": "record"}.get(title, "cycle")
    with calls.watch(title, total) as inner, shown(folder, kind, total, inner) as progress:
        yield progress


def recheck(folder: Path, values: Settings, options: CrawlOptions, calls: Callbacks) -> Report | None:
    """Visit the pages that were requested or whose interval is over; None if there are none."""
    with held(folder, "recheck", options, values, wait=calls.wait, tell=calls.notify) as storage:
        summary = recheck_due(storage, values, options, calls)
    return None if summary is None else report_of(summary)


def recheck_due(storage: Storage, values: Settings, options: CrawlOptions, calls: Callbacks) -> Summary | None:
    """Visit the pages of an open repository that were requested or whose interval is over; None if there are none."""
    pages = due_pages(storage, values, options.clock())
    if not pages or calls.stop():
        return None
    with watched(storage.folder, calls, "rechecking", len(pages)) as progress:
        summary = cycles.recheck(storage, options, pages, cycles.Controls(stop=calls.stop, progress=progress))
    if summary.finished:
        storage.store.marks.fulfil(pages)
    return summary


def with_room(folder: Path, values: Settings, options: CrawlOptions, calls: Callbacks) -> Callbacks:
    """The same, ending when the repository has reached the setting `disk`; by then it was thinned out."""
    if values["disk"] == "0":
        return calls
    from recrawl.repository.room import within_limit  # lazy: few repositories have a limit

    return within_limit(folder, values, options, calls)


def crawl(
    folder: Path, values: Settings, options: CrawlOptions, calls: Callbacks, *, seconds: float = float("inf")
) -> Report:
    """Discover and download new pages."""
    with Storage(folder) as storage:
        if not values.seeds and not len(storage.store.pages.never_downloaded()["id"]):
            raise UsageError("no site was added yet; add one with 'recrawl add URL'")
    calls = with_room(folder, values, options, calls)
    with (
        held(folder, "crawl", options, values, wait=calls.wait, tell=calls.notify) as storage,
        watched(folder, calls, "crawling", None) as progress,
    ):
        controls = cycles.Controls(stop=calls.stop, progress=progress, seconds=seconds)
        return report_of(cycles.crawl(storage, options, [seed.url for seed in values.seeds], controls))


def cycle(
    folder: Path,
    values: Settings,
    options: CrawlOptions,
    calls: Callbacks,
    *,
    policy: str | Policy | None = None,
    budget: float | None = None,
    seconds: float = float("inf"),
) -> Report:
    """Refresh: one cycle of the policy within the budget, both of the settings by default."""
    chosen = policy_of(policy or values["policy"])
    calls = with_room(folder, values, options, calls)
    with held(folder, "cycle", options, values, wait=calls.wait, tell=calls.notify) as storage:
        recheck_due(storage, values, options, calls)
        visits = limits.budget_of(values["budget"] if budget is None else budget, storage.store, options)
        before = cycles.unfinished(storage.store, "cycle")
        if before is not None:
            check_resumable(before.id, before.policy)
            calls.notify(f"resuming cycle {before.id} ({before.policy}, budget {before.budget:,})")
            if policy and before.policy != describe(chosen):
                calls.notify("it keeps its policy; the one given here applies from the next cycle on")
        with watched(folder, calls, "visiting", _left(storage, before, visits)) as progress:
            controls = cycles.Controls(stop=calls.stop, progress=progress, seconds=seconds)
            return report_of(cycles.cycle(storage, options, chosen, visits, values["seed"], controls))


def record(
    folder: Path, values: Settings, options: CrawlOptions, calls: Callbacks, visits: Iterable[MadeVisit]
) -> Report:
    """Record visits that another program has made."""
    with held(folder, "record", options, values, wait=calls.wait, tell=calls.notify) as storage:
        with watched(folder, calls, "recording", None) as progress:
            summary = outside.record(storage, options, visits, cycles.Controls(stop=calls.stop, progress=progress))
        return report_of(summary)


def take(
    folder: Path,
    turn: Turn,
    stop: Callable[[], bool],
    *,
    wait: Callable[[str], bool] = lambda _: False,
    tell: Notify = silent,
    watch: Watch | None = None,
    clocks: tuple[Callable[[], float], Callable[[], float]] | None = None,
) -> Summary | None:
    """One turn: crawl new pages, then refresh; None when stopped before the cycle began."""
    calls = Callbacks(stop=stop, wait=wait, notify=tell)
    calls = calls if watch is None else replace(calls, watch=watch)
    values = load(folder)
    chosen = policy_of(turn.policy or values["policy"])
    clock: dict[str, Any] = {} if clocks is None else {"clock": clocks[0], "timer": clocks[1]}
    options = with_bytes(options_of(values, **turn.rules, **clock), turn.bytes)
    calls = with_room(folder, values, options, calls)
    stop = calls.stop
    with held(folder, "run", options, values, wait=wait, tell=tell) as storage:
        rechecked = recheck_due(storage, values, options, calls)
        if turn.requests_only:
            return rechecked
        with watched(folder, calls, "crawling", None) as progress:
            controls = cycles.Controls(stop=stop, progress=progress)
            seeds = [seed.url for seed in values.seeds]
            crawled = cycles.crawl(storage, options, seeds, controls, skip_recent_failures=True)
        if turn.crawl_only:
            return crawled
        if stop():
            return None
        before = cycles.unfinished(storage.store, "cycle")  # it keeps its policy and its budget
        if before is not None:
            check_resumable(before.id, before.policy)
        budget = values["budget"] if turn.budget is None else turn.budget
        visits = limits.budget_of(budget, storage.store, options) if before is None else before.budget
        release = cycles.spread(visits, turn.at_start, options.timer(), turn.period)
        with watched(folder, calls, "visiting", _left(storage, before, visits)) as progress:
            controls = cycles.Controls(stop=stop, progress=progress, release=release, period=turn.period)
            return cycles.cycle(storage, options, chosen, visits, values["seed"], controls)


def _left(storage: Storage, before: CycleRow | None, visits: int) -> int:
    """The visits that a cycle may still make; `before` is the interrupted cycle that it resumes, if any."""
    return visits if before is None else max(0, before.budget - len(storage.store.visits.of_cycle(before)["page"]))


def check_turn(storage: Storage, values: Settings, budget: float | None) -> None:
    """Raise `UsageError` for what would fail at the first turn."""
    if not values.seeds and not storage.store.pages.any():
        raise UsageError("no site was added yet; add one with 'recrawl add URL'")
    if budget is not None:
        limits.budget_of(budget, storage.store, options_of(values))


def visits_of(repo: Reader, values: Settings) -> int:
    """The budget of the settings as a number of visits."""
    return limits.budget_of(values["budget"], repo.storage.store, repo.options())


def check_resumable(cycle: int, policy: str) -> None:
    """Raise `UsageError` when the policy of an interrupted cycle cannot be built."""
    try:
        make_policy(policy)
    except UsageError as error:
        raise UsageError(
            f"cycle {cycle} was interrupted and its policy cannot be built here: {error}. "
            "Run it where the policy can be imported, or give the cycle up with Repository.abandon_cycle()"
        ) from error


def abandon(folder: Path, values: Settings, options: CrawlOptions, calls: Callbacks) -> int | None:
    """Close an interrupted cycle without making the rest of its visits; returns its number, None without one."""
    with held(folder, "cycle", options, values, wait=calls.wait, tell=calls.notify) as storage:
        return abandon_cycle(storage, options.clock())


def abandon_cycle(storage: Storage, now: float) -> int | None:
    """Close the interrupted cycle of an open repository; returns its number, None without one."""
    row = cycles.unfinished(storage.store, "cycle")
    if row is None:
        return None
    storage.store.cycles.finish(row.id, now)
    summarise(storage.store, row, now)
    delete_columns(storage)
    limits.delete_columns(storage)
    return row.id


def share_at_start(sync: str) -> float:
    """The share of a cycle's visits made at its start, for `--sync`."""
    if sync not in AT_START:
        raise UsageError(f"invalid sync '{sync}'; use {', '.join(AT_START)}")
    return AT_START[sync]


def allowed_from(values: Settings, at: float) -> float:
    """The first time from `at` on at which the settings `quiet_hours` and `weekdays` let a turn start."""
    return next_allowed(at, values["quiet_hours"], values["weekdays"])


def next_due(last: float, now: float, period: float) -> float:
    """The next multiple of the period after now, counted from a due time; from 0, those of the clock in UTC.

    >>> next_due(0.0, 5.0, 10.0), next_due(0.0, 25.0, 10.0)
    (10.0, 30.0)
    """
    return last + period * max(1, int((now - last) // period) + 1)


def report_of(summary: Summary) -> Report:
    """A summary of the crawler as a value of the API."""
    row, tally = summary.cycle, summary.tally
    return Report(
        cycle=row.id,
        kind=row.kind,
        policy=row.policy,
        budget=row.budget,
        resumed=summary.resumed,
        finished=summary.finished,
        outcomes=tally.outcomes.copy(),
        failures=tally.failures.copy(),
        left=tally.left.copy(),
        found=tally.found,
        received=tally.received,
        warnings=tuple(tally.warnings),
        seconds=summary.seconds,
        notes=summary.notes,
        work=summary.work,
        requisites=tally.requisites,
        requisite_bytes=tally.requisite_bytes,
    )


def summary_of(summary: Summary) -> dict[str, Any]:
    """A run as JSON."""
    return report_of(summary).as_dict()


def tally_of(tally: RunCounts) -> dict[str, int]:
    """Visits, and visits by outcome."""
    return counts(tally.outcomes, tally.failures)
