"""Apache Nutch's adaptive fetch schedule: the interval shrinks when a page changed and grows when it did not."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import Flags, IntervalRule, Times, demand, first_due
from recrawl.errors import UsageError
from recrawl.model import Outcome

_DAY = 86400.0
_TRIES = 3
"""Failures in a row after which Nutch takes a page for gone, and waits by the rule for gone pages."""
_LONGEST = 1e11


class NutchState(NamedTuple):
    """One value per page."""

    interval: Times
    """Seconds, whole ones as in Nutch."""
    modified: Times
    """When a change was last seen; -inf where that is forgotten."""
    due: Times
    signed: Flags
    """There is an older signature to compare with: without one a visit cannot tell whether the page has changed."""
    retries: NDArray[np.int64]


class Nutch(IntervalRule[NutchState]):
    """Nutch's AdaptiveFetchSchedule with what its crawl database does around it (spec P9).

    A change multiplies the interval by 1 - dec, none by 1 + inc. With `sync` the next visit is moved towards the time
    of the last change, as Nutch does by default; where `max` binds, this visits a page that does not change ever
    faster for a while. An interval over `cap` makes Nutch forget the page's past: the interval becomes 0.9 `cap` and
    the next visit cannot tell change. Times are in seconds, as in nutch-default.xml; parameters have its values.

    Parameters
    ----------
    sync
        Shift the next visit by the age of the last change (db.fetch.schedule.adaptive.sync_delta).
    inc, dec
        Rates by which the interval grows and shrinks.
    rate
        The share of the age by which a visit is shifted (sync_delta_rate).
    min, max
        Bounds of the interval.
    interval
        The first interval (db.fetch.interval.default).
    cap
        The longest interval of all (db.fetch.interval.max).
    fill
        Give budget that is left over to the pages that come due soonest. Nutch itself leaves it.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(3, now=100 * _DAY)
    >>> book.last_try[:2] = [90 * _DAY, 60 * _DAY]
    >>> [seen.pages.tolist() for seen in drive(Nutch(), Still(), book, budget=3, seed=1)]
    [[2, 1]]

    Source: Apache Nutch 1.23, AdaptiveFetchSchedule, AbstractFetchSchedule and CrawlDbReducer; NUTCH-1564.
    """

    name: ClassVar[str] = "nutch"
    source: ClassVar[str] = "practice: Apache Nutch's AdaptiveFetchSchedule (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        *,
        sync: bool = True,
        inc: float = 0.4,
        dec: float = 0.2,
        rate: float = 0.3,
        min: float = 60.0,  # noqa: A002
        max: float = 31_536_000.0,  # noqa: A002
        interval: float = 2_592_000.0,
        cap: float = 7_776_000.0,
        fill: bool = False,
    ) -> None:
        demand(self.name, 0, 1, dec=dec, rate=rate)
        demand(self.name, 0, 1000, inc=inc)
        demand(self.name, 1, _LONGEST, min=min, max=max, interval=interval, cap=cap)
        if min > max:
            raise UsageError(f"nutch's min must not be over its max: {min:g} is over {max:g}")
        self.sync, self.inc, self.dec, self.rate = sync, inc, dec, rate
        self.min, self.max, self.interval, self.cap = min, max, interval, cap
        self.fill = fill

    def start(self, book: Book) -> NutchState:
        """A page that was visited before has the first interval, from its last visit."""
        return NutchState(
            np.full(len(book), float(self.interval)),
            book.last_change.copy(),
            first_due(book, self.interval),
            book.visits > 0,
            book.failures.astype(np.int64),
        )

    def when(self, state: NutchState, now: float) -> Times:
        """The generator does not believe times that lie further ahead than the longest interval."""
        return np.where((state.due - now > self.cap) & (state.due < np.inf), now, state.due)

    def step(self, state: NutchState, what: NDArray[np.int8], at: Times) -> NutchState:
        """The rule, as the code has it and not as its comments do."""
        failed = what == Outcome.FAILED
        retries = np.where(failed, state.retries + 1, 0)
        given_up = (what == Outcome.GONE) | (failed & (retries >= _TRIES))
        fetched = self._fetched(state, what, at)
        longer = state.interval * 1.5
        longer = np.trunc(np.where(longer < self.cap, longer, 0.9 * self.cap))
        return NutchState(
            interval=np.where(given_up, longer, np.where(failed, state.interval, fetched.interval)),
            modified=np.where(failed | given_up, state.modified, fetched.modified),
            due=np.where(given_up, at + longer, np.where(failed, at + _DAY, fetched.due)),
            signed=np.where(failed | given_up, state.signed, fetched.signed),
            retries=retries,
        )

    def _fetched(self, state: NutchState, what: NDArray[np.int8], at: Times) -> NutchState:
        """What becomes of pages that were downloaded."""
        changed = state.signed & (what == Outcome.CHANGED)
        same = state.signed & (what == Outcome.UNCHANGED)
        factor = np.where(changed, 1 - self.dec, np.where(same, 1 + self.inc, 1.0))
        interval = state.interval * factor
        modified = np.where(changed | (state.modified == -np.inf), at, state.modified)
        base = at
        if self.sync:
            age = np.maximum(at - modified, 0.0)
            interval = np.maximum(interval, age)
            base = at - self._offset(age)
        interval = np.clip(interval, self.min, self.max)
        due = base + interval
        interval = np.trunc(interval)
        forget = interval > self.cap
        return NutchState(
            interval=np.where(forget, np.trunc(0.9 * self.cap), interval),
            modified=np.where(forget, -np.inf, modified),
            due=due,
            signed=~forget,
            retries=state.retries,
        )

    def _offset(self, age: Times) -> Times:
        """By how much a visit is moved towards the last change, to the millisecond.

        Nutch means to bound it by `max`, but divides whole numbers, so beyond that bound nothing is moved at all.
        """
        offset = np.round(age * self.rate, 3)
        bounded = np.floor_divide(offset, age, out=np.zeros_like(age), where=age > 0) * self.max
        return np.where(offset > self.max, bounded, offset)
