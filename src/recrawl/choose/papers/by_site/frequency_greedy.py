"""Policy `frequency-greedy`: greedy sampling that uses the history of each sampled page; Al-Qaaideh's own policy."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.papers.by_site.site_sampling import (
    Deck,
    apportion,
    check_whole,
    draw,
    evidence,
    fill_in_order,
    order_by_rate,
    sampled_rates,
)
from recrawl.choose.papers.by_site.version_history import MAX_VERSIONS, page_rates, store_comparisons
from recrawl.choose.protocol import Choice
from recrawl.columns import Floats, Ints
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks


class FrequencyGreedy:
    """Greedy, with sample sizes by site rate and a page's value by its last versions (spec P7).

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
        V: the number of comparisons that a page's rate covers, at most 60.

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
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, sample: float = 0.1, most: float = 0.5, versions: int = 5) -> None:
        if not 0 < sample <= 1:
            raise UsageError(f"frequency-greedy's sample must be a share of all pages above 0, at most 1, not {sample}")
        if not 0 < most <= 1:
            raise UsageError(f"frequency-greedy's most must be a share of the budget above 0, at most 1, not {most}")
        self.sample = sample
        self.most = most
        self.versions = check_whole(versions, f"{self.name}'s versions", MAX_VERSIONS)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield the samples, then the sites with the highest rates."""
        deck = Deck(book, "site", rng)
        if not len(deck) or budget <= 0:
            return
        most = max(1, int(self.most * budget))
        total = min(most, max(1, round(self.sample * int(deck.size.sum()))))
        pages = deck.deal(self._samples(_past_rates(book, deck.names), total, most, deck.left, rng))
        seen = yield Picks(pages, np.ones(len(pages)), "it was drawn as a sample of its site")
        rate = sampled_rates(deck, *evidence(deck, seen, page_rates(book, self.name, self.versions, seen)))
        order = order_by_rate(rate, rng)
        pages = deck.deal(fill_in_order(order, budget - len(pages), deck.left), order)
        if len(pages):
            yield Picks(pages, rate[deck.group_of(pages)], "the sampled pages of its site changed most often")

    def learn(self, book: Book, seen: Outcomes, at: Floats) -> None:  # noqa: ARG002
        """Store which comparisons found a change, and each site's rate."""
        answered = seen.answered
        rate = page_rates(book, self.name, self.versions, seen)[answered]
        site = book.site[seen.pages[answered]]
        past = _past_rates(book, np.arange(book.sites))
        visits = np.bincount(site, minlength=len(past))
        total = np.bincount(site, weights=rate, minlength=len(past))
        book.memory[f"{self.name}.rate"] = np.where(visits > 0, total / np.maximum(visits, 1), past)
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


def _past_rates(book: Book, sites: NDArray[np.integer]) -> Floats:
    """Return the sites' rates at their last visit; nan for sites never visited."""
    kept = book.memory.get(f"{FrequencyGreedy.name}.rate", np.zeros(0))
    rate = np.full(len(sites), np.nan)
    inside = sites < len(kept)
    rate[inside] = kept[sites[inside]]
    return rate
