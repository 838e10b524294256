"""Apache ManifoldCF's continuous crawling: the only peer that goes by a page's average time between changes."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import IntervalRule, Times, demand, first_due
from recrawl.errors import UsageError
from recrawl.model import Outcome

_MINUTE = 60.0
_LONGEST = 1e9


class ManifoldState(NamedTuple):
    """One value per page; times are -inf for a page that was never taken in."""

    first: Times
    """When it was first taken in."""
    last: Times
    """When it was last seen, changed or not: ManifoldCF's "last ingest" moves with every check."""
    changes: NDArray[np.int64]
    """How often it was taken in, the first time included."""
    due: Times


class ManifoldCF(IntervalRule[ManifoldState]):
    """The next visit lies `interval` plus the page's average time between changes ahead, at most `max` (spec P9).

    The average is (last visit - first visit) / changes, where the first download counts as a change. ManifoldCF has
    both times set per job; the defaults here are a day and thirty. A failure leaves the average as it is.

    Parameters
    ----------
    interval
        Minutes that are always waited.
    max
        The longest wait, in minutes.
    fill
        Give budget that is left over to the pages that come due soonest. ManifoldCF itself leaves it.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(3, now=10 * 86400.0)
    >>> book.last_try[:2] = [9.5 * 86400, 2 * 86400]
    >>> [seen.pages.tolist() for seen in drive(ManifoldCF(), Still(), book, budget=3, seed=1)]
    [[2, 1]]

    Source: Apache ManifoldCF, continuous jobs, IncrementalIngester.
    """

    name: ClassVar[str] = "manifoldcf"
    source: ClassVar[str] = "practice: Apache ManifoldCF's continuous jobs (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, interval: float = 1440, max: float = 43200, fill: bool = False) -> None:  # noqa: A002
        demand(self.name, 0, _LONGEST, interval=interval, max=max)
        if interval > max:
            raise UsageError(f"manifoldcf's interval must not be over its max: {interval:g} is over {max:g}")
        self.interval, self.max, self.fill = interval, max, fill

    def start(self, book: Book) -> ManifoldState:
        """A page that was visited before was taken in then, as far as the book can tell."""
        first = np.where(book.visits > 0, np.minimum(book.last_visit, book.last_change), -np.inf)
        changes = np.where(book.visits > 0, np.maximum(book.changes, 1), 0).astype(np.int64)
        return ManifoldState(first, book.last_visit.copy(), changes, first_due(book, self.interval * _MINUTE))

    def step(self, state: ManifoldState, what: NDArray[np.int8], at: Times) -> ManifoldState:
        """The rule."""
        answered = (what != Outcome.FAILED) & (what != Outcome.GONE)
        begun = answered & (state.first == -np.inf)
        taken_in = begun | (answered & (what != Outcome.UNCHANGED))
        gone = what == Outcome.GONE
        first = np.where(gone, -np.inf, np.where(begun, at, state.first))
        last = np.where(gone, -np.inf, np.where(answered, at, state.last))
        changes = np.where(gone, 0, state.changes + taken_in)
        between = np.zeros(len(at))
        np.subtract(last, first, out=between, where=first > -np.inf)
        average = between / np.maximum(changes, 1)
        wait = np.minimum(self.interval * _MINUTE + average, self.max * _MINUTE)
        return ManifoldState(first, last, changes, at + wait)
