"""The event bus, and a thread that publishes new visits and cycles.

The thread polls the store twice a second, so it also sees a `recrawl cycle` started by hand. Each listener has a
bounded queue; a listener that reads too slowly is disconnected, so slow connections cannot use up memory.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from recrawl.repository.opening import TEMPORARY_ERRORS
from recrawl.repository.reports import activity
from recrawl.serve.pool import Pool

_STOP_SECONDS = 5.0
_BATCH = 500
"""Visits published per poll; the rest follows at the next poll."""


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """One event."""

    number: int
    kind: str
    """visit, cycle, turn, progress, ended, failed, alert or job."""
    data: dict[str, Any]


@dataclass(slots=True, eq=False)
class Listener:
    """A subscriber: read events from `queue`; None marks the end of the stream."""

    queue: asyncio.Queue[ServiceEvent | None]
    loop: asyncio.AbstractEventLoop
    owner: str = ""
    """Name of the session that listens."""
    dropped: bool = field(default=False)

    def put(self, event: ServiceEvent | None) -> None:
        """Queue an event; call it in the listener's own event loop."""
        if self.dropped:
            return
        if event is None or self.queue.full():
            self.dropped = True
            while not self.queue.empty():
                self.queue.get_nowait()
            event = None
        self.queue.put_nowait(event)


class EventBus:
    """Delivers events to listeners. `publish` may be called from any thread.

    `keep` events are kept for reconnecting clients; `queued` is the capacity of a listener's queue.
    """

    def __init__(self, keep: int = 500, queued: int = 1000) -> None:
        self._queued = queued
        self.log: Callable[[str, dict[str, Any]], None] = lambda _kind, _data: None
        """Called with each event, in the thread that publishes it."""
        self._numbers = itertools.count(1)
        self._recent: deque[ServiceEvent] = deque(maxlen=keep)
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Send an event to all listeners."""
        with self._lock:
            event = ServiceEvent(next(self._numbers), kind, data)
            self._recent.append(event)
            dead = {listener for listener in self._listeners if listener.dropped or listener.loop.is_closed()}
            self._listeners -= dead
            for listener in self._listeners:
                listener.loop.call_soon_threadsafe(listener.put, event)
        self.log(kind, data)

    def listen(self, after: int | None = None, owner: str = "", most: int = 1000) -> Listener | None:
        """Subscribe, with the kept events after number `after` first; None if there are `most` listeners already.

        Call it in an event loop.
        """
        with self._lock:
            if len(self._listeners) >= most:
                return None
            listener = Listener(asyncio.Queue(self._queued), asyncio.get_running_loop(), owner)
            if after is not None:
                for event in self._recent:
                    if event.number > after:
                        listener.put(event)
            self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Unsubscribe."""
        with self._lock:
            self._listeners.discard(listener)

    def close(self) -> None:
        """End all event streams."""
        with self._lock:
            self._end(self._listeners)

    def end(self, owner: str) -> None:
        """End the event streams of a session."""
        with self._lock:
            self._end({listener for listener in self._listeners if listener.owner == owner})

    def _end(self, ending: set[Listener]) -> None:
        for listener in ending:
            if not listener.loop.is_closed():
                listener.loop.call_soon_threadsafe(listener.put, None)
        self._listeners = self._listeners - ending

    def __len__(self) -> int:
        with self._lock:
            return len(self._listeners)


class Watcher:
    """Polls the store and publishes new visits, and cycles that started or finished.

    `on_visits` is called in the watcher's thread after new visits were published.
    """

    def __init__(
        self,
        pool: Pool,
        events: EventBus,
        *,
        every: float = 0.5,
        on_visits: Callable[[], None] = lambda: None,
    ) -> None:
        self._pool = pool
        self._events = events
        self._every = every
        self._on_visits = on_visits
        self._visit = -1
        self._cycles: dict[int, bool] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="watcher", daemon=True)

    def start(self) -> None:
        """Start the thread; only visits made from now on are published."""
        with self._pool.borrow() as repository:
            self._visit = activity.newest_visit(repository)
            self._cycles = {row["id"]: row["finished"] is not None for row in activity.newest_cycles(repository, 3)}
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _loop(self) -> None:
        while not self._ending.wait(self._every):
            try:
                self.poll()
            except TEMPORARY_ERRORS:
                continue  # database busy: try at the next poll

    def poll(self) -> None:
        """Publish what is new since the last poll."""
        with self._pool.borrow() as repository:
            rows = activity.visits_after(repository, self._visit, _BATCH)
            cycles = activity.newest_cycles(repository, 3)
        for cycle in reversed(cycles):
            if self._cycles.get(cycle["id"]) != (cycle["finished"] is not None):
                self._events.publish("cycle", cycle)
        self._cycles = {cycle["id"]: cycle["finished"] is not None for cycle in cycles}
        for row in rows:
            self._events.publish("visit", row)
        if rows:
            self._visit = rows[-1]["id"]
            self._on_visits()
