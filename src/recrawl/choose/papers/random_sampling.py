"""Policy `random`: visit pages drawn at random; the simplest baseline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.shards.offers import RankedPages
from recrawl.choose.shards.rounds import RankedPolicy


class Random(RankedPolicy):
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

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:  # noqa: ARG002
        """Yield all pages in random order; shards get visits in proportion to their pages."""
        pages = rng.permutation(np.flatnonzero(book.known))
        yield RankedPages(pages, np.ones(len(pages)), "it was drawn at random")
