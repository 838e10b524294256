"""Uniform revisiting: every page as often as any other."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from recrawl.book import Book
from recrawl.choose.contract import Choice
from recrawl.errors import UsageError
from recrawl.model import Picks

Order = Literal["fixed", "shuffled", "random"]


class RoundRobin:
    """The pages that have waited longest, in turn: every page is visited once per pass (spec P1).

    Parameters
    ----------
    order
        What decides among pages that have waited equally long, as all have at the start of a pass.
        `fixed`: always the same order (by page number). `shuffled`: another order in each pass.
        `random`: no passes at all, each visit draws among all pages; some wait long, some come twice soon.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.worlds import Still
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

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """One batch."""
        pages = np.flatnonzero(book.known)
        # Pages never tried come first, the ones found first before others; failures count as tries, or a dead
        # page would be chosen again in every cycle.
        waited = book.now - np.maximum(book.last_try[pages], book.found[pages] - 1e9)
        if self.order == "random":
            chosen = rng.permutation(len(pages))[:budget]
            yield Picks(pages[chosen], waited[chosen], "drawn at random among all pages")
            return
        tie = np.arange(len(pages)) if self.order == "fixed" else rng.permutation(len(pages))
        chosen = _longest(waited, tie, budget)
        yield Picks(pages[chosen], waited[chosen], "has waited longest")


def _longest(waited: np.ndarray, tie: np.ndarray, budget: int) -> np.ndarray:
    """Positions of the `budget` longest waits, longest first, without sorting all of them."""
    if budget < len(waited):
        limit = -np.partition(-waited, budget - 1)[budget - 1] if budget > 0 else np.inf
        candidates = np.flatnonzero(waited >= limit)
    else:
        candidates = np.arange(len(waited))
    order = np.lexsort((tie[candidates], -waited[candidates]))
    return candidates[order][:budget]
