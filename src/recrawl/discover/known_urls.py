"""Page numbers of known URLs by their keys, for millions of pages.

A Python dict would take 150 bytes per page; sorted arrays take 12. Keys are hashes (`recrawl.discover.urls.key`); one
binary search in C finds a batch of them. New pages go into a small dict, from there into a small pair of arrays, and
when that is full into the large one. Links often lead to new pages, and a search in the small arrays needs no memory
that is not in the processor's cache.
"""

from __future__ import annotations

from itertools import repeat

import numpy as np

from recrawl.columns import Int32s, Ints

_MAX_RECENT = 1 << 12
_MAX_YOUNG = 1 << 16


class _SortedKeys:
    """Ascending keys, each once, and their pages."""

    __slots__ = ("keys", "pages")

    def __init__(self, keys: Ints, pages: Int32s) -> None:
        self.keys, self.pages = keys, pages

    def find(self, keys: Ints) -> Ints | Int32s:
        """The page of each key, -1 for those that are not here."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int32)
        at = self.keys.searchsorted(keys)
        np.minimum(at, len(self.keys) - 1, out=at)
        return np.where(self.keys[at] == keys, self.pages[at], -1)

    def get(self, key: int) -> int:
        at = int(self.keys.searchsorted(key))
        return int(self.pages[at]) if at < len(self.keys) and self.keys[at] == key else -1

    def merged(self, other: _SortedKeys) -> _SortedKeys:
        """These keys and others, none of which is here."""
        if not len(self) or not len(other):
            return self if len(self) else other
        at = self.keys.searchsorted(other.keys)
        return _SortedKeys(np.insert(self.keys, at, other.keys), np.insert(self.pages, at, other.pages))

    def __len__(self) -> int:
        return len(self.keys)


class KnownUrls:
    """URL key to page number. Of two entries with the same key at the start, the later one counts, as in a dict.

    >>> known = KnownUrls(np.array([30, -10]), np.array([0, 1]))
    >>> known.add(20, 2)
    >>> known.find(np.array([-10, 20, 99])).tolist()
    [1, 2, -1]
    """

    __slots__ = ("_old", "_recent", "_young")

    def __init__(self, keys: Ints, pages: Ints | Int32s) -> None:
        """Take over the arrays, which are not copied if the keys ascend."""
        if len(keys) != len(pages):
            raise ValueError(f"{len(keys)} keys for {len(pages)} pages")
        keys, numbers = np.asarray(keys, dtype=np.int64), np.asarray(pages, dtype=np.int32)
        if not (keys[1:] > keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            order = order[np.append(keys[order[1:]] != keys[order[:-1]], True)[: len(order)]]  # the last of equal keys
            keys, numbers = keys[order], numbers[order]
        self._old = _SortedKeys(keys, numbers)
        self._young = _SortedKeys(np.zeros(0, np.int64), np.zeros(0, np.int32))
        self._recent: dict[int, int] = {}

    def find(self, keys: Ints) -> Ints:
        """The page of each key, -1 for unknown keys."""
        order = keys.argsort()  # sorted queries walk the arrays once, which halves the cache misses
        queries = keys[order]
        found = self._young.find(queries).astype(np.int64)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            found[missing] = self._old.find(queries[missing])
            if self._recent:
                missing = missing[found[missing] < 0]
                found[missing] = list(map(self._recent.get, queries[missing].tolist(), repeat(-1)))
        pages = np.empty(len(keys), np.int64)
        pages[order] = found
        return pages

    def get(self, key: int) -> int:
        """The page of one key, -1 if it is unknown."""
        page = self._recent.get(key)
        if page is None:
            page = self._young.get(key)
        return self._old.get(key) if page < 0 else page

    def add(self, key: int, page: int) -> None:
        """Set the page of a key that is not known."""
        self._recent[key] = page
        if len(self._recent) > _MAX_RECENT:
            self._merge()

    def add_all(self, keys: Ints, pages: Int32s) -> None:
        """Set the pages of many keys, in ascending order, none of which is known."""
        self._old = self._old.merged(_SortedKeys(keys, pages))

    def columns(self) -> tuple[Ints, Int32s]:
        """The keys, ascending, and their pages, without pages that were added one by one."""
        return self._old.keys, self._old.pages

    def _merge(self) -> None:
        keys = np.fromiter(self._recent.keys(), dtype=np.int64, count=len(self._recent))
        pages = np.fromiter(self._recent.values(), dtype=np.int32, count=len(self._recent))
        order = np.argsort(keys)
        self._young = self._young.merged(_SortedKeys(keys[order], pages[order]))
        self._recent = {}
        if len(self._young) > _MAX_YOUNG:
            self._old = self._old.merged(self._young)
            self._young = _SortedKeys(keys[:0], pages[:0])

    def __len__(self) -> int:
        return len(self._old) + len(self._young) + len(self._recent)
