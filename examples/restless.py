"""A policy of one's own, and how to try it: pages that changed most often come first.

    python examples/restless.py

The class is all that a policy needs. To use it in `recrawl cycle`, put it in a file of `recrawl/choose` and into the
list there: docs/guides/write-a-policy.md.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose import Choice
from recrawl.loop import drive
from recrawl.model import Outcome, Outcomes, Picks


class Restless:
    """Pages that changed at the largest share of their visits; `prior` stands for what is not known yet."""

    name: ClassVar[str] = "restless"
    source: ClassVar[str] = "an example"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, prior: float = 0.5) -> None:
        self.prior = prior

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """One batch, best first; pages that are equal are drawn by lot."""
        pages = rng.permutation(np.flatnonzero(book.known))
        share = (book.changes[pages] + self.prior) / (book.visits[pages] + 1)
        best = np.argsort(-share, kind="stable")[:budget]
        yield Picks(pages[best], share[best], "changed at the largest share of its visits")


class Uneven:
    """A world in which page n of 100 has changed with a chance of n per cent."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def visit(self, picks: Picks) -> Outcomes:
        """Toss a coin for each page."""
        changed = self._rng.random(len(picks)) < picks.pages / 100
        return Outcomes(picks.pages, np.where(changed, Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8))


def main() -> None:
    """Thirty cycles of ten visits: the share that finds a change grows."""
    book, world, policy = Book.blank(100), Uneven(seed=1), Restless()
    found = 0
    for day in range(30):
        book.now = day * 86400.0
        for seen in drive(policy, world, book, budget=10, seed=day):
            book.note(seen, book.now)
            found += int(seen.changed.sum())
        if day % 10 == 9:
            print(f"days {day - 8} to {day + 1}: {found} of 100 visits found a change")
            found = 0


if __name__ == "__main__":
    main()
