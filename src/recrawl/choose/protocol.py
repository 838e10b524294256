"""The interfaces of a policy: a generator over one cycle that yields picks and receives their outcomes.

A policy does no I/O and reads no clock: `book.now` is the time, `rng` the only source of randomness. State that
outlives the cycle is in the book; the generator holds control flow only. Parameters are the constructor's keyword
arguments, stored under their own names, so that a policy can be written as text: `round-robin(order=shuffled)`.

A batch may leave outcomes to later batches (`Picks.awaits`): then what the generator receives lacks some pages of the
batch and holds some of earlier ones. Pages under way must not be chosen again. A batch whose outcomes decide nothing
awaits 0.

The reason of a `Picks` is a clause that completes "Visited because ...", such as "it was never downloaded".

A policy that keeps more of a visit than the book's columns is a `Learner`: at the end of a cycle, before the book notes
the outcomes, `learn` receives all of them and writes to `book.memory`. This memory is a fold over visits: it can be
deleted and rebuilt from the record. Nothing writes to it during a cycle, so a crashed cycle finds it unchanged.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from recrawl.book import Book
from recrawl.columns import Floats
from recrawl.model import Outcomes, Pages, Picks

Choice = Generator[Picks, Outcomes, None]
"""One cycle of a policy: yields picks, receives outcomes."""
LIKELY = "it has most likely changed"
"""The beginning of reasons whose score is a change probability."""
NAMED = "anchor-depth.named"
"""Key of the memory of `anchor-depth`: the pages that the user named as anchors."""


class Chooser(Protocol):
    """Anything that `recrawl.loop.drive` can run."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield picks, best first, and receive their outcomes; return when there is nothing more to visit."""
        ...


class Policy(Chooser, Protocol):
    """A chooser with a name."""

    name: ClassVar[str]
    """Stable, lower case, as used on the command line."""
    source: ClassVar[str]
    """The publication or program it comes from."""

    @property
    def needs(self) -> frozenset[str]:
        """The parts of the book it needs beyond the columns: folders, links, clusters, forms, hints, words, prior."""
        ...


def needs_of(policy: Policy) -> frozenset[str]:
    """Return all parts of the book that a policy needs; the objective `links` also needs `arrivals`."""
    return policy.needs | ({"arrivals"} if getattr(policy, "objective", "") == "links" else frozenset())


@runtime_checkable
class Outer(Protocol):
    """A policy that lets another one choose."""

    def inner_policy(self) -> Policy:
        """The other policy."""
        ...


def names_of(policy: Policy) -> tuple[str, ...]:
    """The names under which a policy keeps its memory: its own, and that of the policy it contains."""
    return (policy.name, *names_of(policy.inner_policy())) if isinstance(policy, Outer) else (policy.name,)


@runtime_checkable
class ChangeEstimator(Protocol):
    """A policy that estimates change probabilities; screens show them. Others leave that to the change rates."""

    def change_probability(self, book: Book, pages: Pages) -> Floats:
        """Return the probability that each of these downloaded pages has changed since its last visit."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A policy that keeps a memory of visits."""

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Learn from a whole cycle: `book` is its state when the cycle began, `at` are the times of the visits."""
        ...


@runtime_checkable
class Working(Protocol):
    """A policy whose computing is worth reporting, such as models fitted in a cycle."""

    def work(self, book: Book) -> dict[str, int]:
        """Counts by name, as of the last cycle learned from; empty if there is nothing to report."""
        ...


def work_of(policy: Policy, book: Book) -> dict[str, int]:
    """What a policy reports of its computing; nothing for most policies."""
    return policy.work(book) if isinstance(policy, Working) else {}
