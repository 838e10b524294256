"""Random node sampling: the plainest baseline."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.model import Picks


class Random:
    """Pages drawn uniformly, without replacement within the cycle (spec P2, RNS).

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> [len(seen) for seen in drive(Random(), Still(), Book.blank(5), budget=3, seed=1)]
    [3]

    Source: Tan, Zhuang, Mitra and Giles 2007 §6.2.
    """

    name: ClassVar[str] = "random"
    source: ClassVar[str] = "Tan et al. 2007 §6.2 (spec P2)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """One batch."""
        pages = rng.permutation(np.flatnonzero(book.known))[:budget]
        yield Picks(pages, np.ones(len(pages)), "drawn at random")
