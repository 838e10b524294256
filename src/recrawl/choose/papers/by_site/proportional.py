"""Policy `proportional`: sample every site, then divide the budget in proportion to the samples' change rates."""

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
    level_needs,
    order_by_rate,
    quotas,
    sampled_rates,
)
from recrawl.choose.protocol import Choice
from recrawl.model import Picks


class Proportional:
    """Samples every site, then divides the rest of the budget by the share of each sample that changed.

    The samples are visits and use at most half of the budget, or all of it if `sample` is a number. If that is too
    little, all sites get the same number of samples; if it is less than one page per site, pages are drawn from all
    pages, and a site without a sample has the mean rate of the others. A site whose sample shows no change gets
    downloads only when all others are downloaded whole.

    Parameters
    ----------
    sample
        Pages to sample of each site: a number, or `auto` for √(N·r), where N is the mean number of pages per site and
        r the share of all pages that can be downloaded.
    level
        What is sampled: `site`, `directory`, or `cluster` of similar pages of all sites.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> [len(pages) for pages in batches(Proportional(sample=10), book, budget=100)]
    [20, 80]

    Source: Al-Qaaideh 2009 §2.5.2, after Cho and Ntoulas 2002.
    """

    name: ClassVar[str] = "proportional"
    source: ClassVar[str] = "Al-Qaaideh 2009 §2.5.2, Cho and Ntoulas 2002 (spec P3)"
    # Not a ClassVar: it depends on the parameters.
    needs: frozenset[str] = frozenset()
    one_shard: ClassVar[str] = "it divides the budget among all sites at once"

    def __init__(self, *, sample: str | int = "auto", level: Level = "site") -> None:
        self.sample = check_sample(sample, self.name, "auto")
        self.level = check_level(level, self.name)
        self.needs = level_needs(self.level)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield the samples, then each site's quota."""
        deck = Deck(book, self.level, rng)
        if not len(deck) or budget <= 0:
            return
        size, most = sample_size(self.sample, book, deck, self.level, budget)
        pages = deck.deal(draw(deck.left, size, most, rng))
        seen = yield Picks(pages, np.ones(len(pages)), f"it was drawn as a sample of its {self.level}")
        rate = sampled_rates(deck, *evidence(deck, seen))
        quota = quotas(rate, np.ones(len(rate), np.int64), budget - len(pages), deck.left)
        pages = deck.deal(quota, order_by_rate(rate, rng))
        if len(pages):
            yield Picks(pages, rate[deck.group_of(pages)], f"the sample of its {self.level} earned it a visit")
