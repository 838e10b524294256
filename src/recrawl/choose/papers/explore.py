"""Policy `explore`: download the pages that were found and never visited, in the order of a crawl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.shards.offers import RankedPages
from recrawl.choose.shards.rounds import RankedPolicy
from recrawl.columns import Floats
from recrawl.errors import UsageError
from recrawl.learn.structure.neighbours import fitted
from recrawl.learn.structure.pagerank import pagerank
from recrawl.model import ORDERS


class Explore(RankedPolicy):
    """Visits new pages in the order of a crawl, then the pages whose last visit is oldest.

    It is `recrawl crawl --order` as a policy, to try orders of discovery in the lab: `lab run --discover crawl` begins
    with the start page of each site. With `--discover links` the repository holds all pages at first, and orders differ
    only where more new pages are known than the budget can visit. The links are those at the cycle's start; a crawl
    takes new links into account as it goes. Of equal pages, the one that was found first comes first.

    Parameters
    ----------
    order
        `breadth`: the page found first. `depth`: the page found last. `path`: the page with the shortest path from the
        start of its site. `importance`: the page with the highest PageRank by the links of the visited pages.

    Example
    -------
    >>> from recrawl.book import LinkGraph
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(4)
    >>> book.visits[0], book.links = 1, LinkGraph(np.array([0, 2, 2, 2, 2]), np.array([3, 3], np.int32))
    >>> batches(Explore(order="importance"), book, budget=2)
    [[3, 1]]

    Source: Al-Qaaideh 2009 §2.1; Abiteboul, Preda and Cobena 2003.
    """

    name: ClassVar[str] = "explore"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.1 (spec K1, K6)"
    # Not a ClassVar: it depends on the parameters.
    needs: frozenset[str] = frozenset()
    one_shard: str = "links between shards count for the importance of pages; other orders can be split"
    rankings_per_cycle: ClassVar[int] = 2

    def __init__(self, *, order: str = "importance") -> None:
        if order not in ORDERS:
            raise UsageError(f"explore's order must be {', '.join(ORDERS)}, not '{order}'")
        self.order = order
        self.needs = frozenset({"links"} if order == "importance" else ())
        self.one_shard = type(self).one_shard if order == "importance" else ""

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:  # noqa: ARG002
        """Yield new pages by rank, then the others."""
        new = np.flatnonzero(book.known & (book.visits == 0))
        rank = self._ranks(book)[new]
        order = np.lexsort((new, book.found[new], -rank))[:budget]
        score = np.arange(len(order), 0, -1) / max(len(order), 1)
        reason = f"it was never downloaded and comes next by {self.order}"
        yield RankedPages(new[order], rank[order], reason, score)
        old = np.flatnonzero(book.known & (book.visits > 0))
        old = old[np.argsort(book.last_try[old], kind="stable")]
        reason = "its last visit is oldest, and no new page was left"
        yield RankedPages(old, book.now - book.last_try[old], reason, np.ones(len(old)))

    def _ranks(self, book: Book) -> Floats:
        """Return the rank of every page."""
        if self.order == "importance":
            return pagerank(fitted(book.links, len(book)))
        if self.order == "path":
            return -book.depth.astype(np.float64)
        age = book.now - book.found
        return -age if self.order == "depth" else age
