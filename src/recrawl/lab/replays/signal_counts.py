"""Signals since the last visits, counted from readings of dated sources as the live crawler counts them."""

from __future__ import annotations

import numpy as np

from recrawl.book import Hints
from recrawl.columns import Flags, Floats
from recrawl.learn.hints.claims import plausible, signals_change

_MAX_SIGNALS = 30_000


class SignalCounts:
    """What the sources have said about every page; time only moves forward."""

    def __init__(self, kinds: tuple[str, ...], begins: Floats, first: float = np.nan) -> None:
        """`begins`: the start of the pages' clocks, in seconds since 1970; `first`: the date before any reading."""
        self._kinds = kinds
        self._begins = begins
        shape = len(kinds), len(begins)
        self._value = np.full(shape, first)
        """Kind by page: the last valid date, in seconds since 1970; so are the next two."""
        self._signals = np.zeros(shape, np.int16)
        self._claimed = np.full(shape, -np.inf)
        self._until = np.full(shape, -np.inf)
        self._read = -np.inf

    def read(self, dates: Floats, covers: Flags, now: float, last_visit: Floats) -> Hints:
        """Count the signals of a reading and return the hints of the book.

        Parameters
        ----------
        dates
            Kind by page, in seconds since 1970; nan for none.
        covers
            Kind by page: whether the source is there, so that it covers pages for which it ever named a date.
        now, last_visit
            On the clocks of the pages.
        """
        self._signals[:, last_visit >= self._read] = 0
        seen = self._begins + now
        signalled = signals_change(dates, self._value, self._begins + last_visit, seen)
        self._signals[signalled] = np.minimum(self._signals[signalled], _MAX_SIGNALS) + 1
        valid = plausible(dates, seen)
        self._value = np.where(valid, dates, self._value)
        self._claimed = np.where(signalled, dates - self._begins, self._claimed)
        self._until = np.where(covers & ~np.isnan(self._value), now, self._until)
        self._read = now
        return Hints(self._kinds, self._signals.copy(), self._claimed.copy(), self._until.copy())
