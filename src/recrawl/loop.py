"""One cycle: a policy chooses pages, a world visits them, until the budget is spent; then the policy learns.

    run_cycle(policy, chooser, world, book, budget, seed, recorded)

runs live and in the lab. The world is the live web or an archive: one method, `visit`. `drive` is the only code that
touches a policy's generator, `note` the only code by which a policy and a book learn the outcomes.

To resume a crashed cycle, run the same policy again, from the same book and seed, in the world wrapped in `Resumed`:
recorded visits are answered from the record, so the policy makes the same choices; only missing visits are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Chooser, Learner, Policy
from recrawl.columns import Flags, Floats, Int32s
from recrawl.errors import PolicyError
from recrawl.model import Outcomes, Picks

_MAX_EMPTY = 1000
"""Empty batches in a row after which a policy counts as stuck."""


class World(Protocol):
    """Anything that answers visits."""

    def visit(self, picks: Picks) -> Outcomes:
        """Visit the pages. Fewer outcomes than picks mean that the world has stopped: the cycle ends."""
        ...


class Recorded(NamedTuple):
    """Visits to learn from, each page at most once, with the book as it was before them."""

    book: Book
    seen: Outcomes
    at: Floats
    requested: Flags | None = None
    """False for failures without a request; None if all were requested."""


def run_cycle(
    policy: Policy,
    chooser: Chooser,
    world: World,
    book: Book,
    budget: int,
    seed: int,
    recorded: Callable[[], Iterable[Recorded]],
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """One whole cycle: drive the chooser, then note the recorded visits.

    `chooser` is the policy, or the policy within limits (`Budgeted`). `recorded` gives the visits of the cycle once it
    is over. Returns False if `stop` ended the cycle: then nothing is learned until it is resumed and finished.
    """
    for _ in drive(chooser, world, book, budget, seed):
        if stop():
            return False
    if stop():
        return False
    for visits in recorded():
        note(policy, *visits)
    return True


def drive(policy: Chooser, world: World, book: Book, budget: int, seed: int) -> Iterator[Outcomes]:
    """The visits of one cycle: at most `budget` of them, no page twice, only known pages.

    A page that the world did not visit (`SKIPPED`, `HELD`) costs nothing. To spend the budget on other pages instead,
    or to set limits, drive the policy as `choose.budget.budgeted.Budgeted`.
    """
    choice = policy.cycle(book, budget, np.random.default_rng(seed))
    position = np.full(len(book), -1, np.int32)
    left, empty = budget, 0
    try:
        picks = next(choice)
        while left > 0:
            picks = picks.first(left) if len(picks) > left else picks
            _check(picks, position, book)
            seen = world.visit(picks) if len(picks) else Outcomes(picks.pages, np.zeros(0, np.int8))
            yield seen
            left -= int(np.count_nonzero(seen.visited))
            empty = 0 if len(picks) else empty + 1
            if empty > _MAX_EMPTY:
                raise PolicyError(f"a policy yielded more than {_MAX_EMPTY} empty batches in a row")
            if len(seen) < len(picks):
                return
            picks = choice.send(seen)
    except StopIteration:
        return
    finally:
        choice.close()


def note(policy: Policy, book: Book, seen: Outcomes, at: Floats, requested: Flags | None = None) -> None:
    """The end of a cycle: the policy learns from the outcomes, then the book records them."""
    if isinstance(policy, Learner):
        policy.learn(book, seen, at)
    book.known[seen.pages] = True  # they were visited; live, the book may be older than their discovery
    book.note(seen, at, requested)


def _check(picks: Picks, position: Int32s, book: Book) -> None:
    """Raise on invalid picks; `position` holds each page's position in its batch, -1 for pages not chosen so far."""
    if len(picks.pages) != len(picks.score):
        raise PolicyError(f"a policy chose {len(picks.pages)} pages with {len(picks.score)} scores: one each is needed")
    if len(picks) and (picks.pages.min() < 0 or picks.pages.max() >= len(book)):
        raise PolicyError("a policy chose a page that does not exist")
    here = np.arange(len(picks), dtype=np.int32)
    again = (position[picks.pages] >= 0).any()
    position[picks.pages] = here
    if again or (len(here) > 1 and not np.array_equal(position[picks.pages], here)):
        raise PolicyError("a policy chose a page twice in one cycle")
    if not book.known[picks.pages].all():
        raise PolicyError("a policy chose a page that may not be visited")


class Resumed:
    """A world where some visits of the cycle were made before: page number to outcome, and to bytes received."""

    def __init__(self, world: World, recorded: dict[int, int], received: dict[int, int] | None = None) -> None:
        self._world = world
        self._recorded = recorded
        self._received = received

    def visit(self, picks: Picks) -> Outcomes:
        """Answer from the record, or else from the world, in the order of the picks."""
        missing = np.array([page not in self._recorded for page in picks.pages.tolist()], bool)
        fresh: dict[int, int] = {}
        cost: dict[int, int] = self._received or {}
        if missing.any():
            seen = self._world.visit(picks.where(missing))
            fresh = dict(zip(seen.pages.tolist(), seen.what.tolist(), strict=True))
            if seen.received is not None:
                cost = cost | dict(zip(seen.pages.tolist(), seen.received.tolist(), strict=True))
        known = {**self._recorded, **fresh}
        pages = [page for page in picks.pages.tolist() if page in known]
        what = np.array([known[page] for page in pages], np.int8)
        received = np.array([cost.get(page, 0) for page in pages], np.int64) if self._received is not None else None
        return Outcomes(np.array(pages, np.int64), what, received)
