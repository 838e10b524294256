"""The shape of a policy: a generator over one cycle that yields pages and is sent what came of them.

A policy does no I/O and reads no clock: `book.now` is the time, `rng` the only chance. What outlives the cycle is in
the book; the generator holds control flow only. Parameters are the constructor's keyword arguments, kept under their
own names, so that a policy can be written as text: `round-robin(order=shuffled)`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar, Protocol

import numpy as np

from recrawl.book import Book
from recrawl.model import Outcomes, Picks

Choice = Generator[Picks, Outcomes, None]


class Policy(Protocol):
    """Anything that can be driven (see `recrawl.loop.drive`)."""

    name: ClassVar[str]
    """Stable, lower case; how people call it."""
    source: ClassVar[str]
    """Where it comes from."""
    needs: ClassVar[frozenset[str]]
    """What it asks of the book beyond the columns: links, text, hints ..."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield picks, best first; be sent their outcomes; end when there is nothing left to ask for."""
        ...
