"""A queue of items by rank, highest first, whose ranks may change while items wait; for `Lanes`.

It has the methods of a deque that lanes use. Items that are no numbers (robots.txt, sitemaps, feeds) and items put at
the front are not ranked: they come first. Ranks are read when the next items are chosen: one at a time, or a thousandth
of all that wait, so that choosing costs little however many wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from recrawl.columns import Floats, Ints

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
