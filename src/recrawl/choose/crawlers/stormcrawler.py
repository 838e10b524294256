"""Policy `stormcrawler`: StormCrawler's adaptive scheduler, with intervals in whole minutes."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import IntervalRule, check_order, check_range, first_due
from recrawl.columns import MINUTE, Flags, Floats, Ints
from recrawl.model import Outcome

_MAX_FAILURES = 3
"""Failures in a row after which a page counts as an error."""
_MAX_MINUTES = 1e9


class StormState(NamedTuple):
    """One entry per page."""

    interval: Floats
    """Whole minutes."""
    due: Floats
    signed: Flags
    """An older signature exists, so a visit can detect a change."""
    errors: Ints
    """Failures in a row."""


class StormCrawler(IntervalRule[StormState]):
    """StormCrawler's AdaptiveScheduler over its DefaultScheduler.

    Without a change the interval grows by the share `incr`, up to `max`. After a change it moves the share `decr` of
    the way down to `min`. A failure deletes the page's signature and resets the interval. Times are in minutes, as in
    its configuration, and truncated to whole minutes.

    Parameters
    ----------
    interval
        The first interval (fetchInterval.default).
    min, max
        Bounds of the interval.
    incr, decr
        Shares by which it grows and shrinks.
    fetch_error
        The wait after a failure.
    error
        The wait after three failures in a row, or when the page is gone; a negative value means for ever.
    fill
        Spend unused budget on the pages that come due soonest. StormCrawler leaves it unspent.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=864000.0)
    >>> book.last_try[:2] = 820800.0, 172800.0
    >>> batches(StormCrawler(), book, budget=3)
    [[2, 1]]

    Source: Apache StormCrawler, AdaptiveScheduler and DefaultScheduler.
    """

    name: ClassVar[str] = "stormcrawler"
    source: ClassVar[str] = "practice: Apache StormCrawler's AdaptiveScheduler (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        *,
        interval: float = 1440,
        min: float = 60,  # noqa: A002
        max: float = 20160,  # noqa: A002
        incr: float = 0.5,
        decr: float = 0.5,
        fetch_error: float = 120,
        error: float = -1,
        fill: bool = False,
    ) -> None:
        check_range(self.name, 1, _MAX_MINUTES, interval=interval, min=min, max=max)
        check_range(self.name, 0, 1000, incr=incr)
        check_range(self.name, 0, 1, decr=decr)
        check_range(self.name, 0, _MAX_MINUTES, fetch_error=fetch_error)
        check_range(self.name, -1, _MAX_MINUTES, error=error)
        check_order(self.name, "min", min, max)
        self.interval, self.min, self.max = interval, min, max
        self.incr, self.decr, self.fetch_error, self.error = incr, decr, fetch_error, error
        self.fill = fill

    def start(self, book: Book) -> StormState:
        """A page that was visited before starts with the first interval, counted from its last visit."""
        return StormState(
            np.full(len(book), float(self.interval)),
            first_due(book, self.interval * MINUTE),
            book.visits > 0,
            book.failures.astype(np.int64),
        )

    def step(self, state: StormState, what: NDArray[np.int8], at: Floats) -> StormState:
        """Apply the rule."""
        failed = (what == Outcome.FAILED) | (what == Outcome.GONE)
        errors = np.where(failed, state.errors + 1, 0)
        is_error = (what == Outcome.GONE) | (errors >= _MAX_FAILURES)
        grown = np.minimum(np.trunc(state.interval * (1 + self.incr)), self.max)
        shrunk = np.trunc((1 - self.decr) * state.interval + self.decr * self.min)
        reset = failed | ~state.signed | (what == Outcome.NEW)
        interval = np.where(reset, self.interval, np.where(what == Outcome.UNCHANGED, grown, shrunk))
        pause = np.where(is_error, self.error if self.error >= 0 else np.inf, self.fetch_error)
        wait = np.where(failed, pause, interval)
        return StormState(interval, at + wait * MINUTE, ~failed, errors)
