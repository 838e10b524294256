"""On how many pages of a site each line stands.

Lines that stand on many pages belong to the site's frame: menus, footers, banners. A line that left those pages is
remembered for a while by its highest count, since the pages of a site are not all visited at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat

import numpy as np

_MOST = 65_535
_MAX_FORGOTTEN = 50_000
"""Lines that stand on no page any more and are still remembered."""


class Census:
    """Counts of the lines of one site; feed it the distinct keys of each page.

    >>> census = Census()
    >>> census.add([1, 2]); census.add([1, 3])
    >>> census.pages, census.count(1), census.count(3), census.count(4)
    (2, 2, 1, 0)
    >>> census.replace([1, 3], [3]); census.count(1), census.peak(1)
    (1, 2)
    """

    def __init__(self) -> None:
        self.pages = 0
        self._counts: dict[int, int] = {}
        self._peaks: dict[int, int] = {}

    def __len__(self) -> int:
        """The number of lines that stand on a page."""
        return len(self._counts)

    def add(self, keys: Iterable[int]) -> None:
        """Count a new page with these lines."""
        self.pages += 1
        self._increment(keys)

    def remove(self, keys: Iterable[int]) -> None:
        """Forget a page with these lines."""
        self.pages -= 1
        for key in keys:
            self._decrement(key)
        self._forget()

    def replace(self, old: Iterable[int], new: Iterable[int]) -> None:
        """A counted page has these lines instead."""
        before, after = set(old), set(new)
        self._increment(after - before)
        for key in before - after:
            self._decrement(key)
        self._forget()

    def count(self, key: int) -> int:
        """Pages that hold the line now."""
        return self._counts.get(key, 0)

    def peak(self, key: int) -> int:
        """The most pages that held it at the same time, as far as is remembered."""
        return max(self._peaks.get(key, 0), self.count(key))

    def pack(self) -> bytes:
        """The census as bytes: 12 bytes a line."""
        forgotten = self._peaks.keys() - self._counts.keys()
        keys = np.fromiter(chain(self._counts, forgotten), np.int64, len(self._counts) + len(forgotten))
        peaks = np.fromiter(map(self._peaks.get, keys.tolist(), repeat(1)), np.int64, len(keys))
        counts = np.zeros(len(keys), np.int64)
        counts[: len(self._counts)] = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        numbers = np.minimum(np.column_stack([counts, peaks]), _MOST).astype("<u2")
        head = np.array([self.pages, len(keys)], "<i4").tobytes()
        return head + keys.astype("<i8").tobytes() + numbers.tobytes()

    @classmethod
    def unpack(cls, data: bytes) -> Census:
        """The census that was packed."""
        census = cls()
        census.pages, size = np.frombuffer(data, "<i4", 2).tolist()
        keys = np.frombuffer(data, "<i8", size, 8).tolist()
        numbers = np.frombuffer(data, "<u2", 2 * size, 8 + 8 * size).reshape(size, 2).tolist()
        census._counts = {key: count for key, (count, _) in zip(keys, numbers, strict=True) if count}
        census._peaks = {key: peak for key, (_, peak) in zip(keys, numbers, strict=True) if peak > 1}
        return census

    def _increment(self, keys: Iterable[int]) -> None:
        counts, peaks = self._counts, self._peaks
        for key in keys:
            count = counts[key] = counts.get(key, 0) + 1
            if count > 1 and count > peaks.get(key, 0):
                peaks[key] = count

    def _decrement(self, key: int) -> None:
        count = self._counts.get(key, 0) - 1
        if count > 0:
            self._counts[key] = count
        else:
            self._counts.pop(key, None)

    def _forget(self) -> None:
        """Drop the oldest of the lines that stand on no page, beyond the limit."""
        if len(self._peaks) - len(self._counts) > _MAX_FORGOTTEN:
            gone = [key for key in self._peaks if key not in self._counts]
            for key in gone[: len(gone) - _MAX_FORGOTTEN // 2]:
                del self._peaks[key]


class CensusEvidence:
    """What a census says about the other pages of a site (see `judge.LineEvidence`)."""

    def __init__(self, census: Census, *, counts_old: bool = False, counts_new: bool = False) -> None:
        """The flags tell whether the census counts the page itself, and with which version."""
        self._census = census
        self._own = {False: int(counts_old), True: int(counts_new)}
        self.pages = max(census.pages - (counts_old or counts_new), 0)

    def pages_with(self, key: int, *, added: bool) -> int:
        """Other pages that hold the line, or held it together with this page."""
        # The page itself may be counted with other lines: when it was counted, it had another version.
        return max(self._census.count(key) - self._own[added], self._census.peak(key) - 1, 0)
