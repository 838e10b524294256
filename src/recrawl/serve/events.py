"""What happens, as it happens, for whoever listens.

A thread looks at the store about twice a second and tells of visits that are new there, of cycles that began or ended.
It does not matter who made them: a `recrawl cycle` started by hand shows as well. Listeners have a queue each; one that
reads too slowly is let go, so that nobody's slow line costs memory here.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from recrawl.model import Outcome
from recrawl.record.questions import ask
from recrawl.serve.pool import Pool

_OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}
_AT_ONCE = 500
"""Visits told in one look; the rest waits for the next."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    number: int
    kind: str
    """visit, cycle, turn, progress, ended, failed, alert or job."""
    data: dict[str, Any]


@dataclass(slots=True, eq=False)
class Listener:
    """One who listens: take events from `queue`; None means that it is over."""

    queue: asyncio.Queue[Event | None]
    loop: asyncio.AbstractEventLoop
    dropped: bool = field(default=False)

    def put(self, event: Event | None) -> None:
        """Called in the listener's own loop."""
        if self.dropped:
            return
        if event is None or self.queue.full():
            self.dropped = True
            while not self.queue.empty():
                self.queue.get_nowait()
            event = None
        self.queue.put_nowait(event)


class Hub:
    """Hands events to listeners. `tell` may be called from any thread."""

    def __init__(self, keep: int = 500, waiting: int = 1000) -> None:
        self._waiting = waiting
        self._numbers = itertools.count(1)
        self._recent: deque[Event] = deque(maxlen=keep)
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Let everybody know."""
        with self._lock:
            event = Event(next(self._numbers), kind, data)
            self._recent.append(event)
            gone = {listener for listener in self._listeners if listener.dropped or listener.loop.is_closed()}
            self._listeners -= gone
            for listener in self._listeners:
                listener.loop.call_soon_threadsafe(listener.put, event)

    def listen(self, after: int | None = None) -> Listener:
        """Begin to listen; with what is remembered after an event's number first. Must be called in an event loop."""
        with self._lock:
            listener = Listener(asyncio.Queue(self._waiting), asyncio.get_running_loop())
            if after is not None:
                for event in self._recent:
                    if event.number > after:
                        listener.put(event)
            self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Stop listening."""
        with self._lock:
            self._listeners.discard(listener)

    def end(self) -> None:
        """Send everybody home."""
        with self._lock:
            for listener in self._listeners:
                if not listener.loop.is_closed():
                    listener.loop.call_soon_threadsafe(listener.put, None)
            self._listeners.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._listeners)


class Watcher:
    """Looks at the store and tells the hub what is new there.

    `seen` is given the numbers of the first and last new visit, in the watcher's thread: the alerts hook in here.
    """

    def __init__(
        self,
        pool: Pool,
        hub: Hub,
        *,
        every: float = 0.5,
        seen: Callable[[int, int], None] = lambda _first, _last: None,
    ) -> None:
        self._pool = pool
        self._hub = hub
        self._every = every
        self._seen = seen
        self._visit = -1
        self._cycles: dict[int, bool] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="watcher", daemon=True)

    def start(self) -> None:
        """Begin with what is new from now on."""
        with self._pool.lend() as repository:
            self._visit = repository.store.next_id("visits") - 1
            self._cycles = {row.id: row.finished is not None for row in repository.store.cycles(limit=3)}
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _loop(self) -> None:
        while not self._ending.wait(self._every):
            try:
                self.look()
            except sqlite3.OperationalError:
                continue  # busy: the next look sees it

    def look(self) -> None:
        """Tell what is new since the last look."""
        with self._pool.lend() as repository:
            db = repository.store.db
            rows = ask(
                db,
                """SELECT v.id, v.at, v.outcome, v.status, v.received, v.seconds, v.failure, v.cycle, v.score, p.url,
                          p.site, r.divergence, r.title
                   FROM visits v JOIN pages p ON p.id = v.page LEFT JOIN versions r ON r.id = v.version AND v.outcome
                   IN (1, 2) WHERE v.id > ? ORDER BY v.id LIMIT ?""",
                (self._visit, _AT_ONCE),
            )
            cycles = repository.store.cycles(limit=3)
        for cycle in reversed(cycles):
            finished = cycle.finished is not None
            if self._cycles.get(cycle.id) != finished:
                self._hub.tell("cycle", {**cycle._asdict(), "finished": cycle.finished})
        self._cycles = {cycle.id: cycle.finished is not None for cycle in cycles}
        for row in rows:
            self._hub.tell("visit", {**row, "outcome": _OUTCOMES[row["outcome"]]})
        if rows:
            first, self._visit = rows[0]["id"], rows[-1]["id"]
            self._seen(first, self._visit)
