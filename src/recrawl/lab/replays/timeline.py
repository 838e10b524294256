"""Where every page stands as a history runs: what is on the web, what the repository holds, since when they differ.

    tape = Tape(history)
    tape.advance(86400.0)           # the web moves on by a day
    what = tape.visit(pages)        # downloads: the repository catches up where they differ

Time only goes forward. All rows are sorted by time once; a step costs what happens in it, not what there is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.histories.history import ABSENT, History
from recrawl.model import Outcome, Pages


class Timeline:
    """A history with a reading head. At time 0 the repository holds every page that is there."""

    def __init__(self, history: History) -> None:
        self.history = history
        page = history.page_of
        rows = np.flatnonzero(_moves(history, page))
        self._rows = rows[np.argsort(history.time[rows], kind="stable")]
        self._times = history.time[self._rows]
        self._pages = page[self._rows]
        self._next = 0
        pages = len(history)
        self.now = 0.0
        self.row = np.full(pages, -1, np.int64)
        """One per page: the row in force, -1 before its birth."""
        self.version = np.full(pages, ABSENT, np.int64)
        self.held = np.full(pages, ABSENT, np.int64)
        """One per page: the version that the repository has."""
        self.held_row = np.full(pages, -1, np.int64)
        self.since = np.full(pages, np.inf)
        """One per page: when the web and the repository parted; inf where they agree."""
        self.there = np.zeros(pages, bool)
        """Pages that can be visited: on the web, or in the repository and not yet seen to be gone."""
        self._back = np.full(pages, -1, np.int64)
        self.advance(0.0)
        self.held[:] = self.version
        self.held_row[:] = self.row
        self.since[:] = np.inf

    def advance(self, to: float) -> None:
        """Let the web move on."""
        end = self._next + int(np.searchsorted(self._times[self._next :], to, side="right"))
        self.now = to
        if end == self._next:
            return
        pages, rows = self._pages[self._next : end], self._rows[self._next : end]
        times = self._times[self._next : end]
        self._next = end
        versions, held = self.history.version[rows], self.held[pages]
        # Of several rows of a page the last assignment stands: here the newest.
        self.row[pages] = rows
        self.version[pages] = versions
        self.there[pages] = (versions != ABSENT) | (held != ABSENT)
        agrees = versions == held
        if agrees.any():
            # A page that went back to what is held parts anew with its first row after that, if there is one.
            place, back = np.arange(len(pages)), pages[agrees]
            self._back[back] = place[agrees]
            self.since[back] = np.inf
            after = place > self._back[pages]
            self._back[back] = -1
            pages, times = pages[after], times[after]
        parting = np.isinf(self.since[pages])
        # Backwards, so that the oldest stands.
        self.since[pages[parting][::-1]] = times[parting][::-1]

    def visit(self, pages: Pages) -> NDArray[np.int8]:
        """Download pages now: their outcomes. The repository holds what is there from now on."""
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


def _moves(history: History, page: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Rows that differ from the one before in anything that a replay looks at; the others need not be read."""
    differs = page[1:] != page[:-1]
    columns: list[NDArray[Any]] = [history.version, history.size]
    columns += [history.links.of_row] if history.links else []
    for column in columns:
        differs |= column[1:] != column[:-1]
    return np.append(True, differs)
