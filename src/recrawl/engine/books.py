"""The book as the store has it: what was known when a cycle began, even if the cycle has been under way since."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.model import Outcomes, State
from recrawl.record.rows import CycleRow
from recrawl.record.store import Store

FIRST_BACK_OFF = 3600.0
LONGEST_BACK_OFF = 30 * 86400.0
_VISITABLE = (State.FOUND, State.LIVE, State.MISSING)


def load_book(store: Store, cycle: CycleRow, limits: Mapping[int, int]) -> Book:
    """What was known at the cycle's start. `limits` bounds the number of pages, by site.

    Pages found since then are left out, and visits made since then are taken back: a cycle that crashed is resumed
    from the very book that it began with, so that its policy makes the same choices again.
    """
    columns = store.book_columns()
    state = columns.pop("state")
    found_in = columns.pop("cycle")
    known = np.isin(state, _VISITABLE) & (found_in < cycle.id)
    book = Book(now=cycle.started, known=known, **columns)
    _step_back(book, store, cycle, found_in < cycle.id)
    book.known &= rested(book.failures, book.last_try, book.now)
    _keep_limits(book, limits)
    return book


def _step_back(book: Book, store: Store, cycle: CycleRow, were_there: NDArray[np.bool_]) -> None:
    touched = store.pages_visited_since(cycle.first_visit)
    if not len(touched):
        return
    book.forget(touched)
    past = store.history(touched, cycle.first_visit)
    # Visits of one page come one after another: the k-th visits of all pages are noted in one go.
    order = np.argsort(past["page"], kind="stable")
    pages = past["page"][order]
    starts = np.flatnonzero(np.r_[True, pages[1:] != pages[:-1]]) if len(pages) else np.zeros(0, np.int64)
    turn = np.arange(len(pages)) - np.repeat(starts, np.diff(np.r_[starts, len(pages)]))
    for k in range(int(turn.max()) + 1 if len(turn) else 0):
        rows = order[turn == k]
        held = rows[past["held"][rows] != 0]  # never asked for: no mark against the page
        book.last_try[past["page"][held]] = past["at"][held]
        rows = rows[past["held"][rows] == 0]
        book.note(Outcomes(past["page"][rows], past["outcome"][rows]), past["at"][rows])
    book.known[touched] = were_there[touched]  # they were chosen, so they were known


def rested(failures: NDArray[np.int32], last_try: NDArray[np.float64], now: float) -> NDArray[np.bool_]:
    """False for pages that failed lately: they are left alone for longer and longer."""
    wait = np.minimum(FIRST_BACK_OFF * 2.0 ** np.minimum(failures - 1, 20), LONGEST_BACK_OFF)
    ready: NDArray[np.bool_] = (failures == 0) | (now >= last_try + wait)
    return ready


def _keep_limits(book: Book, limits: Mapping[int, int]) -> None:
    """Where a site may have only so many pages, pages beyond that are not known to policies."""
    for site, limit in limits.items():
        unseen = np.flatnonzero(book.known & (book.site == site) & (book.visits == 0))
        have = int(np.count_nonzero((book.site == site) & (book.visits > 0)))
        book.known[unseen[max(0, limit - have) :]] = False
