"""Every site gets downloads in proportion to how much of its sample had changed."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.sample_size import check_sample, sample_size
from recrawl.choose.papers.site_sampling import Deck, Level, best_first, check_level, draw, evidence, judged, quotas
from recrawl.choose.protocol import Choice
from recrawl.model import Picks


class Proportional:
    """Samples every site, then divides what is left by the share of each sample that changed (spec P3).

    The samples are visits and part of the budget: at most half of it, or all of it where a number of pages is asked
    for. If that is too little, all sites get an even part; if it is less than one page a site, pages are drawn among
    all pages alike, and a site of which none was drawn counts as the mean of the others. A site whose sample
    shows no change gets downloads only when all others are downloaded whole.

    Parameters
    ----------
    sample
        Pages to sample of each site: a number, or `auto` for √(N·r), N the mean number of pages of a site and r the
        share of all pages that can be downloaded.
    level
        What is sampled: `site`, or `directory`.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Busy
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> [len(seen) for seen in drive(Proportional(sample=10), Busy(1), book, budget=100, seed=1)]
    [20, 80]

    Source: Al-Qaaideh 2009 §2.5.2, after Cho and Ntoulas 2002.
    """

    name: ClassVar[str] = "proportional"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.5.2, Cho and Ntoulas 2002 (spec P3)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, sample: str | int = "auto", level: Level = "site") -> None:
        self.sample = check_sample(sample, self.name, "auto")
        self.level = check_level(level, self.name)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """The samples, then the rest."""
        deck = Deck(book, self.level, rng)
        if not len(deck) or budget <= 0:
            return
        size, most = sample_size(self.sample, book, deck, self.level, budget)
        pages = deck.deal(draw(deck.left, size, most, rng))
        seen = yield Picks(pages, np.ones(len(pages)), f"a sample of its {self.level}")
        rate = judged(deck, *evidence(deck, seen))
        quota = quotas(rate, np.ones(len(rate), np.int64), budget - len(pages), deck.left)
        pages = deck.deal(quota, best_first(rate, rng))
        if len(pages):
            yield Picks(pages, rate[deck.group_of(pages)], f"its {self.level}'s quota, by what its sample showed")
