"""The shape of a policy: a generator over one cycle that yields pages and is sent what came of them.

A policy does no I/O and reads no clock: `book.now` is the time, `rng` the only chance. What outlives the cycle is in
the book; the generator holds control flow only. Parameters are the constructor's keyword arguments, kept under their
own names, so that a policy can be written as text: `round-robin(order=shuffled)`.

A policy that keeps more of a visit than the book's columns is a `Learner`: when a cycle is over, and before the book
takes in what came of it, `learn` is told all of it and writes to `book.memory`. That memory is a fold over visits:
it can be thrown away and built again from the record. During a cycle nobody writes to it, so a crashed cycle finds it
as it was.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.model import Outcomes, Picks

Choice = Generator[Picks, Outcomes, None]


class Chooser(Protocol):
    """Anything that can be driven (see `recrawl.loop.drive`)."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield picks, best first; be sent their outcomes; end when there is nothing left to ask for."""
        ...


class Policy(Chooser, Protocol):
    """A chooser that people can name."""

    name: ClassVar[str]
    """Stable, lower case; how people call it."""
    source: ClassVar[str]
    """Where it comes from."""

    @property
    def needs(self) -> frozenset[str]:
        """What it asks of the book beyond the columns: folders, links, clusters, forms, hints."""
        ...


def needs_of(policy: Policy) -> frozenset[str]:
    """All that a policy asks of the book: who wants new links must know where they have come from (`arrivals`)."""
    return policy.needs | ({"arrivals"} if getattr(policy, "objective", "") == "links" else frozenset())


@runtime_checkable
class Learner(Protocol):
    """A policy that keeps something of every visit."""

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """Take in a whole cycle: `book` is as it was when the cycle began, `at` are the times of the visits."""
        ...
