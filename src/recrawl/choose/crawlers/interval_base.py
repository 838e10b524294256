"""What the interval rules share: every page has a time at which it is due, and nothing else ranks it.

`interval_rankings` ranks the due pages, most overdue first. A rule may leave budget unspent; with `fill` the rest goes
to the pages that come due soonest, so that rules can be compared at equal budgets.

`IntervalRule` is the base class of rules that keep a state per page: `start` is the state of a page before its first
observed visit, `step` (a pure function over columns) the state after a visit. The book keeps the columns between
cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.shards.offers import RankedPages
from recrawl.choose.shards.rounds import RankedPolicy
from recrawl.columns import Floats
from recrawl.errors import UsageError
from recrawl.model import Outcomes

State = TypeVar("State", bound=NamedTuple)

_MAX_OVERDUE = 1e12
"""Seconds by which a page that was never visited is overdue; scores must be finite."""
_FILL_REASON = "it came due soonest among the pages that were not due yet"


def interval_rankings(book: Book, due: Floats, *, reason: str, fill: bool = False) -> Iterator[RankedPages]:
    """Yield the known pages that are due, most overdue first; with `fill`, then the pages that come due next.

    A page that is due at +inf is never chosen. The score is the number of seconds by which a page is overdue.

    >>> book = Book.blank(3, now=100.0)
    >>> for ranked in interval_rankings(book, np.array([90.0, 200.0, 80.0]), reason="it was due", fill=True):
    ...     print(ranked.pages, ranked.worth, ranked.reason)
    [2 0] [20. 10.] it was due
    [1] [-100.] it came due soonest among the pages that were not due yet
    """
    is_due = due <= book.now
    for group, why in ((is_due, reason), (~is_due & (due < np.inf) & fill, _FILL_REASON)):
        pages = np.flatnonzero(book.known & group)
        pages = pages[np.argsort(due[pages], kind="stable")]
        yield RankedPages(pages, np.clip(book.now - due[pages], -_MAX_OVERDUE, _MAX_OVERDUE), why)


class IntervalPolicy(RankedPolicy):
    """Base class of policies with the two rankings of `interval_rankings`."""

    rankings_per_cycle: ClassVar[int] = 2


class IntervalRule(IntervalPolicy, Generic[State]):
    """Base class of policies that compute each page's next visit from a state per page; `State` has a column `due`."""

    name: ClassVar[str]
    fill: bool

    def start(self, book: Book) -> State:
        """Return the state of each page before the rule observes a visit; `due` is -inf for pages never visited."""
        raise NotImplementedError

    def step(self, state: State, what: NDArray[np.int8], at: Floats) -> State:
        """Return the state of pages after visits with the outcomes `what` at the times `at`; changes no array."""
        raise NotImplementedError

    def due_times(self, state: State, now: float) -> Floats:  # noqa: ARG002
        """Return the time at which each page is due, as seen at `now`."""
        due: Floats = state.due  # type: ignore[attr-defined]
        return due

    def load(self, book: Book) -> State:
        """Return the state of every page: from the book's memory, or as it starts."""
        state = self.start(book)
        for key, column in state._asdict().items():
            kept = book.memory.get(f"{self.name}.{key}")
            if kept is not None:
                column[: len(kept)] = kept
        return state

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:  # noqa: ARG002
        """Yield the due pages; with `fill`, then the pages that come due next."""
        due = self.due_times(self.load(book), book.now)
        yield from interval_rankings(book, due, reason=f"it was due by the rule of {self.name}", fill=self.fill)

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Update the state of the visited pages."""
        state = self.load(book)
        before = type(state)._make(column[seen.pages] for column in state)
        after = self.step(before, seen.what, np.broadcast_to(np.asarray(at, np.float64), len(seen)))
        for key, column in state._asdict().items():
            column[seen.pages] = getattr(after, key)
            book.memory[f"{self.name}.{key}"] = column


def first_due(book: Book, interval: float) -> Floats:
    """Return when pages without a state are due: an interval after their last visit; -inf if never visited."""
    due: Floats = book.last_try + interval
    return due


def check_range(policy: str, least: float, most: float, **given: Any) -> None:
    """Raise an error for parameters outside a range.

    >>> check_range("nutch", 0, 1, inc=0.4, dec=2)
    Traceback (most recent call last):
    recrawl.errors.UsageError: nutch's dec must be from 0 to 1, not 2
    """
    for key, value in given.items():
        if not least <= value <= most:
            raise UsageError(f"{policy}'s {key} must be from {least:g} to {most:g}, not {value}")


def check_order(policy: str, low: str, low_value: float, high_value: float) -> None:
    """Raise an error if the parameter `low` is greater than the parameter `max`."""
    if low_value > high_value:
        raise UsageError(f"{policy}'s {low} must be at most its max ({high_value:g}), not {low_value:g}")
