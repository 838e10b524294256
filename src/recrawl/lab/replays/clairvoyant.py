"""The policy that knows the future: the bound that all others are measured against (spec M11)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.lab.histories.history import History
from recrawl.lab.replays.clairvoyant_bound import jobs_of, schedule
from recrawl.model import Picks


class Clairvoyant:
    """Visits changed pages, those first whose change would soonest be overtaken by the next (lab only).

    Each stretch between two changes of a page is a unit job; earliest deadline first does the most jobs. What is left
    of the budget goes to pages that have waited longest and finds nothing, so that change ratios can be compared.

    Example
    -------
    >>> from recrawl.lab.histories.history import assemble
    >>> from recrawl.lab.replays.replay import Setup, replay
    >>> history = assemble(["http://a.example/1", "http://a.example/2"], np.array([0, 0, 1]),
    ...     np.array([0.0, 90.0, 0.0]), np.array([1, 2, 1]), change="text", carries=frozenset())
    >>> setup = Setup(budget=1, cycle=60.0, cycles=3)
    >>> replay(history, Clairvoyant(history, setup.budget, setup.cycle, setup.cycles), setup).found.tolist()
    [0, 1, 0]

    Source: spec M11; unit jobs with release times and deadlines.
    """

    name: ClassVar[str] = "clairvoyant"
    source: ClassVar[str] = "the exact bound for changes found: earliest deadline first (spec M11); lab only"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, history: History, budget: int, cycle: float, cycles: int) -> None:
        self._cycle = cycle
        moments = np.arange(1, cycles + 1, dtype=np.float64) * cycle
        self._plan = schedule(jobs_of(history, moments), len(history), np.full(cycles, budget))

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:  # noqa: ARG002
        """One batch of changed pages, one of others."""
        pages = self._plan[round(book.now / self._cycle) - 1]
        pages = pages[book.known[pages]][:budget]
        yield Picks(pages, np.ones(len(pages)), "has changed")
        others = np.flatnonzero(book.known)
        others = others[~np.isin(others, pages)]
        others = others[np.argsort(book.last_try[others], kind="stable")][: budget - len(pages)]
        yield Picks(others, np.zeros(len(others)), "nothing else is left to find")
