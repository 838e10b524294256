"""The frame that the interval rules of other crawlers share: a page has a time at which it is due, and no other rank.

`interval_picks` is the choice: pages that are due, most overdue first. A rule may leave some of the budget unspent;
with `fill` the rest goes to the pages that come due soonest, so that rules can be compared at equal budgets.

`IntervalRule` is the memory: a rule says what it believes of a page that it has no memory of (`start`) and what a
visit makes of that (`step`, a pure function over columns); the columns are kept in the book from cycle to cycle.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks

Times = NDArray[np.float64]
Flags = NDArray[np.bool_]
State = TypeVar("State", bound=NamedTuple)

_FARTHEST = 1e12
"""Scores are finite: a page that was never visited is overdue by this many seconds."""


def interval_picks(
    book: Book, due: Times, budget: int, *, reason: str, fill: bool = False
) -> Generator[Picks, Outcomes, None]:
    """Known pages whose time has come, most overdue first; then, to `fill` the budget, those whose time comes next.

    A page whose time is +inf is never chosen. The score is by how many seconds a page is overdue.

    >>> book = Book.blank(3, now=100.0)
    >>> for picks in interval_picks(book, np.array([90.0, 200.0, 80.0]), 3, reason="is due", fill=True):
    ...     print(picks.pages, picks.score, picks.reason)
    [2 0] [20. 10.] is due
    [1] [-100.] comes due soonest among those that are not due yet
    """
    come = due <= book.now
    left = budget
    for group, why in ((come, reason), (~come & (due < np.inf) & fill, _SOONEST)):
        pages = np.flatnonzero(book.known & group)
        pages = pages[np.argsort(due[pages], kind="stable")][: max(0, left)]
        if len(pages):
            yield Picks(pages, np.clip(book.now - due[pages], -_FARTHEST, _FARTHEST), why)
        left -= len(pages)


_SOONEST = "comes due soonest among those that are not due yet"


class IntervalRule(Generic[State]):
    """A policy that gives each page its next time from what it remembers of it. `State` has a column `due`."""

    name: ClassVar[str]
    fill: bool

    def start(self, book: Book) -> State:
        """What is believed of each page before the rule has seen a visit of it; `due` is -inf for the never visited."""
        raise NotImplementedError

    def step(self, state: State, what: NDArray[np.int8], at: Times) -> State:
        """What visits at these times with these outcomes make of the state of their pages. Changes nothing in place."""
        raise NotImplementedError

    def when(self, state: State, now: float) -> Times:  # noqa: ARG002
        """When each page is due, looked at now."""
        due: Times = state.due  # type: ignore[attr-defined]
        return due

    def remembered(self, book: Book) -> State:
        """The state of every page: as kept, or as it starts."""
        state = self.start(book)
        for key, column in state._asdict().items():
            kept = book.memory.get(f"{self.name}.{key}")
            if kept is not None:
                column[: len(kept)] = kept
        return state

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:  # noqa: ARG002
        """One batch; two when the budget is to be filled."""
        due = self.when(self.remembered(book), book.now)
        yield from interval_picks(book, due, budget, reason=f"is due by the rule of {self.name}", fill=self.fill)

    def learn(self, book: Book, seen: Outcomes, at: Times) -> None:
        """Take in a cycle."""
        state = self.remembered(book)
        before = type(state)._make(column[seen.pages] for column in state)
        after = self.step(before, seen.what, np.broadcast_to(np.asarray(at, np.float64), len(seen)))
        for key, column in state._asdict().items():
            column[seen.pages] = getattr(after, key)
            book.memory[f"{self.name}.{key}"] = column


def first_due(book: Book, interval: float) -> Times:
    """When pages are due of which only the book knows: an interval after their last visit, or at once."""
    due: Times = book.last_try + interval
    return due


def demand(policy: str, least: float, most: float, **given: Any) -> None:
    """Refuse parameters that are out of range.

    >>> demand("nutch", 0, 1, inc=0.4, dec=2)
    Traceback (most recent call last):
    recrawl.errors.UsageError: nutch's dec must be from 0 to 1, not 2
    """
    for key, value in given.items():
        if not least <= value <= most:
            raise UsageError(f"{policy}'s {key} must be from {least:g} to {most:g}, not {value}")
