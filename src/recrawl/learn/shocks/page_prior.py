"""What is known of a page's change rate before its second visit: its prior from the first download, and its age.

The prior (`book.prior`, computed by `compare.change_prior`) is a factor f on the rate that the page would have by its
group. Young pages change far more often than they will later: a new page is corrected and completed within days. The
rate of a page that was found after the site's first crawl is therefore multiplied by 1 + 30 / (1 + its age in days).
The age of pages of the first crawl is unknown; they count as old.

Both hold where pages change on their own. Where they mostly change with their templates, as on many sites if any change
of the text counts, they say nothing. So each site has a weight w from 0 to 1, and the factor is f^w. It is learned from
visits: the book's memory holds, for a grid of weights, the log-likelihood of what the visits to the site found. Sites
with few visits use what is common among the others. All weights are lower where visits find changes anyway (`room`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Float32s, Floats
from recrawl.learn.chunks import AnyPages
from recrawl.learn.shocks.new_pages import FIRST_CRAWL, room_to_gain

YOUNG_FACTOR = 30.0
"""How much more often a page changes on its first day."""
WEIGHTS = np.array([0.0, 0.5, 1.0])
"""The weights whose likelihoods are compared."""
INITIAL = np.array([0.4, 0.3, 0.3])
"""Their probabilities before any visit."""
POOL_WEIGHT = 1.0
"""The weight of the initial probabilities against the other sites, in sites."""
FADE = 0.9998
"""The factor by which a site's evidence decays with each visit."""
_ROUNDS = 4
_MEMORY = "shock.prior"
OTHERS = "shock.prior.others"
"""Memory key of the sums of `site_evidence` over other shards; absent without shards."""


@dataclass(slots=True)
class PagePrior:
    """The priors of the pages of a book, and their weights."""

    book: Book
    first_found: Floats
    """One per site: when its first page was found; empty if neither priors nor ages are used."""
    logs: Floats
    """Site by weight of the grid: log-likelihood of the visits, decayed."""
    weight: Floats = field(init=False)
    """One per site: the expected weight."""

    def __post_init__(self) -> None:
        common = _common(self.logs, self.book.memory.get(OTHERS, np.zeros(len(WEIGHTS))))
        self.weight = room_to_gain(self.book.memory) * (_posterior(self.logs, common) @ WEIGHTS)

    @classmethod
    def of(cls, book: Book, *, used: bool = True) -> PagePrior:
        """Return the priors of a book's pages; neutral ones if they are not used or the book has none."""
        used = used and book.prior is not None
        sites = book.sites if used else 0
        first, logs = np.full(sites, np.inf), np.zeros((sites, len(WEIGHTS)))
        if used:
            np.minimum.at(first, book.site, book.found)
            kept = book.memory.get(_MEMORY, logs[:0])
            logs[: len(kept)] = kept
        return cls(book, first, logs)

    def keep(self, book: Book) -> None:
        """Store the evidence in the book's memory."""
        if len(self.logs):
            book.memory[_MEMORY] = self.logs

    def add(self, pages: AnyPages, logs: Floats) -> None:
        """Add the log-likelihoods of visits, page by weight of the grid; they count from the next cycle on."""
        site, sites = self.book.site[pages], len(self.logs)
        self.logs *= (FADE ** np.bincount(site, minlength=sites))[:, None]
        np.add.at(self.logs, site, logs)

    def factor(self, pages: AnyPages | slice, weight: float | None = None) -> Float32s | float:
        """Return the pages' rates relative to those of average pages, by the weights of their sites or another.

        >>> book = Book.blank(2)
        >>> book.prior = np.log(np.array([1, 3], np.float32))
        >>> PagePrior.of(book).factor(np.array([1]), 1.0).round(3).tolist(), PagePrior.of(book, used=False).factor([1])
        ([3.0], 1.0)
        """
        if self.book.prior is None or not len(self.first_found) or weight == 0:
            return 1.0
        if weight is None and not self.weight.any():
            return 1.0
        by = self.weight[self.book.site[pages]].astype(np.float32) if weight is None else np.float32(weight)
        prior = self.book.prior[pages]
        factor: Float32s = np.where(np.isfinite(prior), prior, np.float32(0))
        factor *= by
        return np.exp(factor, out=factor)

    def age_factor(self, pages: AnyPages) -> Floats | float:
        """Return by how much the pages' youth has raised their rates since their last visits, on average.

        >>> book = Book.blank(2, now=31 * DAY)
        >>> book.found[1], book.last_visit[:], book.prior = 30 * DAY, [0, 30 * DAY], np.zeros(2, np.float32)
        >>> book.memory["shock.prior"] = np.array([[0.0, 0.0, 99.0]])  # visits have shown that priors hold
        >>> book.memory["shock.hits"] = np.array([10.0, 5.0])  # and that many pages are quiet
        >>> PagePrior.of(book).age_factor(np.array([0, 1])).round(1).tolist()
        [1.0, 21.8]
        """
        book = self.book
        if book.prior is None or not len(self.first_found):
            return 1.0
        found, last = book.found[pages], book.last_visit[pages]
        young = (found > self.first_found[book.site[pages]] + FIRST_CRAWL) & np.isfinite(last)
        young &= ~np.isnan(book.prior[pages])
        factor = np.ones(len(pages))
        if young.any():
            found, last = found[young], last[young]
            before, now = np.maximum(last - found, 0) / DAY, np.maximum(book.now - found, 0) / DAY
            by = self.weight[book.site[pages[young]]]
            factor[young] += by * YOUNG_FACTOR * np.log((1 + now) / (1 + before)) / np.maximum(now - before, 1e-6)
        return factor


def site_evidence(book: Book) -> Floats:
    """Return the probabilities of the weights, summed over the sites with visits."""
    logs = book.memory.get(_MEMORY, np.zeros((0, len(WEIGHTS))))
    sums: Floats = _posterior(logs[logs.any(axis=1)], _common(logs, np.zeros(len(WEIGHTS)))).sum(axis=0)
    return sums


def _common(logs: Floats, others: Floats) -> Floats:
    """Return the probabilities of the weights among all sites, those of other shards included."""
    seen = logs.any(axis=1)
    common = INITIAL
    for _ in range(_ROUNDS if seen.any() or others.any() else 0):
        common = POOL_WEIGHT * INITIAL + others + _posterior(logs[seen], common).sum(axis=0)
        common /= common.sum()
    return common


def _posterior(logs: Floats, prior: Floats) -> Floats:
    """Return, site by weight of the grid, the posterior probabilities."""
    odds = np.exp(logs - logs.max(axis=1, keepdims=True)) * prior
    posterior: Floats = odds / odds.sum(axis=1, keepdims=True)
    return posterior
