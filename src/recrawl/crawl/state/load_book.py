"""The book as the store has it: what was known when a cycle began, even if the cycle has been under way since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
    columns: dict[str, Any] = {**store.book_columns()}
    state = columns.pop("state")
    found_in = columns.pop("cycle")
    were_there = found_in < cycle.id
    book = Book(now=cycle.started, known=np.isin(state, _VISITABLE) & were_there, **columns)
    touched = step_back(book, store, cycle.first_visit)
    book.known[touched] = were_there[touched]  # they were chosen, so they were known
    book.known &= retry_allowed(book.failures, book.last_try, book.now)
    _keep_limits(book, limits)
    return book


def step_back(book: Book, store: Store, first_visit: int) -> NDArray[np.int64]:
    """Take back the visits from this number on; the pages they were of. Which pages are known is left to the caller."""
    touched = store.pages_visited_since(first_visit)
    if len(touched):
        book.forget(touched)
        past = store.history(touched, first_visit)
        for rows in turns(past["page"]):
            outcomes = Outcomes(past["page"][rows], past["outcome"][rows])
            book.note(outcomes, past["at"][rows], past["held"][rows] == 0)
    return touched


def turns(pages: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Visits of one page come one after another: the places of the first visits of all pages, of the second, ...

    >>> [rows.tolist() for rows in turns(np.array([7, 8, 7, 9, 7]))]
    [[0, 1, 3], [2], [4]]
    """
    order = np.argsort(pages, kind="stable")
    ordered = pages[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(pages) else np.zeros(0, np.int64)
    turn = np.empty(len(pages), np.int64)
    turn[order] = np.arange(len(pages)) - np.repeat(starts, np.diff(np.r_[starts, len(pages)]))
    for k in range(int(turn.max(initial=-1)) + 1):
        yield np.flatnonzero(turn == k)


def mark(store: Store, upto: int) -> NDArray[np.float64]:
    """By which the visits before a number are known again: page, time and outcome of the last of them."""
    last = store.visits_between(upto - 1, upto)
    return np.array([last["page"], last["at"], last["outcome"]], np.float64)


def retry_allowed(failures: NDArray[np.int32], last_try: NDArray[np.float64], now: float) -> NDArray[np.bool_]:
    """False for pages whose back-off after failed visits is not over: 1 h, doubling up to 30 days."""
    wait = np.minimum(FIRST_BACK_OFF * 2.0 ** np.minimum(failures - 1, 20), LONGEST_BACK_OFF)
    ready: NDArray[np.bool_] = (failures == 0) | (now >= last_try + wait)
    return ready


def _keep_limits(book: Book, limits: Mapping[int, int]) -> None:
    """Where a site may have only so many pages, pages beyond that are not known to policies."""
    for site, limit in limits.items():
        unseen = np.flatnonzero(book.known & (book.site == site) & (book.visits == 0))
        have = int(np.count_nonzero((book.site == site) & (book.visits > 0)))
        book.known[unseen[max(0, limit - have) :]] = False
