"""Few downloads, many sites: one group of sites in each cycle, in turn."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.papers.site_sampling import check_whole
from recrawl.choose.protocol import Choice, Learner, Policy
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks


class Grouped:
    """Sites in groups; each cycle one group has its turn, and another policy chooses within it (spec P6).

    With few downloads a sample of every site would be too small to say anything; a group of them gets samples that
    do. Sites are dealt to the groups by their number, so a new site joins one and no other moves. When the pages of
    the group whose turn it is do not use up the budget, the next group follows. A crawl, which downloads only what is
    new, takes nobody's turn.

    Parameters
    ----------
    inner
        The policy within the group: `proportional`, `greedy`, `adaptive-sampling` or another by its name.
    groups
        How many groups there are; never more than there are sites.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(40)
    >>> book.site[:] = np.arange(40) % 4
    >>> policy = Grouped(inner="greedy", groups=2)
    >>> seen = [page for seen in drive(policy, Still(), book, budget=10, seed=1) for page in seen.pages.tolist()]
    >>> len(seen), set(book.site[seen].tolist()) <= {0, 2}
    (10, True)

    Source: Al-Qaaideh 2009 §2.8 and figure 2.4, after Cho and Ntoulas 2002; Barbosa et al. 2003 §6 split large scopes
    in the same way.
    """

    name: ClassVar[str] = "grouped"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.8, Barbosa et al. 2003 §6 (spec P6)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, inner: str = "greedy", groups: int = 4) -> None:
        policy = _make(inner)
        if isinstance(policy, Grouped):
            raise UsageError("grouped cannot be its own inner policy: name another, such as greedy")
        if policy.needs:
            raise UsageError(f"grouped's inner policy must need nothing but the pages; {inner} needs more")
        self.inner = inner.strip()
        self.groups = check_whole(groups, "grouped's groups")

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """The inner policy on the pages of one group, and of the next while there is budget left."""
        _, rank = np.unique(book.site, return_inverse=True)
        groups = min(self.groups, int(rank.max(initial=0)) + 1)
        turn = int(book.memory.get(f"{self.name}.turn", np.zeros(1))[0])
        left = budget
        for step in range(groups):
            mine = book.known & (rank % groups == (turn + step) % groups)
            if left > 0 and mine.any():
                left -= yield from _counted(_make(self.inner).cycle(replace(book, known=mine), left, rng))

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:
        """The next cycle is the next group's; the inner policy keeps what it keeps."""
        inner = _make(self.inner)
        if isinstance(inner, Learner):
            inner.learn(book, seen, at)
        # Crawls come here too. They visit no page again; if they counted, a crawl after every cycle would give two
        # groups the turns 0, 2, 4, ...: always the same group.
        if (book.visits[seen.pages] > 0).any():
            book.memory[f"{self.name}.turn"] = book.memory.get(f"{self.name}.turn", np.zeros(1, np.int64)) + 1


def _make(text: str) -> Policy:
    """The inner policy. It is made anew each time, since a policy must hold nothing between cycles."""
    from recrawl.choose.registry import make_policy  # lazy: the registry imports this module

    made: Policy = make_policy(text)
    return made


def _counted(choice: Choice) -> Generator[Picks, Outcomes, int]:
    """Pass a policy's picks on; in the end, how many pages it asked for."""
    asked = 0
    try:
        picks = next(choice)
        while True:
            asked += len(picks)
            picks = choice.send((yield picks))
    except StopIteration:
        return asked
