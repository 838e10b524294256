"""Lanes: the queue of each server, and when that server may get its next request (spec K2, A3).

Pure bookkeeping without a clock: the time, in seconds since 1970, is an argument.

    lanes.push(server, item)         add an item: the number of a page, or any other object
    lanes.push_last(server, item)    add one that has failed, behind all others
    lanes.pop(now)                   the next server and item, if a request may start now
    lanes.done(server, now, ...)     a request has ended
    lanes.wait(now)                  seconds until `pop` returns an item again

Rules: at most `per_server` concurrent requests per server; the next one starts no sooner than `delay` seconds after
the last one started or ended and, after a slow answer, no sooner than that answer took. After a 429 or 503, or without
any answer, the server gets no request for as long as it asks, else for 5 s, doubling up to 10 minutes with every
further item that fails in a row: an item that fails again says nothing new about its server. Before `MIN_STRIKES` items
have failed, such a pause is never longer than `patience`. Among the servers that are ready, the one whose last request
is oldest comes first.

A lane is in one of two heaps, or in none if it is empty or busy: in `_later`, ordered by the time at which the server
becomes ready, then in `_ready`, ordered by its last request. Stale heap entries are dropped when they surface.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Any, Literal

import numpy as np

from recrawl.columns import DAY, Floats, Ints
from recrawl.model import SILENT, Answer

Rank = Callable[[Ints], Floats]
"""The ranks of items, now."""
_CHOICES = 1000
"""At most one in this many of the waiting items is chosen at once."""


class RankedQueue:
    """Items by rank; of equal ranks, the lower number first.

    >>> rank = np.array([0.1, 0.5, 0.9])
    >>> queue = RankedQueue(lambda items: rank[items])
    >>> for item in (0, 1, 2, "robots.txt"):
    ...     queue.append(item)
    >>> queue.popleft(), queue.popleft()
    ('robots.txt', 2)
    >>> rank[0] = 0.7
    >>> queue.popleft(), queue.popleft(), len(queue)
    (0, 1, 0)
    """

    __slots__ = ("_first", "_items", "_next", "_rank", "_size")

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._first: deque[object] = deque()
        self._next: deque[int] = deque()
        self._items: Ints = np.zeros(64, np.int64)
        self._size = 0

    def append(self, item: object) -> None:
        """Add an item."""
        if not isinstance(item, int):
            self._first.append(item)
            return
        if self._size == len(self._items):
            self._items = np.append(self._items, np.zeros(self._size, np.int64))
        self._items[self._size] = item
        self._size += 1

    def appendleft(self, item: object) -> None:
        """Add an item before all others."""
        self._first.appendleft(item)

    def popleft(self) -> object:
        """Remove and return the next item."""
        if self._first:
            return self._first.popleft()
        if not self._next:
            self._choose()
        return self._next.popleft()

    pop = popleft

    def clear(self) -> None:
        """Remove all items."""
        self._first.clear()
        self._next.clear()
        self._size = 0

    def __len__(self) -> int:
        return len(self._first) + len(self._next) + self._size

    def __iter__(self) -> Iterator[object]:
        """The items in the order in which they would be popped now."""
        yield from self._first
        yield from self._next
        waiting = self._items[: self._size]
        yield from waiting[np.lexsort((waiting, -self._rank(waiting)))].tolist()

    def __reversed__(self) -> Iterator[object]:
        return iter(self)  # depth first takes a deque from its other end; ranked items have one order

    def _choose(self) -> None:
        """Move the items with the highest ranks to the next ones."""
        waiting = self._items[: self._size]
        count = 1 + self._size // _CHOICES
        rank = self._rank(waiting)
        lowest = np.partition(rank, self._size - count)[self._size - count] if self._size else 0.0
        best = np.flatnonzero(rank >= lowest)
        best = best[np.lexsort((waiting[best], -rank[best]))][:count]
        self._next.extend(waiting[best].tolist())
        left = np.delete(waiting, best) if count > 1 else None
        if left is None and len(best):
            self._items[best[0]] = self._items[self._size - 1]
        elif left is not None:
            self._items[: len(left)] = left
        self._size -= len(best)


MAX_RETRY_AFTER = DAY


def parse_retry_after(text: str, now: float) -> float | None:
    """The seconds that a Retry-After header asks for, at most a day; None if it is invalid (spec K2).

    >>> parse_retry_after("120", 0.0), parse_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 0.0)
    (120.0, 60.0)
    >>> parse_retry_after("soon", 0.0)
    """
    text = text.strip()
    if not 0 < len(text) <= 64 or not text.isascii():
        return None
    if text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    from email.utils import parsedate_to_datetime  # lazy: loads ten modules

    try:
        date = parsedate_to_datetime(text)
        seconds = date.timestamp() - now if date.tzinfo else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER)


Order = Literal["breadth", "depth"] | Rank
FIRST_BACK_OFF = 5.0
MAX_BACK_OFF = 600.0
MIN_STRIKES = 3
"""Items that must fail in a row before the server, and not the items, counts as failing."""
_NOWHERE = math.inf
_READY = -math.inf
_CATCH_UP = 0.1  # seconds of the overall rate that late calls may catch up on, if it is above 10 per second


@dataclass(slots=True)
class _Lane:
    """One server. `place` is its heap position: the time in `_later`, or `_READY` or `_NOWHERE`.

    Every call that changes the position must end with `Lanes._place`.
    """

    delay: float
    turn: int
    waiting: deque[object] | RankedQueue
    last: deque[object] = field(default_factory=deque)  # popped when nothing else waits
    free: float = _READY  # no request before: the delay
    hold: float = 0.0  # ... the caller's hold
    back_off: float = 0.0  # ... the server's Retry-After, or our back-off
    place: float = _NOWHERE
    in_flight: int = 0
    strikes: int = 0
    struck: set[object] = field(default_factory=set)  # the items behind the strikes
    silent: int = 0


class Lanes:
    """The queues of all servers.

    >>> lanes = Lanes(delay=1.0)
    >>> lanes.push(7, 100), lanes.push(7, 101), lanes.pop(0.0), lanes.pop(0.0)
    (None, None, (7, 100), None)
    >>> lanes.done(7, 0.5), lanes.wait(0.5), lanes.pop(1.5)
    (None, 1.0, (7, 101))
    """

    def __init__(
        self,
        *,
        delay: float,
        per_server: int = 1,
        overall_per_second: float = 0.0,
        order: Order = "breadth",
        max_delay: float = 60.0,
        patience: float = math.inf,
        back_off: bool = True,  # False: no pauses for servers that fail, as the answers are known
    ) -> None:
        self._delay = delay
        self._per_server = per_server
        self._interval = 1.0 / overall_per_second if overall_per_second > 0 else 0.0
        self._slack = _CATCH_UP if overall_per_second > 10 else 0.0
        self._max_delay, self._patience, self._backs_off = max_delay, patience, back_off
        self._depth, self._rank = order == "depth", None if isinstance(order, str) else order
        self._lanes: dict[int, _Lane] = {}
        self._ready: list[tuple[int, int]] = []
        self._later: list[tuple[float, int]] = []
        self._turn = 0
        self._open = _READY  # earliest next request by the overall rate
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def in_flight(self) -> int:
        """Number of requests under way."""
        return sum(lane.in_flight for lane in self._lanes.values())

    def in_flight_of(self, server: int) -> int:
        """Number of requests of a server under way."""
        lane = self._lanes.get(server)
        return lane.in_flight if lane else 0

    def push(self, server: int, item: object) -> None:
        """Add an item at the end of a server's queue (depth first: at its top; by rank: at its rank)."""
        lane = self._lanes.get(server) or self._lane(server)
        lane.waiting.append(item)
        self._added(server, lane)

    def push_last(self, server: int, item: object) -> None:
        """Add an item whose turn comes when no other item of the server waits."""
        lane = self._lanes.get(server) or self._lane(server)
        lane.last.append(item)
        self._added(server, lane)

    def push_front(self, server: int, item: object) -> None:
        """Add an item as the next one."""
        lane = self._lanes.get(server) or self._lane(server)
        (lane.waiting.append if self._depth else lane.waiting.appendleft)(item)
        self._added(server, lane)

    def pop(self, now: float) -> tuple[int, Any] | None:
        """The next server and item if a request may start now, else None."""
        if now < self._open:
            return None
        lane, server = self._next(now)
        if lane is None:
            return None
        heappop(self._ready)
        line = lane.waiting or lane.last
        item = line.pop() if self._depth else line.popleft()
        self._waiting -= 1
        lane.in_flight += 1
        self._turn += 1
        lane.turn = self._turn
        lane.free = now + lane.delay
        lane.place = _NOWHERE
        if lane.in_flight < self._per_server:
            self._place(server, lane)
        if self._interval:
            self._open = max(self._open, now - self._slack) + self._interval
        return server, item

    def wait(self, now: float) -> float | None:
        """Seconds until `pop` returns an item; None if it needs a `done` or a `push` first."""
        lane, _ = self._next(now)
        if lane is not None:
            return max(0.0, self._open - now)
        later = self._later
        while later and self._lanes[later[0][1]].place != later[0][0]:
            heappop(later)
        return max(later[0][0], self._open) - now if later else None

    def done(
        self,
        server: int,
        now: float,
        *,
        status: int = 0,
        failed: bool = False,
        retry_after: str = "",
        seconds: float = 0.0,
        item: object = None,
    ) -> None:
        """A request has ended: with a status, or `failed` without a whole answer. Failures of one `item` count once."""
        lane = self._lanes[server]
        if not lane.in_flight:
            raise ValueError(f"server {server} has no request under way")
        lane.in_flight -= 1
        # Without a delay (as for localhost), a slow answer causes no pause either.
        lane.free = now + max(lane.delay, min(seconds, self._max_delay)) if lane.delay else now
        if self._backs_off and (failed or status in (429, 503)):
            self._strike(lane, now, retry_after, item)
        elif status < 500:
            lane.strikes = 0
            lane.struck.clear()
        lane.silent = lane.silent + 1 if failed and self._backs_off else 0
        self._place(server, lane)

    def answered(self, server: int, now: float, answer: Answer, item: object) -> None:
        """The request of an item has ended with this answer."""
        self.done(
            server,
            now,
            status=answer.status,
            failed=answer.failure in SILENT,
            retry_after=answer.header("retry-after"),
            seconds=answer.seconds,
            item=item,
        )

    def skip(self, server: int, now: float) -> None:
        """The popped item is not requested after all: the next one may start at once."""
        lane = self._lanes[server]
        lane.in_flight -= 1
        lane.free = now
        self._open -= self._interval
        self._place(server, lane)

    def set_delay(self, server: int, seconds: float, *, ours: float | None = None) -> None:
        """Set the site's Crawl-delay: counts if it is above ours, at most `max_delay`. `ours` overrides our delay."""
        lane = self._lanes.get(server) or self._lane(server)
        before = lane.delay
        # In this order NaN gives our own delay.
        lane.delay = max(self._delay if ours is None else ours, min(seconds, self._max_delay))
        lane.free += lane.delay - before
        self._place(server, lane)

    def hold(self, server: int, until: float) -> None:
        """No requests to this server before `until`. A later call replaces this one; 0 ends the hold."""
        lane = self._lanes.get(server) or self._lane(server)
        lane.hold = until
        self._place(server, lane)

    def held(self, server: int) -> float:
        """The end of the server's hold or back-off, whichever is later; 0 if it never had one."""
        lane = self._lanes.get(server)
        return max(lane.hold, lane.back_off) if lane else 0.0

    def backed_off(self, server: int) -> float:
        """The end of the server's back-off; 0 if it never had one."""
        lane = self._lanes.get(server)
        return lane.back_off if lane else 0.0

    def silent(self, server: int) -> int:
        """Failed connections to the server in a row."""
        lane = self._lanes.get(server)
        return lane.silent if lane else 0

    def upcoming(self, server: int, n: int) -> list[Any]:
        """The next n items of this server, which stay in the queue."""
        lane = self._lanes.get(server)
        if lane is None:
            return []
        return list(islice(chain(reversed(lane.waiting) if self._depth else lane.waiting, lane.last), n))

    def abandon(self, server: int) -> list[Any]:
        """Empty the server's queue; returns its items."""
        lane = self._lanes.get(server)
        if lane is None:
            return []
        items = [*lane.waiting, *lane.last]
        lane.waiting.clear()
        lane.last.clear()
        lane.place = _NOWHERE
        self._waiting -= len(items)
        return items

    def _lane(self, server: int) -> _Lane:
        # A new server queues behind the others, so that a stream of new servers cannot starve the old ones.
        lane = self._lanes[server] = _Lane(self._delay, self._turn, RankedQueue(self._rank) if self._rank else deque())
        return lane

    def _added(self, server: int, lane: _Lane) -> None:
        self._waiting += 1
        if lane.place == _NOWHERE:
            self._place(server, lane)

    def _place(self, server: int, lane: _Lane) -> None:
        """Put the lane into the right heap; into none if it is on hold without end."""
        if not (lane.waiting or lane.last) or lane.in_flight >= self._per_server:
            lane.place = _NOWHERE
            return
        when = max(lane.free, lane.hold, lane.back_off)
        if when != lane.place:
            lane.place = when
            if when < _NOWHERE:
                heappush(self._later, (when, server))

    def _next(self, now: float) -> tuple[_Lane | None, int]:
        """The next lane, whose entry is then the first in `_ready`."""
        later, ready, lanes = self._later, self._ready, self._lanes
        while later and later[0][0] <= now:
            when, server = heappop(later)
            lane = lanes[server]
            if lane.place == when:
                lane.place = _READY
                heappush(ready, (lane.turn, server))
        while ready:
            turn, server = ready[0]
            lane = lanes[server]
            if lane.place == _READY and lane.turn == turn:
                return lane, server
            heappop(ready)
        return None, -1

    def _strike(self, lane: _Lane, now: float, retry_after: str, item: object) -> None:
        """Back off from a server that cannot or will not answer."""
        # Several failures of concurrent requests count once.
        if (lane.back_off <= now or not lane.strikes) and item not in lane.struck:
            lane.strikes += 1
        if item is not None:
            lane.struck.add(item)
        back_off = min(FIRST_BACK_OFF * 2.0 ** min(lane.strikes - 1, 30), MAX_BACK_OFF)
        if lane.strikes < MIN_STRIKES:
            back_off = min(back_off, self._patience)
        lane.back_off = max(lane.back_off, now + (parse_retry_after(retry_after, now) or back_off))
