"""Policy `nutch`: Apache Nutch's adaptive fetch schedule; a change shortens the interval, no change lengthens it."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import IntervalRule, check_order, check_range, first_due
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.model import Outcome

_MAX_FAILURES = 3
"""Failures in a row after which Nutch treats a page as gone."""
_MAX_SECONDS = 1e11


class NutchState(NamedTuple):
    """One entry per page."""

    interval: Floats
    """Whole seconds, as in Nutch."""
    modified: Floats
    """Time of the last observed change; -inf after a reset."""
    due: Floats
    signed: Flags
    """An older signature exists; without one a visit cannot detect a change."""
    retries: Ints


class Nutch(IntervalRule[NutchState]):
    """Nutch's AdaptiveFetchSchedule together with the rules of its crawl database.

    A change multiplies the interval by 1 - dec, an unchanged visit by 1 + inc. With `sync` the next visit moves towards
    the time of the last change, as Nutch does by default; where `max` applies, a page that does not change is visited
    ever faster for a while. When the interval exceeds `cap`, Nutch resets the page: the interval becomes 0.9 `cap`, and
    the next visit cannot detect a change. Times are in seconds; parameters have the values of nutch-default.xml.

    Parameters
    ----------
    sync
        Shift the next visit by the age of the last change (db.fetch.schedule.adaptive.sync_delta).
    inc, dec
        Shares by which the interval grows and shrinks.
    rate
        The share of the age by which a visit is shifted (sync_delta_rate).
    min, max
        Bounds of the interval.
    interval
        The first interval (db.fetch.interval.default).
    cap
        The longest interval of all (db.fetch.interval.max).
    fill
        Spend unused budget on the pages that come due soonest. Nutch leaves it unspent.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=100 * DAY)
    >>> book.last_try[:2] = [90 * DAY, 60 * DAY]
    >>> batches(Nutch(), book, budget=3)
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
        check_range(self.name, 0, 1, dec=dec, rate=rate)
        check_range(self.name, 0, 1000, inc=inc)
        check_range(self.name, 1, _MAX_SECONDS, min=min, max=max, interval=interval, cap=cap)
        check_order(self.name, "min", min, max)
        self.sync, self.inc, self.dec, self.rate = sync, inc, dec, rate
        self.min, self.max, self.interval, self.cap = min, max, interval, cap
        self.fill = fill

    def start(self, book: Book) -> NutchState:
        """A page that was visited before starts with the first interval, counted from its last visit."""
        return NutchState(
            np.full(len(book), float(self.interval)),
            book.last_change.copy(),
            first_due(book, self.interval),
            book.visits > 0,
            book.failures.astype(np.int64),
        )

    def due_times(self, state: NutchState, now: float) -> Floats:
        """Nutch's generator treats a page that is due later than `cap` from now as due."""
        return np.where((state.due - now > self.cap) & (state.due < np.inf), now, state.due)

    def step(self, state: NutchState, what: NDArray[np.int8], at: Floats) -> NutchState:
        """Apply the rule as Nutch's code has it, which differs from its comments."""
        failed = what == Outcome.FAILED
        retries = np.where(failed, state.retries + 1, 0)
        given_up = (what == Outcome.GONE) | (failed & (retries >= _MAX_FAILURES))
        fetched = self._after_download(state, what, at)
        longer = state.interval * 1.5
        longer = np.trunc(np.where(longer < self.cap, longer, 0.9 * self.cap))
        return NutchState(
            interval=np.where(given_up, longer, np.where(failed, state.interval, fetched.interval)),
            modified=np.where(failed | given_up, state.modified, fetched.modified),
            due=np.where(given_up, at + longer, np.where(failed, at + DAY, fetched.due)),
            signed=np.where(failed | given_up, state.signed, fetched.signed),
            retries=retries,
        )

    def _after_download(self, state: NutchState, what: NDArray[np.int8], at: Floats) -> NutchState:
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
        reset = interval > self.cap
        return NutchState(
            interval=np.where(reset, np.trunc(0.9 * self.cap), interval),
            modified=np.where(reset, -np.inf, modified),
            due=due,
            signed=~reset,
            retries=state.retries,
        )

    def _offset(self, age: Floats) -> Floats:
        """Return by how much a visit moves towards the last change, rounded to milliseconds.

        Nutch intends to bound it by `max` but uses integer division, so beyond that bound the offset is 0.
        """
        offset = np.round(age * self.rate, 3)
        bounded = np.floor_divide(offset, age, out=np.zeros_like(age), where=age > 0) * self.max
        return np.where(offset > self.max, bounded, offset)
