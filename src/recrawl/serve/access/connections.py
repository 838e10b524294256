"""Connections of the web server: time limits for slow clients, a limit on their number, and a throttled log.

A client that sends or reads slowly costs a descriptor and hardly any work, so a few hundred of them could stop the
service. Each request head must arrive in time, each client must read its response, and when all places are taken, the
connection that has waited longest for a request makes room for a new one.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_SECONDS = 15.0
"""Longest time from the start of a connection, or from the end of a response, to the end of a request head."""
_WRITE_SECONDS = 60.0
"""Longest time in which a client reads nothing of a response."""
ACCEPTED_AT_ONCE = 32
"""Connections accepted before those that are too many can be closed."""
_MOST = 1000
_PER_MINUTE = 5


def most_connections() -> int:
    """Return how many connections the limit on open files allows; the other half is for everything else."""
    return min(_MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


class BoundedProtocol(H11Protocol):
    """An HTTP/1.1 connection with time limits."""

    def __init__(self, *arguments: Any, head_seconds: float, most: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_seconds = head_seconds
        self._most = most
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self.since = 0.0
        """When it began to wait for a request."""

    @property
    def waiting(self) -> bool:
        """Whether it waits for a request, or for the rest of one that was answered already."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit; close another connection if there are too many."""
        super().connection_made(transport)
        self._watch_head()
        others = [other for other in self.connections if isinstance(other, BoundedProtocol) and other is not self]
        there = [other for other in others if not other.transport.is_closing()]
        if len(there) >= self._most:
            idle = [other for other in there if other.waiting]
            min(idle, key=lambda other: other.since, default=self).transport.abort()

    def data_received(self, data: bytes) -> None:
        """End the time limit once the head is complete; single bytes do not extend it."""
        super().data_received(data)
        self._watch_head()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch_head()

    def pause_writing(self) -> None:
        """Start the time limit of a client that does not read."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(_WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """End that time limit."""
        super().resume_writing()
        self._write_timer = _cancel(self._write_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """End all time limits."""
        super().connection_lost(exc)
        self._head_timer = _cancel(self._head_timer)
        self._write_timer = _cancel(self._write_timer)

    def _watch_head(self) -> None:
        if not self.waiting:
            self._head_timer = _cancel(self._head_timer)
        elif self._head_timer is None and not self.transport.is_closing():
            self.since = self.loop.time()
            self._head_timer = self.loop.call_later(self._head_seconds, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    if timer is not None:
        timer.cancel()
    return None


class LogThrottle(logging.Filter):
    """Passes each message a few times per minute, and says how many it has left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is logged."""
        text, now = str(record.msg)[:100], self._clock()
        began, count = self._counts.get(text, (now, 0))
        if now - began >= 60.0:
            if count > _PER_MINUTE:
                record.msg = f"{record.msg} ({count - _PER_MINUTE} more such messages in the minute before)"
            began, count = now, 0
        if len(self._counts) > 1000:
            self._counts.clear()
        self._counts[text] = (began, count + 1)
        return count < _PER_MINUTE
