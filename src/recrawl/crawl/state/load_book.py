"""The book as it was when a cycle began, also for a cycle that is being resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, HOUR, Flags, Floats, Int32s, Ints
from recrawl.crawl.state.copies import worth_a_visit
from recrawl.model import Outcomes, State
from recrawl.record.rows import CycleRow
from recrawl.record.store import Store
from recrawl.times import SKEW

FIRST_BACK_OFF = HOUR
MAX_BACK_OFF = 30 * DAY
_LONG_AGO = 30 * DAY
_VISITABLE = (State.FOUND, State.LIVE, State.MISSING)


def load_book(store: Store, cycle: CycleRow, limits: Mapping[int, int]) -> Book:
    """The book at the cycle's start. `limits` are page limits by site.

    Pages found since then are unknown, and visits made since then are undone: a crashed cycle resumes from the book it
    began with, so that its policy makes the same choices again.
    """
    columns: dict[str, Any] = {**store.pages.book_columns()}
    columns |= {name: past(columns[name], cycle.started) for name in ("last_try", "last_visit", "last_change")}
    state = columns.pop("state")
    found_in = columns.pop("cycle")
    existed = found_in < cycle.id
    book = Book(now=cycle.started, known=np.isin(state, _VISITABLE) & existed, **columns)
    touched = step_back(book, store, cycle.first_visit)
    book.known &= worth_a_visit(book, store)
    book.known[touched] = existed[touched]  # they were chosen, so they were known then
    failing = np.flatnonzero(book.failures)
    book.known[failing] &= retry_allowed(book.failures[failing], book.last_try[failing], book.now)
    _apply_limits(book, limits)
    return book


def step_back(book: Book, store: Store, first_visit: int) -> Ints:
    """Undo the visits from this number on; returns their pages. The caller sets `known`."""
    touched = store.visits.pages_since(first_visit)
    if len(touched):
        book.forget(touched)
        past = store.visits.history(touched, first_visit)
        for rows in split_repeats(past["page"]):
            outcomes = Outcomes(past["page"][rows], past["outcome"][rows])
            book.note(outcomes, past["at"][rows], past["held"][rows] == 0)
    return touched


def split_repeats(pages: Ints) -> Iterator[Ints]:
    """Split visits so that no part has a page twice: the rows of all first visits, of all second visits, ...

    >>> [rows.tolist() for rows in split_repeats(np.array([7, 8, 7, 9, 7]))]
    [[0, 1, 3], [2], [4]]
    """
    order = np.argsort(pages, kind="stable")
    ordered = pages[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(pages) else np.zeros(0, np.int64)
    turn = np.empty(len(pages), np.int64)
    turn[order] = np.arange(len(pages)) - np.repeat(starts, np.diff(np.r_[starts, len(pages)]))
    for k in range(int(turn.max(initial=-1)) + 1):
        yield np.flatnonzero(turn == k)


def mark_before(store: Store, upto: int) -> Floats:
    """A mark of the visits before a number: page, time and outcome of the last one."""
    last = store.visits.between(upto - 1, upto)
    return np.array([last["page"], last["at"], last["outcome"]], np.float64)


def past(times: Floats, now: float) -> Floats:
    """Stored times; one in the future, stored while the clock was wrong, counts as long ago: 30 days.

    >>> past(np.array([-np.inf, 5.0, 40e6]), 20e6).tolist() == [-np.inf, 5.0, 20e6 - 30 * DAY]
    True
    """
    return np.where(times > now + SKEW, now - _LONG_AGO, times)


def retry_allowed(failures: Int32s, last_try: Floats, now: float) -> Flags:
    """False for pages whose back-off after failed visits is not over."""
    return now >= retry_time(failures, past(last_try, now))


def retry_time(failures: Int32s, last_try: Floats) -> Floats:
    """When each page's back-off after failed visits is over: 1 h, doubling up to 30 days; -inf without failures.

    >>> retry_time(np.array([0, 1, 3], np.int32), np.array([5.0, 5.0, 5.0])).tolist()
    [-inf, 3605.0, 14405.0]
    """
    wait = np.minimum(FIRST_BACK_OFF * 2.0 ** np.minimum(failures - 1, 20), MAX_BACK_OFF)
    return np.where(failures == 0, -np.inf, last_try + wait)


def _apply_limits(book: Book, limits: Mapping[int, int]) -> None:
    """Hide unvisited pages beyond the page limit of their site from policies."""
    for site, limit in limits.items():
        unseen = np.flatnonzero(book.known & (book.site == site) & (book.visits == 0))
        have = int(np.count_nonzero((book.site == site) & (book.visits > 0)))
        book.known[unseen[max(0, limit - have) :]] = False
