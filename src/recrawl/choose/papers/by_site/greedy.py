"""Policy `greedy`: sample every site, then download the sites whose samples changed most."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.by_site.sample_size import check_sample, sample_size
from recrawl.choose.papers.by_site.site_sampling import (
    Deck,
    Level,
    check_level,
    draw,
    evidence,
    fill_in_order,
    level_needs,
    order_by_rate,
    sampled_rates,
)
from recrawl.choose.protocol import Choice
from recrawl.model import Picks


class Greedy:
    """Samples every site, then downloads whole sites in the order of their samples' change rates (GSB).

    The samples are visits and use at most half of the budget, or all of it if `sample` is a number. If that is too
    little, all sites get the same number of samples; if it is less than one page per site, pages are drawn from all
    pages, and a site without a sample has the mean rate of the others. Ties are broken at random.

    Parameters
    ----------
    sample
        Pages to sample of each site: a number; `auto` for √(N·r), where N is the mean number of pages per site and r
        the share of all pages that can be downloaded; `optimal` for √(N·r·f(p_t) / (6·(p̄_r - p̄))) from the change
        rates so far (as `auto` while there are none).
    level
        What is sampled and downloaded: `site`; `directory`, which follows changes more closely; or `cluster` of similar
        pages of all sites.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> [len(pages) for pages in batches(Greedy(sample=10), book, budget=100)]
    [20, 80]

    Source: Al-Qaaideh 2009 §1.3.4 (clusters), §2.5.3 and §2.6, Tan et al. 2007 §6.2, after Cho and Ntoulas 2002.
    """

    name: ClassVar[str] = "greedy"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.5.3, Tan et al. 2007 §6.2, Cho and Ntoulas 2002 (spec P4)"
    # Not a ClassVar: it depends on the parameters.
    needs: frozenset[str] = frozenset()
    one_shard: ClassVar[str] = "it divides the budget among all sites at once"

    def __init__(self, *, sample: str | int = "auto", level: Level = "site") -> None:
        self.sample = check_sample(sample, self.name, "auto", "optimal")
        self.level = check_level(level, self.name)
        self.needs = level_needs(self.level)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield the samples, then the pages of the sites with the highest rates."""
        deck = Deck(book, self.level, rng)
        if not len(deck) or budget <= 0:
            return
        size, most = sample_size(self.sample, book, deck, self.level, budget)
        pages = deck.deal(draw(deck.left, size, most, rng))
        seen = yield Picks(pages, np.ones(len(pages)), f"it was drawn as a sample of its {self.level}")
        rate = sampled_rates(deck, *evidence(deck, seen))
        order = order_by_rate(rate, rng)
        pages = deck.deal(fill_in_order(order, budget - len(pages), deck.left), order)
        if len(pages):
            yield Picks(pages, rate[deck.group_of(pages)], f"the sample of its {self.level} changed most")
