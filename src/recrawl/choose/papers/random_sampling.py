"""Policy `random`: visit pages drawn at random; the simplest baseline."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.model import Picks


class Random:
    """Visits pages drawn uniformly, without replacement within a cycle (RNS).

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> [len(pages) for pages in batches(Random(), Book.blank(5), budget=3)]
    [3]

    Source: Tan, Zhuang, Mitra and Giles 2007 §6.2.
    """

    name: ClassVar[str] = "random"
    source: ClassVar[str] = "Tan et al. 2007 §6.2 (spec P2)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield one batch."""
        pages = rng.permutation(np.flatnonzero(book.known))[:budget]
        yield Picks(pages, np.ones(len(pages)), "it was drawn at random")
