"""Policy `manifoldcf`: Apache ManifoldCF's continuous jobs, which use a page's average time between changes."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import IntervalRule, check_order, check_range, first_due
from recrawl.columns import MINUTE, Floats, Ints
from recrawl.model import Outcome

_MAX_MINUTES = 1e9


class ManifoldState(NamedTuple):
    """One entry per page; times are -inf for a page that was never ingested."""

    first: Floats
    """When it was first ingested."""
    last: Floats
    """When it was last checked, changed or not: ManifoldCF's "last ingest" moves with every check."""
    changes: Ints
    """How often it was ingested, the first time included."""
    due: Floats


class ManifoldCF(IntervalRule[ManifoldState]):
    """Waits `interval` plus the page's average time between changes, at most `max`.

    The average is (last visit - first visit) / changes, where the first download counts as a change. ManifoldCF sets
    both times per job; the defaults here are 1 day and 30 days. A failure leaves the average unchanged.

    Parameters
    ----------
    interval
        The shortest wait, in minutes.
    max
        The longest wait, in minutes.
    fill
        Spend unused budget on the pages that come due soonest. ManifoldCF leaves it unspent.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=864000.0)
    >>> book.last_try[:2] = 820800.0, 172800.0
    >>> batches(ManifoldCF(), book, budget=3)
    [[2, 1]]

    Source: Apache ManifoldCF, continuous jobs, IncrementalIngester.
    """

    name: ClassVar[str] = "manifoldcf"
    source: ClassVar[str] = "practice: Apache ManifoldCF's continuous jobs (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, interval: float = 1440, max: float = 43200, fill: bool = False) -> None:  # noqa: A002
        check_range(self.name, 0, _MAX_MINUTES, interval=interval, max=max)
        check_order(self.name, "interval", interval, max)
        self.interval, self.max, self.fill = interval, max, fill

    def start(self, book: Book) -> ManifoldState:
        """A page that was visited before was ingested at the earliest time in the book."""
        first = np.where(book.visits > 0, np.minimum(book.last_visit, book.last_change), -np.inf)
        changes = np.where(book.visits > 0, np.maximum(book.changes, 1), 0).astype(np.int64)
        return ManifoldState(first, book.last_visit.copy(), changes, first_due(book, self.interval * MINUTE))

    def step(self, state: ManifoldState, what: NDArray[np.int8], at: Floats) -> ManifoldState:
        """Apply the rule."""
        answered = (what != Outcome.FAILED) & (what != Outcome.GONE)
        is_first = answered & (state.first == -np.inf)
        ingested = is_first | (answered & (what != Outcome.UNCHANGED))
        gone = what == Outcome.GONE
        first = np.where(gone, -np.inf, np.where(is_first, at, state.first))
        last = np.where(gone, -np.inf, np.where(answered, at, state.last))
        changes = np.where(gone, 0, state.changes + ingested)
        between = np.zeros(len(at))
        np.subtract(last, first, out=between, where=first > -np.inf)
        average = between / np.maximum(changes, 1)
        wait = np.minimum(self.interval * MINUTE + average, self.max * MINUTE)
        return ManifoldState(first, last, changes, at + wait)
