"""The adaptive revisiting of Heritrix 1, which later versions no longer have."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import Flags, IntervalRule, Times, demand, first_due
from recrawl.errors import UsageError
from recrawl.model import Outcome

_LONGEST = 1e11


class HeritrixState(NamedTuple):
    """One value per page."""

    wait: Times
    """Seconds."""
    due: Times
    fetched: Flags
    """It was downloaded before."""


class Heritrix1(IntervalRule[HeritrixState]):
    """Heritrix 1's WaitEvaluator: a change divides the wait by a factor, none multiplies it (spec P9).

    A failure leaves the wait as it is. Heritrix could also add the time by which a visit was overdue; that is off by
    default there and not offered here. Times are in seconds, as in its configuration.

    Parameters
    ----------
    wait
        The first wait.
    min, max
        Bounds of the wait.
    factor
        What the wait is divided by after a change and multiplied by after none.
    fill
        Give budget that is left over to the pages that come due soonest. Heritrix itself leaves it.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(3, now=10 * 86400.0)
    >>> book.last_try[:2] = [9.5 * 86400, 2 * 86400]
    >>> [seen.pages.tolist() for seen in drive(Heritrix1(), Still(), book, budget=3, seed=1)]
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
        demand(self.name, 1, _LONGEST, wait=wait, min=min, max=max)
        demand(self.name, 1, 1000, factor=factor)
        if min > max:
            raise UsageError(f"heritrix1's min must not be over its max: {min:g} is over {max:g}")
        self.wait, self.min, self.max, self.factor, self.fill = wait, min, max, factor, fill

    def start(self, book: Book) -> HeritrixState:
        """A page that was visited before has the first wait, from its last visit."""
        return HeritrixState(np.full(len(book), float(self.wait)), first_due(book, self.wait), book.visits > 0)

    def step(self, state: HeritrixState, what: NDArray[np.int8], at: Times) -> HeritrixState:
        """The rule."""
        failed = what == Outcome.FAILED
        told = state.fetched & ~failed & (what != Outcome.NEW)
        moved = np.where(what == Outcome.UNCHANGED, state.wait * self.factor, state.wait / self.factor)
        wait = np.where(told, np.clip(moved, self.min, self.max), state.wait)
        return HeritrixState(wait, at + wait, state.fetched | ~failed)
