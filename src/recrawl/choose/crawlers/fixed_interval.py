"""Policy `fixed-interval`: visit every page again after a fixed number of days."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import IntervalPolicy, first_due, interval_rankings
from recrawl.choose.shards.offers import RankedPages
from recrawl.columns import DAY
from recrawl.errors import UsageError


class FixedInterval(IntervalPolicy):
    """Visits pages whose last visit was at least `days` days ago, most overdue first.

    Spends less than the budget when fewer pages are due. Pages that were never visited come first.

    Parameters
    ----------
    days
        The interval between two visits of a page, in days.
    fill
        Spend unused budget on the pages that come due soonest.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=10 * DAY)
    >>> book.last_try[:] = [9 * DAY, 2 * DAY, 1 * DAY]
    >>> batches(FixedInterval(days=7), book, budget=3)
    [[2, 1]]

    Source: the default of Nutch, Frontera, changedetection.io and others.
    """

    name: ClassVar[str] = "fixed-interval"
    source: ClassVar[str] = "practice: Nutch's DefaultFetchSchedule, changedetection.io (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, days: float = 7.0, fill: bool = False) -> None:
        if not 0 <= days < float("inf"):
            raise UsageError(f"fixed-interval's days must be 0 or more, not {days}")
        self.days = days
        self.fill = fill

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:  # noqa: ARG002
        """Yield the due pages; with `fill`, then the pages that come due next."""
        reason = f"it was not visited for {self.days:g} days or more"
        yield from interval_rankings(book, first_due(book, self.days * DAY), reason=reason, fill=self.fill)
