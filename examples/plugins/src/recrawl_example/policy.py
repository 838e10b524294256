"""A policy: the largest pages first."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl import Book, Picks
from recrawl.choose import Choice


class LargestFirst:
    """Visits the largest pages first.

    Parameters
    ----------
    least
        Bytes of the smallest page that is visited.
    """

    name: ClassVar[str] = "largest-first"
    needs: ClassVar[frozenset[str]] = frozenset()
    source: ClassVar[str] = "an example"

    def __init__(self, *, least: int = 0) -> None:
        self.least = least

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """One batch; pages of one size in random order."""
        pages = rng.permutation(np.flatnonzero(book.known & (book.size >= self.least)))
        size = book.size[pages].astype(np.float64)
        best = np.argsort(-size, kind="stable")[:budget]
        yield Picks(pages[best], size[best], "it is among the largest pages")
