"""The flow on one screen: a policy chooses, a world answers, until the budget is spent.

    for seen in drive(policy, world, book, budget, seed):
        ...

`drive` is the only code that touches a policy's generator. The world is the live web or an archive: one method,
`visit`. What came back is noted in the book when the cycle ends.

A crashed cycle is resumed by driving the same policy again, from the same book and seed, against the world wrapped in
`Resumed`: visits that were recorded are answered from the record, so the choices are the same ones, and only what is
missing is really visited.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Chooser, Learner, Policy
from recrawl.errors import PolicyError
from recrawl.model import Outcomes, Picks

_MOST_IDLE = 1000
"""Empty batches in a row after which a policy is taken to be stuck."""


class World(Protocol):
    """Anything that answers visits."""

    def visit(self, picks: Picks) -> Outcomes:
        """Visit the pages. Fewer outcomes than picks mean that the world has stopped: the cycle ends."""
        ...


def drive(policy: Chooser, world: World, book: Book, budget: int, seed: int) -> Iterator[Outcomes]:
    """One cycle: at most `budget` visits, no page twice, none that is unknown.

    A page that the world did not visit after all (`SKIPPED`, `HELD`) costs nothing; who wants the budget spent in spite
    of that, or kept to limits, drives the policy as `choose.allowed.Allowed`.
    """
    choice = policy.cycle(book, budget, np.random.default_rng(seed))
    place = np.full(len(book), -1, np.int32)
    left, idle = budget, 0
    try:
        picks = next(choice)
        while left > 0:
            picks = picks.first(left)
            _check(picks, place, book)
            seen = world.visit(picks) if len(picks) else Outcomes(picks.pages, np.zeros(0, np.int8))
            yield seen
            left -= int(np.count_nonzero(seen.visited))
            idle = 0 if len(picks) else idle + 1
            if idle > _MOST_IDLE:
                raise PolicyError("a policy goes on and on without asking for a page")
            if len(seen) < len(picks):
                return
            picks = choice.send(seen)
    except StopIteration:
        return
    finally:
        choice.close()


def note(policy: Policy, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
    """The end of a cycle: the policy, then the book, take in all that came of it."""
    if isinstance(policy, Learner):
        policy.learn(book, seen, at)
    book.note(seen, at)


def _check(picks: Picks, place: NDArray[np.int32], book: Book) -> None:
    """Refuse what no policy may ask for; `place` marks the pages of this cycle, each by its place in its batch."""
    if len(picks.pages) != len(picks.score):
        raise PolicyError("a policy must give each page one score")
    if len(picks) and (picks.pages.min() < 0 or picks.pages.max() >= len(book)):
        raise PolicyError("a policy chose a page that does not exist")
    here = np.arange(len(picks), dtype=np.int32)
    again = (place[picks.pages] >= 0).any()
    place[picks.pages] = here
    if again or not np.array_equal(place[picks.pages], here):
        raise PolicyError("a policy chose a page twice in one cycle")
    if not book.known[picks.pages].all():
        raise PolicyError("a policy chose a page that may not be visited")


class Resumed:
    """A world in which some visits of this cycle have been made before: page number to outcome, and to bytes."""

    def __init__(self, world: World, recorded: dict[int, int], received: dict[int, int] | None = None) -> None:
        self._world = world
        self._recorded = recorded
        self._received = received

    def visit(self, picks: Picks) -> Outcomes:
        """Answer from the record where there is one, from the world where not; in the order asked for."""
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
