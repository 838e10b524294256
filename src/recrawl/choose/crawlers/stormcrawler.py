"""StormCrawler's adaptive scheduler: whole minutes, longer by half when nothing changed, halfway down when it did."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import Flags, IntervalRule, Times, demand, first_due
from recrawl.errors import UsageError
from recrawl.model import Outcome

_MINUTE = 60.0
_TRIES = 3
"""Failures in a row after which a page counts as an error."""
_LONGEST = 1e9


class StormState(NamedTuple):
    """One value per page."""

    interval: Times
    """Minutes, whole ones."""
    due: Times
    signed: Flags
    """There is an older signature to compare with."""
    errors: NDArray[np.int64]
    """Failures in a row."""


class StormCrawler(IntervalRule[StormState]):
    """StormCrawler's AdaptiveScheduler over its DefaultScheduler (spec P9).

    No change: the interval grows by `incr`, up to `max`. A change: it goes the share `decr` of the way down to `min`.
    After a failure the page's signature is forgotten and the interval begins anew. Times are in minutes, as in its
    configuration, and cut to whole ones.

    Parameters
    ----------
    interval
        The first interval (fetchInterval.default).
    min, max
        Bounds of the interval.
    incr, decr
        Rates by which it grows and shrinks.
    fetch_error
        How long a page that failed is left alone.
    error
        How long one that failed three times in a row, or is gone, is left alone; under zero for ever.
    fill
        Give budget that is left over to the pages that come due soonest. StormCrawler itself leaves it.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(3, now=10 * 86400.0)
    >>> book.last_try[:2] = [9.5 * 86400, 2 * 86400]
    >>> [seen.pages.tolist() for seen in drive(StormCrawler(), Still(), book, budget=3, seed=1)]
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
        demand(self.name, 1, _LONGEST, interval=interval, min=min, max=max)
        demand(self.name, 0, 1000, incr=incr)
        demand(self.name, 0, 1, decr=decr)
        demand(self.name, 0, _LONGEST, fetch_error=fetch_error)
        demand(self.name, -1, _LONGEST, error=error)
        if min > max:
            raise UsageError(f"stormcrawler's min must not be over its max: {min:g} is over {max:g}")
        self.interval, self.min, self.max = interval, min, max
        self.incr, self.decr, self.fetch_error, self.error = incr, decr, fetch_error, error
        self.fill = fill

    def start(self, book: Book) -> StormState:
        """A page that was visited before has the first interval, from its last visit."""
        return StormState(
            np.full(len(book), float(self.interval)),
            first_due(book, self.interval * _MINUTE),
            book.visits > 0,
            book.failures.astype(np.int64),
        )

    def step(self, state: StormState, what: NDArray[np.int8], at: Times) -> StormState:
        """The rule."""
        failed = (what == Outcome.FAILED) | (what == Outcome.GONE)
        errors = np.where(failed, state.errors + 1, 0)
        hopeless = (what == Outcome.GONE) | (errors >= _TRIES)
        grown = np.minimum(np.trunc(state.interval * (1 + self.incr)), self.max)
        shrunk = np.trunc((1 - self.decr) * state.interval + self.decr * self.min)
        begun = failed | ~state.signed | (what == Outcome.NEW)
        interval = np.where(begun, self.interval, np.where(what == Outcome.UNCHANGED, grown, shrunk))
        pause = np.where(hopeless, self.error if self.error >= 0 else np.inf, self.fetch_error)
        wait = np.where(failed, pause, interval)
        return StormState(interval, at + wait * _MINUTE, ~failed, errors)
