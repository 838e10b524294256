"""New links per change of each page, as the visits of a replay find them; the objective `links` uses them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Floats, Int32s, Ints
from recrawl.lab.histories.history import History
from recrawl.learn.value.importance import arrivals
from recrawl.model import Outcome, Pages


class NewLinks:
    """Counts of changes and new links per page."""

    def __init__(self, history: History) -> None:
        assert history.links is not None
        self._lists = history.links
        self._site = history.site
        self._links = np.zeros(len(history))
        self._changes = np.zeros(len(history))

    def add(self, pages: Pages, before: Ints, after: Ints, what: NDArray[np.int8]) -> None:
        """Count visits that found pages in row `after` of the history, where the repository held row `before`."""
        changed = (what == Outcome.CHANGED) & (before >= 0) & (after >= 0)
        pages, old, new = pages[changed], self._lists.of_row[before[changed]], self._lists.of_row[after[changed]]
        self._changes[pages] += 1
        other = old != new
        links = count_new_targets(*self._pairs(old[other]), *self._pairs(new[other]), int(other.sum()))
        self._links[pages[other]] += links

    def arrivals(self) -> Floats:
        """Return the estimated new links per change of each page."""
        return arrivals(self._links, self._changes, self._site)

    def _pairs(self, lists: Int32s) -> tuple[Ints, Int32s]:
        links = self._lists.at(lists)
        return np.repeat(np.arange(len(links)), np.diff(links.start)), links.target


def count_new_targets(old: Ints, old_target: Int32s, new: Ints, target: Int32s, rows: int) -> Floats:
    """Return, per row, the number of different targets that it did not have before.

    >>> old, old_target, new = np.array([0, 0]), np.array([7, 8]), np.array([0, 0, 0, 1])
    >>> count_new_targets(old, old_target, new, np.array([8, 9, 9, 7]), 2).tolist()
    [1.0, 1.0]
    """
    had = (old << 32) | old_target
    has = np.unique((new << 32) | target)
    return np.bincount(has[~np.isin(has, had)] >> 32, minlength=rows).astype(np.float64)
