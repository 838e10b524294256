"""Copies in a replay: which pages a crawler leaves out that knows them, and finds counted once for each text of a site.

Copies are the pages of a site whose stored versions have the same text; the one with the shortest URL stands for the
others. That takes a history in which equal versions are equal texts: the changes `text` and `raw`.
"""

from __future__ import annotations

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Ints, unique
from recrawl.lab.histories.history import ABSENT, History
from recrawl.model import Pages

PACE = 30 * DAY
"""Between two visits to a copy, as in a crawl."""
_CHANGES = ("text", "raw")


def has_texts(history: History) -> bool:
    """Whether equal versions of different pages are equal texts."""
    return history.change in _CHANGES and "text" in history.carries


class KnownCopies:
    """The copies of a history, as far as the stored versions show them."""

    def __init__(self, history: History) -> None:
        self._site = history.site
        self._order = np.argsort([len(url) for url in history.urls], kind="stable")
        """Pages by the length of their URLs."""

    def due(self, book: Book, held: Ints) -> Flags:
        """False for copies that are not due for a visit; `held` are the stored versions."""
        due = np.ones(len(held), bool)
        stored = self._order[(held[self._order] != ABSENT) & (book.visits[self._order] > 0)]
        ordered = stored[np.lexsort((held[stored], self._site[stored]))]  # stable: the shortest URL is the first
        before = ordered[:-1]
        new = np.r_[True, (held[ordered[1:]] != held[before]) | (self._site[ordered[1:]] != self._site[before])]
        leader = ordered[np.flatnonzero(new)][np.cumsum(new) - 1] if len(ordered) else ordered
        copies, leader = ordered[leader != ordered], leader[leader != ordered]
        seen = book.last_visit[copies]
        due[copies] = (book.now - seen >= PACE) & (book.last_visit[leader] > seen)
        return due


class DistinctFinds:
    """Finds counted once for each text of a site; removals have no text, and count one by one."""

    def __init__(self, history: History) -> None:
        self._site = history.site
        self._found: list[tuple[Pages, Ints]] = []

    def add(self, pages: Pages, version: Ints) -> None:
        """Count the finds of a cycle: pages, and their versions."""
        self._found.append((pages, np.where(version == ABSENT, -2 - pages, version)))

    def count(self) -> int:
        """The number of different ones so far."""
        if not self._found:
            return 0
        pages, versions = (np.concatenate(column) for column in zip(*self._found, strict=True))
        rows = np.stack((self._site[pages].astype(np.int64), versions))
        return int(rows.shape[1] and len(unique(rows[1] * 1_000_003 + rows[0])))
