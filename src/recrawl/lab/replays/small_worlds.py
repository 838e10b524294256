"""The smallest worlds, for examples and tests of policies."""

from __future__ import annotations

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Chooser
from recrawl.loop import World, drive
from recrawl.model import Outcome, Outcomes, Picks


class NeverChanged:
    """A world in which nothing ever changes."""

    def visit(self, picks: Picks) -> Outcomes:
        """Return `UNCHANGED` for each page."""
        return Outcomes(picks.pages, np.full(len(picks), Outcome.UNCHANGED, np.int8))


class AlwaysChanged:
    """A world in which each visit finds the page changed, or fails, with fixed probabilities."""

    def __init__(self, seed: int, *, changed: float = 0.3, failed: float = 0.05) -> None:
        self._rng = np.random.default_rng(seed)
        self._shares = [1 - changed - failed, changed, failed]

    def visit(self, picks: Picks) -> Outcomes:
        """Draw an outcome for each page."""
        kinds = np.array([Outcome.UNCHANGED, Outcome.CHANGED, Outcome.FAILED], np.int8)
        return Outcomes(picks.pages, self._rng.choice(kinds, len(picks), p=self._shares))


def batches(policy: Chooser, book: Book, budget: int, *, world: World | None = None, seed: int = 1) -> list[list[int]]:
    """Drive a policy for one cycle and return the pages of each batch; without a world no page has changed.

    >>> from recrawl.choose.papers.round_robin import RoundRobin
    >>> batches(RoundRobin(), Book.blank(5), budget=3)
    [[0, 1, 2]]
    """
    return [seen.pages.tolist() for seen in drive(policy, world or NeverChanged(), book, budget, seed)]
