"""Greedy sampling that judges a sampled page by its history: Al-Qaaideh's own policy."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.papers.site_sampling import (
    Deck,
    apportion,
    best_first,
    check_whole,
    draw,
    evidence,
    in_order,
    judged,
)
from recrawl.choose.papers.version_history import MOST, page_rates, remember
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError
from recrawl.model import Outcomes, Picks

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class FrequencyGreedy:
    """Greedy, with samples sized by the sites' rates and pages judged by their last versions (spec P7).

    P pages are sampled in a cycle. At first every site gets P/W of them, W the number of sites; from then on as many as
    its rate in the last cycle earns, c_w·P/Σc_w, and a site that earns fewer than 5 gets a reserve of P/20, so that one
    whose sample happened to show no change has its chance. A sampled page counts with C = D/V, the share of its last
    V comparisons that found a change; c_w is the mean of its pages' C. Then the sites with the highest c_w are
    downloaded whole.

    Settled here, as the thesis has nine sites and no budget: P is kept to a share of the budget, sample sizes that
    exceed it are cut in proportion, and the reserve is never more than the even share P/W nor less than one page. A
    site without a rate yet gets the even share, as does every site when all rates are zero.

    Parameters
    ----------
    sample
        P as a share of the pages that may be visited; the thesis suggests 0.1.
    most
        The largest share of the budget that samples may take.
    versions
        V: the comparisons over which a page's rate is taken, at most 60.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Busy
    >>> book = Book.blank(200)
    >>> book.site[100:] = 1
    >>> [len(seen) for seen in drive(FrequencyGreedy(), Busy(1), book, budget=100, seed=1)]
    [20, 80]

    Source: Al-Qaaideh 2009 chapter 3 and appendix A.1.
    """

    name: ClassVar[str] = "frequency-greedy"
    source: ClassVar[str] = "Al-Qaaideh 2009 chapter 3, appendix A.1 (spec P7)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, sample: float = 0.1, most: float = 0.5, versions: int = 5) -> None:
        if not 0 < sample <= 1:
            raise UsageError(f"frequency-greedy's sample is a share of all pages, over 0 and at most 1, not {sample}")
        if not 0 < most <= 1:
            raise UsageError(f"frequency-greedy's most is a share of the budget, over 0 and at most 1, not {most}")
        self.sample = sample
        self.most = most
        self.versions = check_whole(versions, f"{self.name}'s versions", MOST)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """The samples, then the rest."""
        deck = Deck(book, "site", rng)
        if not len(deck) or budget <= 0:
            return
        most = max(1, int(self.most * budget))
        total = min(most, max(1, round(self.sample * int(deck.size.sum()))))
        pages = deck.deal(self._samples(_past_rates(book, deck.names), total, most, deck.left, rng))
        seen = yield Picks(pages, np.ones(len(pages)), "a sample of its site")
        rate = judged(deck, *evidence(deck, seen, page_rates(book, self.name, self.versions, seen)))
        order = best_first(rate, rng)
        pages = deck.deal(in_order(order, budget - len(pages), deck.left), order)
        if len(pages):
            yield Picks(pages, rate[deck.group_of(pages)], "its site's sampled pages changed most often")

    def learn(self, book: Book, seen: Outcomes, at: NDArray[np.float64]) -> None:  # noqa: ARG002
        """Keep which comparisons found a change, and each site's rate."""
        said = seen.answered
        rate = page_rates(book, self.name, self.versions, seen)[said]
        site = book.site[seen.pages[said]]
        past = _past_rates(book, np.arange(book.sites))
        visits = np.bincount(site, minlength=len(past))
        total = np.bincount(site, weights=rate, minlength=len(past))
        book.memory[f"{self.name}.rate"] = np.where(visits > 0, total / np.maximum(visits, 1), past)
        remember(book, self.name, self.versions, seen)

    @staticmethod
    def _samples(rate: Floats, total: int, most: int, room: Counts, rng: np.random.Generator) -> Counts:
        """The pages to sample of each site, at most `most` in all."""
        fair = draw(room, total, total, rng)
        known = ~np.isnan(rate)
        if not rate[known].any():
            return fair
        reserve = max(1, min(total // 20, total // len(rate)))
        size = np.where(known, sample_sizes(np.nan_to_num(rate), total, reserve), np.maximum(fair, 1))
        size = np.minimum(size, room)
        return size if size.sum() <= most else apportion(most, size, size, rng.permutation(len(size)))


def sample_sizes(rate: Floats, total: int, reserve: int | None = None) -> Counts:
    """The next sample of each site: ⌊c_w·T/Σc_w⌋, and a reserve (T/20) where that is under 5 (Q §3.3.3, App. A.1).

    >>> sample_sizes(np.array([0.6, 0.37, 0.03, 0.0]), 100).tolist()
    [60, 37, 5, 5]
    """
    earned = np.floor(np.round(rate * total / rate.sum(), 9)).astype(np.int64) if rate.any() else 0 * rate
    return np.where(earned < 5, total // 20 if reserve is None else reserve, earned).astype(np.int64)


def first_sample(total: int, sites: int) -> int:
    """The first sample of each site: P/W (Q §3.3.1).

    >>> first_sample(100, 9)
    11
    """
    return total // sites


def _past_rates(book: Book, sites: NDArray[np.integer]) -> Floats:
    """The rates that sites had when they were last visited; nan where that never was."""
    kept = book.memory.get(f"{FrequencyGreedy.name}.rate", np.zeros(0))
    rate = np.full(len(sites), np.nan)
    inside = sites < len(kept)
    rate[inside] = kept[sites[inside]]
    return rate
