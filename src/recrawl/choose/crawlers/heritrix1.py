"""Policy `heritrix1`: the adaptive revisit rule of Heritrix 1, which later versions no longer have."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import IntervalRule, check_order, check_range, first_due
from recrawl.columns import Flags, Floats
from recrawl.model import Outcome

_MAX_SECONDS = 1e11


class HeritrixState(NamedTuple):
    """One entry per page."""

    wait: Floats
    """Seconds."""
    due: Floats
    fetched: Flags
    """Downloaded before."""


class Heritrix1(IntervalRule[HeritrixState]):
    """Heritrix 1's WaitEvaluator: a change divides the wait by a factor, no change multiplies it.

    A failure leaves the wait unchanged. Heritrix can also add the time by which a visit was overdue; that option is off
    by default there and not implemented here. Times are in seconds, as in its configuration.

    Parameters
    ----------
    wait
        The first wait.
    min, max
        Bounds of the wait.
    factor
        The wait is divided by it after a change and multiplied by it after an unchanged visit.
    fill
        Spend unused budget on the pages that come due soonest. Heritrix leaves it unspent.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=864000.0)
    >>> book.last_try[:2] = 820800.0, 172800.0
    >>> batches(Heritrix1(), book, budget=3)
    [[2, 1]]

    Source: Heritrix 1, AdaptiveRevisitFrontier and WaitEvaluator.
    """

    name: ClassVar[str] = "heritrix1"
    source: ClassVar[str] = "practice: Heritrix 1's WaitEvaluator (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        *,
        wait: float = 86_400.0,
        min: float = 3600.0,  # noqa: A002
        max: float = 2_419_200.0,  # noqa: A002
        factor: float = 1.5,
        fill: bool = False,
    ) -> None:
        check_range(self.name, 1, _MAX_SECONDS, wait=wait, min=min, max=max)
        check_range(self.name, 1, 1000, factor=factor)
        check_order(self.name, "min", min, max)
        self.wait, self.min, self.max, self.factor, self.fill = wait, min, max, factor, fill

    def start(self, book: Book) -> HeritrixState:
        """A page that was visited before starts with the first wait, counted from its last visit."""
        return HeritrixState(np.full(len(book), float(self.wait)), first_due(book, self.wait), book.visits > 0)

    def step(self, state: HeritrixState, what: NDArray[np.int8], at: Floats) -> HeritrixState:
        """Apply the rule."""
        failed = what == Outcome.FAILED
        compared = state.fetched & ~failed & (what != Outcome.NEW)
        moved = np.where(what == Outcome.UNCHANGED, state.wait * self.factor, state.wait / self.factor)
        wait = np.where(compared, np.clip(moved, self.min, self.max), state.wait)
        return HeritrixState(wait, at + wait, state.fetched | ~failed)
