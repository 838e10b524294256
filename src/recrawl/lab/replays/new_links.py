"""New links that changes bring, as visits in a replay see them: what the objective `links` goes by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Floats
from recrawl.lab.histories.history import History
from recrawl.learn.value.importance import arrivals
from recrawl.model import Outcome, Pages


class NewLinks:
    """Counts, page by page."""

    def __init__(self, history: History) -> None:
        assert history.links is not None
        self._lists = history.links
        self._site = history.site
        self._links = np.zeros(len(history))
        self._changes = np.zeros(len(history))

    def take(self, pages: Pages, before: NDArray[np.int64], after: NDArray[np.int64], what: NDArray[np.int8]) -> None:
        """Visits that found pages in one row of the history after another."""
        changed = (what == Outcome.CHANGED) & (before >= 0) & (after >= 0)
        pages, old, new = pages[changed], self._lists.of_row[before[changed]], self._lists.of_row[after[changed]]
        self._changes[pages] += 1
        other = old != new
        self._links[pages[other]] += fresh(*self._pairs(old[other]), *self._pairs(new[other]), int(other.sum()))

    def arrivals(self) -> Floats:
        """New links that a change of each page brings, as far as was seen."""
        return arrivals(self._links, self._changes, self._site)

    def _pairs(self, lists: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        links = self._lists.at(lists)
        return np.repeat(np.arange(len(links)), np.diff(links.start)), links.target


def fresh(
    old: NDArray[np.int64], old_target: NDArray[np.int32], new: NDArray[np.int64], target: NDArray[np.int32], rows: int
) -> Floats:
    """How many different targets each row has now that it did not have before.

    >>> fresh(np.array([0, 0]), np.array([7, 8]), np.array([0, 0, 0, 1]), np.array([8, 9, 9, 7]), 2).tolist()
    [1.0, 1.0]
    """
    had = (old << 32) | old_target
    has = np.unique((new << 32) | target)
    return np.bincount(has[~np.isin(has, had)] >> 32, minlength=rows).astype(np.float64)
