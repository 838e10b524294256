"""Marginalia's recrawl: the more pages of a site were found unchanged, the more of its others are passed over.

The rule goes through a site page by page. Here all sites of a round go side by side, in chunks: where the rule passes
nothing over (a site's first pages) a chunk is exact; later the share of unchanged pages is brought up to date whenever
a site has advanced by a quarter, and by 100 pages at least.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.model import Outcome, Outcomes, Pages, Picks

SURE = 25
"""Pages of a site that are visited before any is passed over."""
_CHUNK = 100
_ERRORS = 20
"""A site with more failures than this is left for the rest of the cycle."""

Counts = NDArray[np.int64]


class Marginalia:
    """Every site is gone through in stored order, pages being passed over with a chance p (spec P9).

    p is the share of the site's pages visited in this cycle that were unchanged, kept within bounds that rise with the
    number of pages gone through: none before 26 visits, then 0 to 0.5, from 1,000 pages on 0.5 to 0.75, from 10,000 on
    0.75 to 0.99. Pages never visited are never passed over. Marginalia has no budget: where one ends a cycle, the next
    begins with the sites that have waited longest, and in each site behind the page that was tried last.

    Parameters
    ----------
    fill
        Give budget that is left over to pages that were passed over. Marginalia itself leaves it.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(1000)
    >>> book.visits[:] = 1
    >>> sum(len(seen) for seen in drive(Marginalia(), Still(), book, budget=1000, seed=1))
    507

    Source: Marginalia Search, CrawlerRevisitor (full mode; the shorter look at some blog hosts is left out).
    """

    name: ClassVar[str] = "marginalia"
    source: ClassVar[str] = "practice: Marginalia Search's CrawlerRevisitor (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *, fill: bool = False) -> None:
        self.fill = fill

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Rounds of sites, as many sites at a time as have enough pages for the budget that is left."""
        pages, ends = queue(book)
        passed_over: list[Pages] = []
        left, site, begin = budget, 0, 0
        while left > 0 and site < len(ends):
            last = min(int(np.searchsorted(ends, begin + left)), len(ends) - 1)
            round_ = _Round(book, pages, np.r_[begin, ends[site : last + 1]])
            left = yield from round_.run(left, rng)
            passed_over += round_.passed_over
            site, begin = last + 1, int(ends[last])
        rest = np.concatenate(passed_over)[:left] if self.fill and left > 0 and passed_over else np.zeros(0, np.int64)
        if len(rest):
            yield Picks(rest, np.zeros(len(rest)), "was passed over at first, and there is budget left")


class _Round:
    """Some sites, gone through side by side: site i has the pages `bounds[i] .. bounds[i + 1]` of the queue."""

    def __init__(self, book: Book, queued: Pages, bounds: Counts) -> None:
        sites = len(bounds) - 1
        pages = queued[bounds[0] : bounds[-1]]
        site = np.repeat(np.arange(sites), np.diff(bounds))
        self._site = np.zeros(len(book), np.int64)
        self._site[pages] = site
        old = book.visits[pages] > 0
        self._new, self._old = pages[~old], pages[old]
        sizes = np.bincount(site[old], minlength=sites)
        self._end = np.cumsum(sizes)
        self._cursor = self._end - sizes
        self._visited, self._same, self._passed, self._errors = np.zeros((4, sites), np.int64)
        self.passed_over: list[Pages] = []

    def run(self, left: int, rng: np.random.Generator) -> Generator[Picks, Outcomes, int]:
        """New pages, then chunk after chunk of the others; returns what is left of the budget."""
        new = self._new[:left]
        if len(new):
            seen = yield Picks(new, np.ones(len(new)), "was never visited")
            self._count_errors(seen)
            left -= len(new)
        while left > 0 and (self._cursor < self._end).any():
            pages, chance = self._advance()
            stay = rng.random(len(pages)) >= chance
            np.add.at(self._passed, self._site[pages[~stay]], 1)
            self.passed_over.append(pages[~stay])
            chosen, worth = pages[stay][:left], 1.0 - chance[stay][:left]
            if len(chosen):
                seen = yield Picks(chosen, worth, "was not passed over; its site's share of unchanged pages decides")
                np.add.at(self._visited, self._site[seen.pages[seen.answered]], 1)
                np.add.at(self._same, self._site[seen.pages[seen.what == Outcome.UNCHANGED]], 1)
                self._count_errors(seen)
            left -= len(chosen)
        return left

    def _advance(self) -> tuple[Pages, NDArray[np.float64]]:
        """The next chunk of each site, site by site, and the chance of each page to be passed over."""
        before = self._visited + self._passed
        size = np.where(self._visited <= SURE, SURE + 1 - self._visited, np.maximum(_CHUNK, before // 4))
        size = np.minimum(size, self._end - self._cursor)
        turn = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        pages = self._old[np.repeat(self._cursor, size) + turn]
        self._cursor = self._cursor + size
        site = self._site[pages]
        return pages, skip_chance(self._visited[site], self._same[site], before[site] + turn)

    def _count_errors(self, seen: Outcomes) -> None:
        np.add.at(self._errors, self._site[seen.pages[~seen.answered]], 1)
        hopeless = self._errors > _ERRORS
        self._cursor[hopeless] = self._end[hopeless]


def skip_chance(visited: Counts, same: Counts, gone_through: Counts) -> NDArray[np.float64]:
    """Marginalia's rule for one page, over columns.

    >>> skip_chance(np.array([25, 26, 500, 500]), np.array([25, 13, 500, 0]), np.array([25, 26, 1001, 10001])).tolist()
    [0.0, 0.5, 0.75, 0.75]
    """
    low = np.select([gone_through > 10_000, gone_through > 1000], [0.75, 0.5], 0.0)
    high = np.select([gone_through > 10_000, gone_through > 1000, visited > SURE], [0.99, 0.75, 0.5], 0.0)
    return np.clip(same / np.maximum(visited, 1), low, high)


def queue(book: Book) -> tuple[Pages, Counts]:
    """All known pages in the order in which they are gone through, and where each site's pages end."""
    pages = np.flatnonzero(book.known)
    if not len(pages):
        return pages, np.zeros(0, np.int64)
    names, site = np.unique(book.site[pages], return_inverse=True)
    tried = np.full(len(names), -np.inf)
    np.maximum.at(tried, site, book.last_try[pages])
    last = np.full(len(names), -1, np.int64)
    newest = (book.last_try[pages] == tried[site]) & (tried[site] > -np.inf)
    np.maximum.at(last, site[newest], pages[newest])
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(tried, kind="stable")] = np.arange(len(names))
    order = np.lexsort((pages, pages <= last[site], rank[site]))
    return pages[order], np.cumsum(np.bincount(rank[site]))
