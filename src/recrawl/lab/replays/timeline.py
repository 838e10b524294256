"""The state of every page as time passes: its version on the web, in the repository, and since when they differ.

    timeline = Timeline(history)
    timeline.advance(DAY)              # the web changes for a day
    what = timeline.visit(pages)       # the repository downloads pages

Time only moves forward. All rows are sorted by time once, so the cost of a step depends on the rows within it, not on
the number of pages.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.histories.history import ABSENT, History
from recrawl.model import Outcome, Pages


class Timeline:
    """A history at a current time. At time 0 the repository holds every page that exists."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._rows, self._times, self._pages = _by_time(history)
        self._next = 0
        pages = len(history)
        self.now = 0.0
        self.row = np.full(pages, -1, np.int64)
        """Per page: the current row, -1 before its birth."""
        self.version = np.full(pages, ABSENT, np.int64)
        self.held = np.full(pages, ABSENT, np.int64)
        """Per page: the version in the repository."""
        self.held_row = np.full(pages, -1, np.int64)
        self.since = np.full(pages, np.inf)
        """Per page: since when the web and the repository differ; inf where they agree."""
        self.there = np.zeros(pages, bool)
        """Per page: whether it can be visited: it is on the web, or in the repository and not yet found gone."""
        self._back = np.full(pages, -1, np.int64)
        self.advance(0.0)
        self.held[:] = self.version
        self.held_row[:] = self.row
        self.since[:] = np.inf

    def advance(self, to: float) -> None:
        """Advance to a time: apply the rows up to it."""
        if to == self.now and self._next:
            return  # one batch after another at one time
        end = self._next + int(np.searchsorted(self._times[self._next :], to, side="right"))
        self.now = to
        if end == self._next:
            return
        pages, rows = self._pages[self._next : end], self._rows[self._next : end]
        times = self._times[self._next : end]
        self._next = end
        versions, held = self.history.version[rows], self.held[pages]
        # If a page has several rows here, numpy keeps the last assignment: the newest.
        self.row[pages] = rows
        self.version[pages] = versions
        self.there[pages] = (versions != ABSENT) | (held != ABSENT)
        agrees = versions == held
        if agrees.any():
            # A page that reverted to the held version differs again from its first row after that, if there is one.
            place, back = np.arange(len(pages)), pages[agrees]
            self._back[back] = place[agrees]
            self.since[back] = np.inf
            after = place > self._back[pages]
            self._back[back] = -1
            pages, times = pages[after], times[after]
        newly = np.isinf(self.since[pages])
        # Backwards, so that the oldest row is kept.
        self.since[pages[newly][::-1]] = times[newly][::-1]

    def forget(self, pages: Pages) -> None:
        """Remove pages from the repository, as if it had never held them."""
        self.held[pages] = ABSENT
        self.held_row[pages] = -1
        self.since[pages] = self.now
        self.there[pages] = self.version[pages] != ABSENT

    def visit(self, pages: Pages) -> NDArray[np.int8]:
        """Download pages now and return their outcomes; the repository then holds their current versions."""
        now, held = self.version[pages], self.held[pages]
        what = np.full(len(pages), Outcome.UNCHANGED, np.int8)
        differs = np.flatnonzero(now != held)
        if len(differs):
            now, held, moved = now[differs], held[differs], pages[differs]
            what[differs] = np.where(now == ABSENT, Outcome.GONE, Outcome.CHANGED)
            what[differs[held == ABSENT]] = Outcome.NEW
            self.held[moved] = now
            self.since[moved] = np.inf
            self.there[moved] = now != ABSENT
        self.held_row[pages] = self.row[pages]
        return what


@functools.lru_cache(maxsize=1)
def _by_time(history: History) -> tuple[Ints, Floats, Ints]:
    """Return the rows that matter in order of time, their times and pages; kept for the next replay of the history."""
    page = history.page_of
    rows = np.flatnonzero(_changes(history, page))
    rows = rows[np.argsort(history.time[rows], kind="stable")]
    return rows, history.time[rows], page[rows]


def _changes(history: History, page: Ints) -> Flags:
    """Mark the rows that differ from the row before in anything that a replay reads; the others can be skipped."""
    differs = page[1:] != page[:-1]
    columns: list[NDArray[Any]] = [history.version, history.size]
    columns += [history.links.of_row] if history.links else []
    for column in columns:
        differs |= column[1:] != column[:-1]
    return np.append(True, differs)
