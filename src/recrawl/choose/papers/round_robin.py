"""Uniform revisiting: every page as often as any other."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.top_k import top_k
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks

Order = Literal["fixed", "shuffled", "random"]
_MEMORY = "round-robin.pass"
"""In the memory, one per page: the last pass that it was visited in, counted from 1; only `shuffled` keeps it."""


class RoundRobin:
    """The pages that have waited longest, in turn: every page is visited once per pass (spec P1).

    Parameters
    ----------
    order
        `fixed`: those that have waited longest first, so every pass has the order of the first; at first by page
        number. `shuffled`: another order in each pass: the next is drawn among the pages that are not yet visited
        in this pass; a page that is born joins it. `random`: no passes at all, each visit draws among all pages;
        some wait long, some come twice soon.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(5)
    >>> [seen.pages.tolist() for seen in drive(RoundRobin(), Still(), book, budget=3, seed=1)]
    [[0, 1, 2]]

    Source: Al-Qaaideh 2009 §1.3.2 and §2.5.1; Cho and Garcia-Molina's uniform policy.
    """

    name: ClassVar[str] = "round-robin"
    source: ClassVar[str] = "Al-Qaaideh 2009 §1.3.2, §2.5.1 (spec P1)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, order: Order = "fixed") -> None:
        if order not in ("fixed", "shuffled", "random"):
            raise UsageError(f"round-robin's order is fixed, shuffled or random, not '{order}'")
        self.order = order
        if order == "shuffled":
            # Only this order keeps anything. Without the attribute a policy is no `Learner`, and live the other
            # orders are spared what that costs: all visits of the past read again.
            self.learn = _note_passes

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """One batch."""
        pages = np.flatnonzero(book.known)
        # Pages never tried come first, the ones found first before others; failures count as tries, or a dead
        # page would be chosen again in every cycle.
        since = np.maximum(book.last_try[pages], book.found[pages] - 1e9)
        if self.order == "random":
            chosen = rng.permutation(len(pages))[:budget]
            yield Picks(pages[chosen], book.now - since[chosen], "drawn at random among all pages")
            return
        if self.order == "shuffled":
            done, present = _passes(book)
            # A whole number plus less than one: the pages of this pass in any order, then those of the next.
            place = (done[pages] >= present) + rng.random(len(pages))
            chosen = top_k(place, budget)
            yield Picks(pages[chosen], book.now - since[chosen], "its turn has come in this pass")
            return
        # Where a cycle ended one pass and began the next, all its visits have the same time in a replay: those of the
        # pass that ended have been visited less often, and come first. Pages are visited in long runs of page numbers,
        # which this sort takes as they are: to look for the longest waits first would take longer.
        chosen = np.lexsort((book.visits[pages] + book.failures[pages], since))[:budget]
        yield Picks(pages[chosen], book.now - since[chosen], "has waited longest")


def _note_passes(book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:  # noqa: ARG001
    """Note in which pass pages were visited; a failure counts, or a dead page would hold up its pass."""
    done, present = _passes(book)
    done[seen.pages] = np.where(done[seen.pages] < present, present, present + 1)
    book.memory[_MEMORY] = done


def _passes(book: Book) -> tuple[NDArray[np.int64], int]:
    """The last pass of every page, 0 for one that had none yet, and the pass that is under way."""
    done = book.kept(_MEMORY, 0, np.int64)
    return done, max(1, int(done.max(initial=0)))
