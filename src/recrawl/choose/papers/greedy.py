"""The sites whose samples changed most are downloaded whole."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.sample_size import check_sample, sample_size
from recrawl.choose.papers.site_sampling import Deck, Level, best_first, check_level, draw, evidence, in_order, judged
from recrawl.choose.protocol import Choice
from recrawl.model import Picks


class Greedy:
    """Samples every site, then downloads whole sites, the one whose sample changed most first (spec P4, GSB).

    The samples are visits and part of the budget: at most half of it, or all of it where a number of pages is asked
    for. If that is too little, all sites get an even part; if it is less than one page a site, pages are drawn among
    all pages alike, and a site of which none was drawn counts as the mean of the others. Chance decides among
    sites that did equally well.

    Parameters
    ----------
    sample
        Pages to sample of each site: a number; `auto` for √(N·r), N the mean number of pages of a site and r the
        share of all pages that can be downloaded; `optimal` for √(N·r·f(p_t) / (6·(p̄_r - p̄))) from the change rates
        seen so far, and as `auto` as long as none are known.
    level
        What is sampled and downloaded: `site`, or `directory`, which follows changes more closely.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Busy
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> [len(seen) for seen in drive(Greedy(sample=10), Busy(1), book, budget=100, seed=1)]
    [20, 80]

    Source: Al-Qaaideh 2009 §2.5.3 and §2.6, Tan et al. 2007 §6.2, after Cho and Ntoulas 2002.
    """

    name: ClassVar[str] = "greedy"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.5.3, Tan et al. 2007 §6.2, Cho and Ntoulas 2002 (spec P4)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, sample: str | int = "auto", level: Level = "site") -> None:
        self.sample = check_sample(sample, self.name, "auto", "optimal")
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
        order = best_first(rate, rng)
        pages = deck.deal(in_order(order, budget - len(pages), deck.left), order)
        if len(pages):
            yield Picks(pages, rate[deck.group_of(pages)], f"its {self.level}'s sample changed most")
