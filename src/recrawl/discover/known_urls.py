"""Page numbers of known URLs by their keys, for millions of pages.

A Python dict would take 150 bytes per page; two sorted arrays take 12. New pages go into a small dict, which is merged
into the arrays when it reaches an eighth of their size, or 65,536 pages: a merge copies the arrays, a larger dict would
take more memory than they do. Keys are hashes (`recrawl.discover.urls.key`); one binary search in C finds a batch of
them.
"""

from __future__ import annotations

from itertools import repeat

import numpy as np

from recrawl.columns import Int32s, Ints

_MIN_MERGE = 4096  # a smaller merge costs more than it saves
_MAX_MERGE = 1 << 16
_SHARE = 8


class KnownUrls:
    """URL key to page number. Of two entries with the same key at the start, the later one counts, as in a dict.

    >>> known = KnownUrls(np.array([30, -10]), np.array([0, 1]))
    >>> known.add(20, 2)
    >>> known.find(np.array([-10, 20, 99])).tolist()
    [1, 2, -1]
    """

    __slots__ = ("_keys", "_pages", "_recent")

    def __init__(self, keys: Ints, pages: Ints | Int32s) -> None:
        """Take over the arrays, which are not copied if the keys ascend."""
        if len(keys) != len(pages):
            raise ValueError(f"{len(keys)} keys for {len(pages)} pages")
        self._keys: Ints = np.asarray(keys, dtype=np.int64)
        self._pages: Int32s = np.asarray(pages, dtype=np.int32)
        if not (self._keys[1:] >= self._keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            self._keys, self._pages = self._keys[order], self._pages[order]
        self._recent: dict[int, int] = {}
        last = np.ones(len(self._keys), dtype=bool)
        np.not_equal(self._keys[1:], self._keys[:-1], out=last[:-1])
        if not last.all():
            self._keys, self._pages = self._keys[last], self._pages[last]

    def find(self, keys: Ints) -> Ints:
        """The page of each key, -1 for unknown keys."""
        pages = np.full(len(keys), -1, dtype=np.int64)
        if len(self._keys):
            order = keys.argsort()  # sorted queries walk the arrays once, which halves the cache misses
            queries = keys[order]
            at = self._keys.searchsorted(queries)
            np.minimum(at, len(self._keys) - 1, out=at)
            pages[order] = np.where(self._keys[at] == queries, self._pages[at], -1)
        if self._recent:
            missing = np.flatnonzero(pages < 0)
            if len(missing):
                recent = self._recent
                pages[missing] = list(map(recent.get, keys[missing].tolist(), repeat(-1)))
        return pages

    def get(self, key: int) -> int:
        """The page of one key, -1 if it is unknown."""
        page = self._recent.get(key)
        if page is not None:
            return page
        at = self._at(key)
        return -1 if at < 0 else int(self._pages[at])

    def add(self, key: int, page: int) -> None:
        """Set the page of a key that is not known."""
        self._recent[key] = page
        if len(self._recent) > max(_MIN_MERGE, min(_MAX_MERGE, len(self._keys) // _SHARE)):
            self._merge()

    def add_all(self, keys: Ints, pages: Int32s) -> None:
        """Set the pages of many keys, in ascending order, none of which is known."""
        if not len(self._keys) or not len(keys):
            self._keys, self._pages = (self._keys, self._pages) if len(self._keys) else (keys, pages)
            return
        at = self._keys.searchsorted(keys)
        self._keys, self._pages = np.insert(self._keys, at, keys), np.insert(self._pages, at, pages)

    def columns(self) -> tuple[Ints, Int32s]:
        """The keys, ascending, and their pages, without those of the last calls of `add`."""
        return self._keys, self._pages

    def _at(self, key: int) -> int:
        at = int(self._keys.searchsorted(key))
        return at if at < len(self._keys) and self._keys[at] == key else -1

    def _merge(self) -> None:
        keys = np.fromiter(self._recent.keys(), dtype=np.int64, count=len(self._recent))
        pages = np.fromiter(self._recent.values(), dtype=np.int32, count=len(self._recent))
        order = np.argsort(keys)
        self.add_all(keys[order], pages[order])
        self._recent = {}

    def __len__(self) -> int:
        return len(self._keys) + len(self._recent)
