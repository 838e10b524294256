"""Policy `frequency-greedy`: greedy sampling that uses the history of each sampled page; Al-Qaaideh's own policy."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.papers.by_site.site_sampling import (
    Deck,
    Level,
    apportion,
    check_level,
    draw,
    evidence,
    fill_in_order,
    labels,
    level_needs,
    order_by_rate,
    sampled_rates,
)
from recrawl.choose.papers.by_site.version_history import (
    check_versions,
    page_rates,
    store_comparisons,
    stored,
    versions_of,
)
from recrawl.choose.protocol import Choice
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks


class FrequencyGreedy:
    """Greedy, with sample sizes by site rate and a page's value by its last versions.

    A cycle samples P pages. At first every site gets P/W of them, where W is the number of sites; later a site gets
    c_w·P/Σc_w by its rate in the last cycle. A site with fewer than 5 gets a reserve of P/20, so that a site whose
    sample happened to show no change is sampled again. A sampled page counts with C = D/V, the share of its last V
    comparisons that found a change; c_w is the mean C of the site's sampled pages. Then the sites with the highest c_w
    are downloaded whole.

    The thesis has nine sites and no budget, so these points are decided here: P is limited to a share of the budget,
    sample sizes that exceed it are reduced in proportion, and the reserve is at most the even share P/W and at least
    one page. A site without a rate gets the even share, and so does every site when all rates are 0.

    Parameters
    ----------
    sample
        P as a share of the pages that may be visited; the thesis suggests 0.1.
    most
        The maximum share of the budget for samples.
    versions
        V: the number of comparisons that a page's rate covers, at most 60; `auto` for the longest history over which
        the change rate of its group is steady.
    level
        What is sampled and downloaded: `site`, `directory`, or `cluster` of similar pages of all sites.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> [len(pages) for pages in batches(FrequencyGreedy(), book, budget=100)]
    [20, 80]

    Source: Al-Qaaideh 2009 chapter 3 and appendix A.1.
    """

    name: ClassVar[str] = "frequency-greedy"
    source: ClassVar[str] = "Al-Qaaideh 2009 chapter 3, appendix A.1 (spec P7)"
    # Not a ClassVar: it depends on the parameters.
    needs: frozenset[str] = frozenset()
    one_shard: ClassVar[str] = "it divides the budget among all sites at once"

    def __init__(
        self, *, sample: float = 0.1, most: float = 0.5, versions: str | int = "5", level: Level = "site"
    ) -> None:
        if not 0 < sample <= 1:
            raise UsageError(f"frequency-greedy's sample must be a share of all pages above 0, at most 1, not {sample}")
        if not 0 < most <= 1:
            raise UsageError(f"frequency-greedy's most must be a share of the budget above 0, at most 1, not {most}")
        self.sample = sample
        self.most = most
        self.versions = check_versions(versions, self.name)
        self.level = check_level(level, self.name)
        self.needs = level_needs(self.level)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield the samples, then the sites with the highest rates."""
        deck = Deck(book, self.level, rng)
        if not len(deck) or budget <= 0:
            return
        most = max(1, int(self.most * budget))
        total = min(most, max(1, round(self.sample * int(deck.size.sum()))))
        versions = versions_of(book, self.name, self.versions, labels(book, self.level))
        pages = deck.deal(self._samples(past_rates(book, deck, versions), total, most, deck.left, rng))
        seen = yield Picks(pages, np.ones(len(pages)), f"it was drawn as a sample of its {self.level}")
        rate = sampled_rates(deck, *evidence(deck, seen, page_rates(book, self.name, versions, seen)))
        order = order_by_rate(rate, rng)
        pages = deck.deal(fill_in_order(order, budget - len(pages), deck.left), order)
        if len(pages):
            yield Picks(pages, rate[deck.group_of(pages)], f"the sampled pages of its {self.level} changed most often")

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:  # noqa: ARG002
        """Store which comparisons found a change, and the turn in which each page was last visited."""
        # Only facts about pages: which site, directory or cluster they are in may be another one in the next cycle.
        turn = book.kept(f"{self.name}.turn", 0, np.int64)
        turn[seen.pages[seen.answered]] = turn.max(initial=0) + 1
        book.memory[f"{self.name}.turn"] = turn
        store_comparisons(book, self.name, self.versions, seen)

    @staticmethod
    def _samples(rate: Floats, total: int, most: int, room: Ints, rng: np.random.Generator) -> Ints:
        """Return the number of pages to sample of each site, at most `most` in all."""
        even = draw(room, total, total, rng)
        known = ~np.isnan(rate)
        if not rate[known].any():
            return even
        reserve = max(1, min(total // 20, total // len(rate)))
        size = np.where(known, sample_sizes(np.nan_to_num(rate), total, reserve), np.maximum(even, 1))
        size = np.minimum(size, room)
        return size if size.sum() <= most else apportion(most, size, size, rng.permutation(len(size)))


def sample_sizes(rate: Floats, total: int, reserve: int | None = None) -> Ints:
    """Return the next sample size of each site: ⌊c_w·T/Σc_w⌋, a reserve (T/20) where below 5 (Q §3.3.3, App. A.1).

    >>> sample_sizes(np.array([0.6, 0.37, 0.03, 0.0]), 100).tolist()
    [60, 37, 5, 5]
    """
    earned = np.floor(np.round(rate * total / rate.sum(), 9)).astype(np.int64) if rate.any() else 0 * rate
    return np.where(earned < 5, total // 20 if reserve is None else reserve, earned).astype(np.int64)


def first_sample(total: int, sites: int) -> int:
    """Return the first sample size of each site: P/W (Q §3.3.1).

    >>> first_sample(100, 9)
    11
    """
    return total // sites


def past_rates(book: Book, deck: Deck, versions: int | Ints) -> Floats:
    """Return the rate of every group: the mean C of the pages of its last turn; nan for a group never visited."""
    name = FrequencyGreedy.name
    group, own = np.unique(labels(book, deck.level), return_inverse=True)
    turn = book.kept(f"{name}.turn", 0, np.int64)
    newest = np.zeros(len(group), np.int64)
    np.maximum.at(newest, own, turn)
    latest = np.flatnonzero((turn > 0) & (turn == newest[own]))
    rates = stored(book, name).rates(versions)[latest]
    visits = np.bincount(own[latest], minlength=len(group))
    total = np.bincount(own[latest], weights=rates, minlength=len(group))
    rate: Floats = np.where(visits > 0, total / np.maximum(visits, 1), np.nan)
    return rate[np.searchsorted(group, deck.names)]
