"""Sampling that stops at a site as soon as it is clear whether the site is worth downloading."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.papers.sample_size import interval, threshold
from recrawl.choose.papers.site_sampling import (
    Deck,
    Level,
    best_first,
    check_level,
    check_whole,
    draw,
    evidence,
    in_order,
    judged,
)
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks


class AdaptiveSampling:
    """Samples in rounds; drops a site that is surely poor, downloads one that is surely good (spec P5).

    In each round κ more pages of every undecided site are visited. The threshold is the rate of the site with which the
    budget would be used up if the sites that look best were downloaded whole. A site whose confidence interval lies
    under it is dropped, one whose interval lies over it is downloaded whole at once. A site none of whose pages
    answers is dropped too. A round takes at most a quarter of the budget; if that is too little for κ pages of each
    undecided site, they get fewer. When nothing is undecided any more, or after `rounds` rounds, what is left of the
    budget goes to the sites by their rate as in `greedy`, so that it is spent.

    Parameters
    ----------
    kappa
        Pages to sample of each undecided site and round.
    confidence
        How sure a decision must be, over 0 and under 1.
    rounds
        The most rounds: sites that are not told apart by then differ so little that it does not matter.
    level
        What is sampled and downloaded: `site`, or `directory`.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> sum(len(seen) for seen in drive(AdaptiveSampling(rounds=3), Still(), book, budget=100, seed=1))
    100

    Source: Al-Qaaideh 2009 §2.7 and figure 2.3, after Cho and Ntoulas 2002.
    """

    name: ClassVar[str] = "adaptive-sampling"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.7, figure 2.3, Cho and Ntoulas 2002 (spec P5)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, kappa: int = 10, confidence: float = 0.95, rounds: int = 50, level: Level = "site") -> None:
        self.kappa = check_whole(kappa, f"{self.name}'s kappa")
        self.confidence = check_confidence(confidence, self.name)
        self.rounds = check_whole(rounds, f"{self.name}'s rounds")
        self.level = check_level(level, self.name)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Rounds of samples, each followed by the sites that it decided for."""
        deck = Deck(book, self.level, rng)
        yield from adaptively(deck, budget, rng, self.kappa, self.confidence, self.rounds)


def check_confidence(confidence: float, policy: str) -> float:
    """The confidence, or a sentence about what it may be."""
    if not 0 < confidence < 1:
        raise UsageError(f"{policy}'s confidence must lie between 0 and 1, such as 0.95, not {confidence}")
    return confidence


def adaptively(
    deck: Deck,
    budget: int,
    rng: np.random.Generator,
    kappa: int,
    confidence: float,
    rounds: int,
    worth: Callable[[Outcomes], NDArray[np.float64]] | None = None,
) -> Choice:
    """The algorithm of figure 2.3; `worth` is what each outcome counts as, 0 to 1 (see `evidence`)."""
    undecided = np.ones(len(deck), bool)
    found, answered = np.zeros(len(deck)), np.zeros(len(deck), np.int64)
    rate, left, most = found, max(0, budget), max(1, budget // 4)
    for _ in range(rounds):
        pages = deck.deal(draw(np.where(undecided, deck.left, 0), kappa, min(left, most), rng))
        if not len(pages):
            break
        left -= len(pages)
        seen = yield Picks(pages, np.ones(len(pages)), "a sample of a site that is not decided on yet")
        more, said = evidence(deck, seen, None if worth is None else worth(seen))
        found, answered = found + more, answered + said
        rate = judged(deck, found, answered)
        low, high = interval(found, answered, confidence)
        limit = threshold(rate, deck.size, budget)
        silent = (answered == 0) & (deck.left < deck.size)
        good = undecided & (low > limit) & ~silent
        undecided &= (high >= limit) & ~good & ~silent
        order = best_first(rate, rng)
        pages = deck.deal(in_order(order, left, np.where(good, deck.left, 0)), order)
        if len(pages):
            left -= len(pages)
            yield Picks(pages, rate[deck.group_of(pages)], "its site surely changed much")
        if np.count_nonzero(undecided) < 2:
            break
    order = best_first(rate, rng)
    pages = deck.deal(in_order(order, left, deck.left), order)
    if len(pages):
        yield Picks(pages, rate[deck.group_of(pages)], "its site's samples changed most of those left")
