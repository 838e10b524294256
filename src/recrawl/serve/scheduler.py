"""The scheduler: starts a turn (a crawl of new pages, then a cycle) at each multiple of the cycle period.

State that survives a restart is in the store's `meta` table: whether the scheduler is paused, and the base time from
which periods are counted. The base time advances only when a turn finishes, so an interrupted turn is due immediately
after a restart and its cycle resumes. After a turn without any site the next one is due as soon as a site is added.
Settings are read before each turn. Missed periods are skipped.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recrawl.cluster.opening import open_repository
from recrawl.errors import RecrawlError
from recrawl.repository.marks import interval
from recrawl.repository.opening import TEMPORARY_ERRORS, load
from recrawl.repository.reports.seeds import begun_seeds
from recrawl.repository.turns import allowed_from, next_due
from recrawl.serve.turn_process import STOP_SECONDS, Message, TurnRunner
from recrawl.settings import Seed, Settings, period_of
from recrawl.times import elapsed

_CLOCK_CHECK = 1.0
"""Seconds between clock checks: the machine may sleep, and the clock may be adjusted."""
_FIRST_RETRY = 15.0
_LAST_RETRY = 3600.0
_MARGIN = 5.0
"""Seconds that the thread has after the end of the crawling process."""


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """The scheduler's current state; the field names are JSON keys of the API."""

    enabled: bool = True
    """False if scheduling is off for this run of the service."""
    paused: bool = False
    running: bool = False
    due: float | None = None
    """When the next turn starts: a cycle, or visits to pages with an interval of their own."""
    cycle_due: float | None = None
    """When the next cycle starts."""
    began: float | None = None
    """When the running turn started."""
    progress: Message | None = None
    """Latest progress message of the running turn."""
    last: Message | None = None
    """Summary of the last turn since the service started."""
    error: str = ""
    """Why the last turn failed; empty if it succeeded."""
    failures: int = 0
    """Consecutive failed turns."""


class Scheduler:
    """Runs turns from its own thread; every method may be called from any thread."""

    def __init__(
        self,
        folder: Path,
        runner: TurnRunner,
        clock: Callable[[], float],
        *,
        enabled: bool = True,
        publish: Callable[[str, Message], None] = lambda _kind, _data: None,
    ) -> None:
        self._folder = folder
        self._runner = runner
        self._clock = clock
        self._publish = publish
        self._changed = threading.Condition()
        self._ending = False
        self._halt = threading.Event()
        """Set when the running turn must stop; stop() is repeated on its next message, in case it had not started."""
        self._requested: Message | None = None
        self._retry = 0.0
        self._base: float | None = None
        self._interrupted: Message | None = None
        """A turn that was ordered and stopped for the crawl of a new site: it goes on after it."""
        self._begun: frozenset[Seed] = frozenset()
        """The seeds whose crawl has begun, by what decides which pages are theirs."""
        self._rechecked = 0.0
        """When pages with an interval of their own were last looked at."""
        self._status = SchedulerStatus(enabled=enabled)
        self._thread = threading.Thread(target=self._loop, name="scheduler", daemon=True)

    def start(self) -> None:
        """Start the thread from the saved state."""
        self._base = self._read_meta("serve:base")
        self._status = replace(self._status, paused=bool(self._read_meta("serve:paused")))
        with contextlib.suppress(RecrawlError), open_repository(self._folder) as repository:
            self._begun = frozenset(map(_scope, begun_seeds(repository, load(self._folder).seeds)))
        self._thread.start()

    def stop(self) -> None:
        """Stop the running turn cleanly and wait for it; start no more turns."""
        with self._changed:
            self._ending = True
            self._halt.set()
            self._changed.notify_all()
        self._runner.stop()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS + _MARGIN)

    def pause(self) -> None:
        """Start no turns until `resume`; the running turn stops and is continued later."""
        self._write_meta("serve:paused", 1)
        self._requested = None
        self._halt.set()
        self._update(paused=True)
        self._runner.stop()

    def resume(self) -> None:
        """Start turns again."""
        self._write_meta("serve:paused", 0)
        self._retry = 0.0
        self._update(paused=False, error="", failures=0)

    def run_requests(self) -> bool:
        """Visit requested pages now; return False if a turn is running: they are visited right after it."""
        order: Message = {"requests": True}
        with self._changed:
            if self._status.running and self._requested is None:
                self._requested = order
        return self._order(order)

    def run_now(self, budget: float | None = None, policy: str = "", bytes_: str = "") -> bool:
        """Start a turn now, even when paused; return False if one is running."""
        return self._order({"budget": budget, "policy": policy, "bytes": bytes_})

    def _order(self, order: Message) -> bool:
        with self._changed:
            if self._status.running:
                return False
            self._requested = order
            self._changed.notify_all()
        return True

    def wake(self) -> None:
        """Recompute when the next turn is due, after settings changed."""
        self._retry = 0.0
        self._make_way()
        with self._changed:
            self._changed.notify_all()

    def status(self) -> SchedulerStatus:
        """Return the current state."""
        with self._changed:
            status = self._status
        cycle_due = self._due(status, cycles_only=True)
        return replace(status, due=status.due if status.running else self._due(status), cycle_due=cycle_due)

    # -- the thread -------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not self._ending and not self._ready():
                    self._changed.wait(_CLOCK_CHECK)
                if self._ending:
                    return
                self._halt.clear()
                order = self._next_order()
                self._rechecked = self._clock()
                self._status = replace(self._status, running=True, began=self._clock(), progress=None)
            self._run_turn(order)

    def _next_order(self) -> Message:
        """What the turn that begins now is to do."""
        order, self._requested = self._requested, None
        if order is not None:
            return order
        if self._has_new_sites() and not self._regular_due():  # a whole turn begins with the crawl
            return {"crawl": True}
        order, self._interrupted = self._interrupted, None
        return order if order is not None else {} if self._regular_due() else {"requests": True}

    def _has_new_sites(self) -> bool:
        """Whether a site was added, or got other rules, whose crawl has not begun."""
        try:
            return any(_scope(seed) not in self._begun for seed in load(self._folder).seeds)
        except RecrawlError:
            return False  # the next turn will fail and report it

    def _make_way(self) -> None:
        """Stop the turn under way for a site that was added meanwhile, unless no turn may start now."""
        status, now = self._status, self._clock()
        if not status.running or status.paused or not status.enabled or not self._has_new_sites():
            return
        with contextlib.suppress(RecrawlError):
            if allowed_from(load(self._folder), now) <= now:
                self._halt.set()
                self._runner.stop()

    def _ready(self) -> bool:
        if self._requested is not None:
            return True
        due = self._due(self._status)
        return due is not None and due <= self._clock()

    def _due(self, status: SchedulerStatus, *, cycles_only: bool = False) -> float | None:
        """Return when the next turn starts; None if paused or disabled."""
        if status.paused or not status.enabled:
            return None
        now = self._clock()
        try:
            values = load(self._folder)
            retry = self._retry if elapsed(self._retry, now, ahead=_LAST_RETRY) < math.inf else 0.0
            due = self._next_regular(values, now)
            due = due if cycles_only else min(due, self._interval_due(values, now))
            if not cycles_only and (self._interrupted is not None or self._has_new_sites()):
                due = now
            due = max(due, retry)
            later = allowed_from(values, max(due, now))
        except RecrawlError:
            return max(now if self._base is None else self._base, self._retry)  # the turn will fail and report it
        return later if later > max(due, now) else due

    def _interval_due(self, values: Settings, now: float) -> float:
        """Return when pages with an interval of their own are looked at again; infinity without one."""
        shortest = min((interval(seed.every) for seed in values.seeds if seed.every), default=math.inf)
        known = self._rechecked and elapsed(self._rechecked, now) < math.inf
        return self._rechecked + shortest if known or shortest == math.inf else now

    def _regular_due(self) -> bool:
        """Return whether a whole turn is due, not only visits to pages with an interval of their own."""
        now = self._clock()
        try:
            return self._next_regular(load(self._folder), now) <= now
        except RecrawlError:
            return True  # the turn will fail and report it

    def _next_regular(self, values: Settings, now: float) -> float:
        """Return when the next whole turn is due."""
        if self._base is None or elapsed(self._base, now) == math.inf:
            return now
        return self._base + period_of(values)

    def _run_turn(self, order: Message) -> None:
        started, begun = self._clock(), self._begun
        try:
            values = load(self._folder)
            period = period_of(values)
            if not order.get("requests"):
                self._begun = frozenset(map(_scope, values.seeds))
            self._publish("turn", {"began": started})
            result = self._runner.run({"period": period, **order}, self._on_message)
        except (RecrawlError, OSError) as error:
            self._begun = begun
            self._failed(str(error))
            return
        if result.error:
            self._begun = begun
            self._failed(result.error)
            return
        summary = result.summary or {}
        finished = bool(summary.get("finished"))
        if finished and not {"requests", "crawl"} & set(order):
            base = started if self._base is None or elapsed(self._base, started) == math.inf else self._base
            self._base = next_due(base, self._clock(), period) - period
            with contextlib.suppress(*TEMPORARY_ERRORS):  # then the turn is only due again after a restart
                self._write_meta("serve:base", self._base)
        elif not finished and order and not self._status.paused:
            self._interrupted = order
        self._retry = 0.0
        self._update(running=False, began=None, progress=None, last=result.summary, error="", failures=0)
        self._publish("ended", {"summary": result.summary, "finished": finished})

    def _on_message(self, message: Message) -> None:
        with self._changed:
            self._status = replace(self._status, progress=message)
        if self._halt.is_set():
            self._runner.stop()
        self._make_way()
        self._publish("progress", message)

    def _failed(self, error: str) -> None:
        failures = self._status.failures + 1
        self._retry = self._clock() + min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(failures, 20))
        self._update(running=False, began=None, progress=None, error=error, failures=failures)
        self._publish("failed", {"error": error, "failures": failures})

    def _update(self, **changes: Any) -> None:
        with self._changed:
            self._status = replace(self._status, **changes)
            self._changed.notify_all()

    def _read_meta(self, name: str) -> Any:
        with open_repository(self._folder) as repository:
            return repository.recall(name)

    def _write_meta(self, name: str, value: float) -> None:
        with open_repository(self._folder) as repository:
            repository.remember(name, value)


def _scope(seed: Seed) -> Seed:
    """A seed with those of its rules alone that decide which pages are crawled."""
    return Seed(
        seed.url,
        depth=seed.depth,
        limit=seed.limit,
        include=seed.include,
        exclude=seed.exclude,
        allow_private=seed.allow_private,
    )
