"""The laws of delivery: what a failure means for an entry and for its receiver. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from recrawl.columns import HOUR
from recrawl.record.rows import OutboxState
from recrawl.repository.outgoing import NotSent

MAX_TRIES = 12
"""An entry that failed so often is parked."""
FIRST_PAUSE, LAST_PAUSE = 30.0, 6 * HOUR
_MANY_FAILURES, _MANY_REFUSALS = 3, 20
"""So many calls in a row that failed, or were refused, mean that it is the receiver that fails, not an entry."""
_REFUSED_PAUSE = 60.0
"""Seconds after so many refusals; then as many entries are tried again, for they may be of one site."""


class NextTry(NamedTuple):
    """What becomes of an entry that was not delivered."""

    state: OutboxState
    """WAITING or PARKED."""
    tries: int
    due: float


class Health(NamedTuple):
    """What is known of a receiver from its last calls."""

    failures: int = 0
    """Calls in a row that failed and may succeed later."""
    refusals: int = 0
    """Entries in a row that were refused for good."""
    until: float = 0.0
    """Nothing is sent to it before."""

    @property
    def doubtful(self) -> bool:
        """Whether to send one entry alone, to see whether it is the receiver or an entry that fails."""
        return self.failures > 0


def pause(tries: int) -> float:
    """Seconds from a failed try to the next one.

    >>> pause(1), pause(2), pause(12)
    (30.0, 60.0, 21600.0)
    """
    return min(LAST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries - 1, 30))


def verdict(error: NotSent, tries: int, now: float) -> NextTry:
    """What follows for an entry that was sent `tries` times before, and failed again."""
    if error.permanent or tries + 1 >= MAX_TRIES:
        return NextTry(OutboxState.PARKED, tries + 1, now)
    return NextTry(OutboxState.WAITING, tries + 1, now + max(pause(tries + 1), min(error.wait, LAST_PAUSE)))


def after_call(health: Health, error: NotSent | None, now: float) -> Health:
    """What is known of a receiver after a call."""
    if error is None:
        return Health()
    if error.permanent:
        if health.refusals + 1 < _MANY_REFUSALS:
            return health._replace(refusals=health.refusals + 1)
        return health._replace(refusals=0, until=max(health.until, now + _REFUSED_PAUSE))
    failures = health.failures + 1
    until = health.until
    if failures >= _MANY_FAILURES:
        until = now + pause(failures - _MANY_FAILURES + 1)
    return health._replace(failures=failures, until=max(until, now + min(error.wait, LAST_PAUSE)))


class Numbered(Protocol):
    """Something with a number."""

    @property
    def id(self) -> int:
        """The number."""


Item = TypeVar("Item", bound=Numbered)


def deliver_apart(
    items: Sequence[Item],
    deliver: Callable[[Sequence[Item]], Mapping[int, NotSent]],
    shorten: Callable[[Item], Item | None],
) -> Iterator[tuple[Item, NotSent | None]]:
    """Deliver a batch, and yield what came of each item. One bad item does not harm the others.

    A batch that is refused for good is halved until the item is found that is to blame; what is too large is sent again
    as `shorten` leaves it. `deliver` raises `NotSent` for a whole batch, or returns the failures of single items. A
    batch that fails for now raises `NotSent`: it may be the receiver.
    """
    try:
        failed = deliver(items)
    except NotSent as error:
        if len(items) > 1 and not error.permanent:
            raise
        if len(items) > 1:
            middle = len(items) // 2
            yield from deliver_apart(items[:middle], deliver, shorten)
            yield from deliver_apart(items[middle:], deliver, shorten)
            return
        failed = {items[0].id: error}
    for item in items:
        problem = failed.get(item.id)
        if problem is not None and problem.too_large and (short := shorten(item)) is not None:
            try:
                problem = deliver([short]).get(item.id)
            except NotSent as error:
                problem = error
        yield item, problem
