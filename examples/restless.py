"""A policy of one's own: pages that changed at the largest share of their visits come first.

    python examples/restless.py

The same class works in Python, as an object, and on the command line, in the folder of this file:

    recrawl cycle --policy 'restless:Restless(prior=0.2)'
    recrawl lab run history.parquet --policy restless:Restless --policy round-robin
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import ClassVar

import numpy as np

import recrawl
from recrawl.choose import Choice
from recrawl.testing import GeneratedWeb, check_policy


class Restless:
    """Pages that changed at the largest share of their visits; `prior` is the share assumed before the first visit."""

    name: ClassVar[str] = "restless"
    source: ClassVar[str] = "an example"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, prior: float = 0.5) -> None:
        self.prior = prior

    def cycle(self, book: recrawl.Book, budget: int, rng: np.random.Generator) -> Choice:
        """One batch, best first; equal pages in random order."""
        pages = rng.permutation(np.flatnonzero(book.known))
        share = (book.changes[pages] + self.prior) / (book.visits[pages] + 1)
        best = np.argsort(-share, kind="stable")[:budget]
        yield recrawl.Picks(pages[best], share[best], "it changed at the largest share of its visits")


def main() -> None:
    """Check the contract, then use the policy live and in the lab."""
    policy = Restless(prior=0.2)
    check_policy(policy)
    with GeneratedWeb(pages=40, days=12.0, seed=4) as web:
        with tempfile.TemporaryDirectory() as folder, recrawl.init(Path(folder), clock=web.now) as repo:
            repo.add(*web.urls, allow_private=True, delay=0)
            repo.crawl()
            for _ in range(4):
                web.advance(days=1)
                report = repo.cycle(budget=10, policy=policy)
                print(f"live: {report.policy} found {report.changed} updates in {report.visits} visits")
        history = recrawl.History.read(web.file)
    for candidate in (policy, "round-robin"):
        result = recrawl.lab.replay(history, policy=candidate, budget=10, cycle="1d")
        print(f"lab: {result.policy} found {result.found} updates in {result.visits} visits")


if __name__ == "__main__":
    main()
