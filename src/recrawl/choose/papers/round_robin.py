"""Policy `round-robin`: visit all pages equally often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

import numpy as np

from recrawl.book import Book
from recrawl.choose.shards.offers import RankedPages
from recrawl.choose.shards.rounds import RankedPolicy
from recrawl.choose.top_k import top_k
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError
from recrawl.model import Outcomes

Order = Literal["fixed", "shuffled", "random", "accesses"]
_ORDERS: tuple[Order, ...] = get_args(Order)
_MEMORY = "round-robin.pass"
"""Memory key of each page's last pass, counted from 1; only `shuffled` uses it."""


class RoundRobin(RankedPolicy):
    """Visits the pages that have waited longest, so that every page is visited once per pass.

    Parameters
    ----------
    order
        `fixed`: longest wait first, so every pass has the order of the first pass, which is by page number.
        `shuffled`: a new random order in each pass; a new page joins the current pass. `random`: no passes, each visit
        is drawn from all pages; some pages wait long, some are visited twice in short time. `accesses`: the same, with
        a probability in proportion to the page's weight, such as its requests in an access log (`importance=clicks:`).

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> batches(RoundRobin(), Book.blank(5), budget=3)
    [[0, 1, 2]]

    Source: Al-Qaaideh 2009 §1.3.2 and §2.5.1; Cho and Garcia-Molina's uniform policy.
    """

    name: ClassVar[str] = "round-robin"
    source: ClassVar[str] = "Al-Qaaideh 2009 §1.3.2, §2.5.1 (spec P1)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, order: Order = "fixed") -> None:
        if order not in _ORDERS:
            raise UsageError(f"round-robin's order must be {', '.join(_ORDERS)}, not '{order}'")
        self.order = order
        if order == "shuffled":
            # Only this order keeps a memory. Without the attribute a policy is no `Learner`, which spares the other
            # orders the cost of reading all past visits again.
            self.learn = _store_passes

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:  # noqa: ARG002
        """Yield all pages in their order."""
        pages = np.flatnonzero(book.known)
        # Pages never tried come first, in the order in which they were found. Failures count as tries; otherwise a
        # dead page would be chosen again in every cycle.
        since = np.maximum(book.last_try[pages], book.found[pages] - 1e9)
        if self.order == "random":
            luck, reason = rng.permutation(len(pages)), "it was drawn at random from all pages"
            yield RankedPages(pages[luck], np.ones(len(pages)), reason, book.now - since[luck])
            return
        if self.order == "accesses":
            # The smallest of exponential times with the weights as rates are a draw without replacement.
            drawn = rng.exponential(size=len(pages)) / np.maximum(book.weight[pages], 1e-12)
            first, reason = np.argsort(drawn, kind="stable"), "it was drawn by how often users request it"
            yield RankedPages(pages[first], -drawn[first], reason, book.weight[pages[first]])
            return
        if self.order == "shuffled":
            done, present = _passes(book)
            # A whole number plus less than one: the pages of this pass in random order, then those of the next.
            place = (done[pages] >= present) + rng.random(len(pages))
            reason = "its turn came in this pass"
            yield RankedPages(pages, -place, reason, book.now - since, order=lambda count: top_k(place, count))
            return
        # In a replay all visits of a cycle have the same time. When the cycle ended one pass and began the next, the
        # pages of the ended pass have fewer visits and come first. Pages are visited in long runs of page numbers, on
        # which this sort is faster than a search for the longest waits.
        visits = book.visits[pages] + book.failures[pages]
        reason = "it had waited longest"
        yield RankedPages(pages, book.now - since, reason, order=lambda count: np.lexsort((visits, since))[:count])


def _store_passes(book: Book, seen: Outcomes, at: Floats) -> None:  # noqa: ARG001
    """Store in which pass pages were visited; failures count, so that a dead page does not hold up its pass."""
    done, present = _passes(book)
    done[seen.pages] = np.where(done[seen.pages] < present, present, present + 1)
    book.memory[_MEMORY] = done


def _passes(book: Book) -> tuple[Ints, int]:
    """Return the last pass of every page (0 for none) and the number of the current pass."""
    done = book.kept(_MEMORY, 0, np.int64)
    return done, max(1, int(done.max(initial=0)))
