"""Policy `grouped`: visit one group of sites per cycle, in turn, for small budgets over many sites."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.by_site.site_sampling import check_whole
from recrawl.choose.protocol import Choice, Learner, Policy, needs_of, work_of
from recrawl.columns import Floats
from recrawl.errors import UsageError
from recrawl.model import WAIT, Outcomes, Picks


class Grouped:
    """Divides the sites into groups; each cycle, another policy chooses pages of one group, in turn.

    With a small budget, a sample of every site would be too small to be useful; samples of one group of sites are
    large enough. Site numbers decide the groups, so a new site joins one group and no other site moves. When the pages
    of the current group do not use up the budget, the next group follows. A crawl, which downloads only new pages, does
    not count as a turn.

    Parameters
    ----------
    inner
        The policy within the group: `proportional`, `greedy`, `anchor-depth`, `greedy(sample=5)` or another. It gets
        what it needs of the book (links, clusters, ...).
    groups
        The number of groups; at most the number of sites.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(40)
    >>> book.site[:] = np.arange(40) % 4
    >>> pages = sum(batches(Grouped(inner="greedy", groups=2), book, budget=10), [])
    >>> len(pages), set(book.site[pages].tolist()) <= {0, 2}
    (10, True)

    Source: Al-Qaaideh 2009 §2.8 and figure 2.4, after Cho and Ntoulas 2002; Barbosa et al. 2003 §6 split large scopes
    in the same way.
    """

    name: ClassVar[str] = "grouped"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.8, Barbosa et al. 2003 §6 (spec P6)"
    needs: frozenset[str] = frozenset()
    one_shard: ClassVar[str] = "each cycle belongs to one group of all sites"

    def __init__(self, *, inner: str = "greedy", groups: int = 4) -> None:
        policy = _make(inner)
        if isinstance(policy, Grouped):
            raise UsageError("grouped cannot be its own inner policy; use another policy, such as greedy")
        self.needs = needs_of(policy)
        self.inner = inner.strip()
        self.groups = check_whole(groups, "grouped's groups")

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Run the inner policy on the current group, then on the next groups while budget is left."""
        _, rank = np.unique(book.site, return_inverse=True)
        groups = min(self.groups, int(rank.max(initial=0)) + 1)
        turn = int(book.memory.get(f"{self.name}.turn", np.zeros(1))[0])
        left = budget
        for step in range(groups):
            group = book.known & (rank % groups == (turn + step) % groups)
            if left > 0 and group.any():
                left -= yield from _counted(_make(self.inner).cycle(replace(book, known=group), left, rng))

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:
        """Move on to the next group, and let the inner policy learn."""
        inner = _make(self.inner)
        if isinstance(inner, Learner):
            inner.learn(book, seen, at)
        # Crawls come here too, but visit no page again. If they counted, a crawl after every cycle would give two
        # groups the turns 0, 2, 4, ...: always the same group.
        if (book.visits[seen.pages] > 0).any():
            book.memory[f"{self.name}.turn"] = book.memory.get(f"{self.name}.turn", np.zeros(1, np.int64)) + 1

    def inner_policy(self) -> Policy:
        """The policy within the group."""
        return _make(self.inner)

    def work(self, book: Book) -> dict[str, int]:
        """What the inner policy reports of its computing."""
        return work_of(_make(self.inner), book)


def _make(text: str) -> Policy:
    """Build the inner policy; a new one each time, since a policy holds no state between cycles."""
    from recrawl.choose.registry import make_policy  # lazy: the registry imports this module

    made: Policy = make_policy(text)
    return made


def _counted(choice: Choice) -> Generator[Picks, Outcomes, int]:
    """Pass on a policy's picks and outcomes; return the number of pages it picked, when all have an outcome."""
    picked = answered = 0
    try:
        picks = next(choice)
        while True:
            picked += len(picks)
            seen = yield picks
            answered += len(seen)
            picks = choice.send(seen)
    except StopIteration:
        if answered < picked:
            yield WAIT
        return picked
