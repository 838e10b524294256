"""The scheduler: a turn at every multiple of the period by the clock, until it is paused or stopped.

What it must know after a restart lies in the store's `meta`: whether it is paused, and the time that the periods are
counted from. The time moves on only when a turn has come to its end; so a turn that was cut short, however, is due at
once when the service starts again, and the engine goes on with the cycle where it was. Settings are read before each
turn: policy, budget and period can be changed at any time. Periods that were missed are not made up for.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recrawl.errors import RecrawlError
from recrawl.record.store import Store
from recrawl.repository.opening import load
from recrawl.repository.turns import next_due, period_of
from recrawl.serve.turn_process import Message, Runner

_LOOK = 1.0
"""Seconds after which the clock is looked at again, for a machine may sleep and clocks may be turned."""
_FIRST_RETRY = 15.0
_LAST_RETRY = 3600.0


@dataclass(frozen=True, slots=True)
class Status:
    """What the scheduler does just now."""

    enabled: bool = True
    """False: it was switched off for this run of the service."""
    paused: bool = False
    running: bool = False
    due: float | None = None
    """When the next turn begins."""
    began: float | None = None
    """When the turn that is being taken began."""
    progress: Message | None = None
    """What the turn told last."""
    last: Message | None = None
    """The summary of the last turn of this run of the service."""
    error: str = ""
    """Why the last turn failed, empty when it did not."""
    failures: int = 0
    """Turns in a row that failed."""


class Scheduler:
    """Takes turns in a thread of its own; every method may be called from any thread."""

    def __init__(
        self,
        folder: Path,
        runner: Runner,
        clock: Callable[[], float],
        *,
        enabled: bool = True,
        tell: Callable[[str, Message], None] = lambda _kind, _data: None,
    ) -> None:
        self._folder = folder
        self._runner = runner
        self._clock = clock
        self._tell = tell
        self._changed = threading.Condition()
        self._ending = False
        self._halt = threading.Event()
        """Set when the turn under way is to end; it may have to be told again, if it had hardly begun."""
        self._asked: Message | None = None
        self._retry = 0.0
        self._base: float | None = None
        self._status = Status(enabled=enabled)
        self._thread = threading.Thread(target=self._loop, name="scheduler", daemon=True)

    def start(self) -> None:
        """Begin; where it was left off."""
        self._base = self._kept("serve:base")
        self._status = replace(self._status, paused=bool(self._kept("serve:paused")))
        self._thread.start()

    def stop(self) -> None:
        """End the turn cleanly, and take no more. Returns when that is done."""
        with self._changed:
            self._ending = True
            self._halt.set()
            self._changed.notify_all()
        self._runner.stop()
        if self._thread.is_alive():
            self._thread.join()

    def pause(self) -> None:
        """Take no more turns until `resume`; the one under way is stopped, and gone on with later."""
        self._keep("serve:paused", 1)
        self._halt.set()
        self._update(paused=True)
        self._runner.stop()

    def resume(self) -> None:
        """Take turns again."""
        self._keep("serve:paused", 0)
        self._retry = 0.0
        self._update(paused=False, error="", failures=0)

    def run_now(self, budget: float | None = None, policy: str = "", bytes_: str = "") -> bool:
        """Take a turn as soon as may be, even when paused; False when one is being taken already."""
        with self._changed:
            if self._status.running:
                return False
            self._asked = {"budget": budget, "policy": policy, "bytes": bytes_}
            self._changed.notify_all()
        return True

    def wake(self) -> None:
        """Settings have changed: think again about when the next turn is due."""
        self._retry = 0.0
        with self._changed:
            self._changed.notify_all()

    def status(self) -> Status:
        """What it does just now."""
        with self._changed:
            status = self._status
        return status if status.running else replace(status, due=self._due(status))

    # -- the thread -------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not self._ending and not self._ready():
                    self._changed.wait(_LOOK)
                if self._ending:
                    return
                self._halt.clear()
                order, self._asked = self._asked or {}, None
                self._status = replace(self._status, running=True, began=self._clock(), progress=None)
            self._take(order)

    def _ready(self) -> bool:
        if self._asked is not None:
            return True
        due = self._due(self._status)
        return due is not None and due <= self._clock()

    def _due(self, status: Status) -> float | None:
        """When the next turn begins, None when none will."""
        if status.paused or not status.enabled:
            return None
        try:
            period = period_of(load(self._folder))
        except RecrawlError:
            period = 0.0  # the turn will fail, and say why
        regular = self._clock() if self._base is None else self._base + period
        return max(regular, self._retry)

    def _take(self, order: Message) -> None:
        begun = self._clock()
        try:
            period = period_of(load(self._folder))
            self._tell("turn", {"began": begun})
            ended = self._runner.run({"period": period, **order}, self._hear)
        except (RecrawlError, OSError) as error:
            self._failed(str(error))
            return
        if ended.error:
            self._failed(ended.error)
            return
        finished = bool(ended.summary and ended.summary["finished"])
        if finished:
            base = begun if self._base is None else self._base
            self._base = next_due(base, self._clock(), period) - period
            with contextlib.suppress(sqlite3.OperationalError):  # then it is due again after a restart, no worse
                self._keep("serve:base", self._base)
        self._retry = 0.0
        self._update(running=False, began=None, progress=None, last=ended.summary, error="", failures=0)
        self._tell("ended", {"summary": ended.summary, "finished": finished})

    def _hear(self, message: Message) -> None:
        with self._changed:
            self._status = replace(self._status, progress=message)
        if self._halt.is_set():
            self._runner.stop()
        self._tell("progress", message)

    def _failed(self, error: str) -> None:
        failures = self._status.failures + 1
        self._retry = self._clock() + min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(failures, 20))
        self._update(running=False, began=None, progress=None, error=error, failures=failures)
        self._tell("failed", {"error": error, "failures": failures})

    def _update(self, **changes: Any) -> None:
        with self._changed:
            self._status = replace(self._status, **changes)
            self._changed.notify_all()

    def _kept(self, name: str) -> Any:
        with contextlib.closing(Store(self._folder / "recrawl.db")) as store:
            return store.meta(name, None)

    def _keep(self, name: str, value: float) -> None:
        with contextlib.closing(Store(self._folder / "recrawl.db")) as store:
            store.set_meta(name, value)
