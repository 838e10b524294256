"""The rule of most crawlers and site watchers in use: look again after so many days."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import first_due, interval_picks
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError

DAY = 86400.0


class FixedInterval:
    """Pages whose last visit lies at least `days` back, most overdue first (spec P9).

    Spends less than the budget when fewer pages are due. Pages never visited are due at once, before all others.

    Parameters
    ----------
    days
        The interval.
    fill
        Give budget that is left over to the pages that come due soonest.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(3, now=10 * DAY)
    >>> book.last_try[:] = book.last_visit[:] = [9 * DAY, 2 * DAY, 1 * DAY]
    >>> [seen.pages.tolist() for seen in drive(FixedInterval(days=7), Still(), book, budget=3, seed=1)]
    [[2, 1]]

    Source: the default of Nutch, Frontera, changedetection.io and others.
    """

    name: ClassVar[str] = "fixed-interval"
    source: ClassVar[str] = "practice: Nutch's DefaultFetchSchedule, changedetection.io (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, days: float = 7.0, fill: bool = False) -> None:
        if not 0 <= days < float("inf"):
            raise UsageError(f"fixed-interval's days must be zero or more, not {days}")
        self.days = days
        self.fill = fill

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:  # noqa: ARG002
        """One batch; two when the budget is to be filled."""
        reason = f"was last visited {self.days:g} or more days ago"
        yield from interval_picks(book, first_due(book, self.days * DAY), budget, reason=reason, fill=self.fill)
