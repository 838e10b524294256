"""Policy `marginalia`: the more visited pages of a site are unchanged, the more of its other pages are skipped.

Marginalia's rule visits a site page by page. Here all sites of a round advance in parallel, in chunks. A chunk is exact
where the rule skips nothing (a site's first pages); later the share of unchanged pages is updated whenever a site has
advanced by a quarter, and by at least 100 pages.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.columns import Floats, Ints
from recrawl.model import Outcome, Outcomes, Pages, Picks

MIN_VISITS = 25
"""Pages of a site that are visited before any page is skipped."""
_MIN_CHUNK = 100
_MAX_FAILURES = 20
"""A site with more failures than this is skipped for the rest of the cycle."""


class Marginalia:
    """Visits the pages of each site in stored order and skips each page with probability p.

    p is the share of the site's pages visited in this cycle that were unchanged, within bounds that rise with the
    number of pages passed: 0 before 26 visits, then 0 to 0.5, from 1,000 pages on 0.5 to 0.75, from 10,000 on 0.75 to
    0.99. Pages never visited are never skipped. Marginalia has no budget: when the budget ends a cycle, the next cycle
    begins with the sites that have waited longest, and in each site after the page that was tried last.

    Parameters
    ----------
    fill
        Spend unused budget on pages that were skipped. Marginalia leaves it unspent.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(1000)
    >>> book.visits[:] = 1
    >>> sum(map(len, batches(Marginalia(), book, budget=1000)))
    507

    Source: Marginalia Search, CrawlerRevisitor (full mode; the shorter look at some blog hosts is left out).
    """

    name: ClassVar[str] = "marginalia"
    source: ClassVar[str] = "practice: Marginalia Search's CrawlerRevisitor (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset()
    one_shard: ClassVar[str] = "it works through the sites one after the other"

    def __init__(self, *, fill: bool = False) -> None:
        self.fill = fill

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """Yield rounds of sites; each round takes as many sites as have enough pages for the remaining budget."""
        pages, ends = queue(book)
        skipped: list[Pages] = []
        left, site, begin = budget, 0, 0
        while left > 0 and site < len(ends):
            last = min(int(np.searchsorted(ends, begin + left)), len(ends) - 1)
            round_ = _Round(book, pages, np.r_[begin, ends[site : last + 1]])
            left = yield from round_.run(left, rng)
            skipped += round_.skipped
            site, begin = last + 1, int(ends[last])
        rest = np.concatenate(skipped)[:left] if self.fill and left > 0 and skipped else np.zeros(0, np.int64)
        if len(rest):
            yield Picks(rest, np.zeros(len(rest)), "it was skipped at first and budget was left")


class _Round:
    """Sites that advance in parallel: site i has the pages `bounds[i] .. bounds[i + 1]` of the queue."""

    def __init__(self, book: Book, queued: Pages, bounds: Ints) -> None:
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
        self._visited, self._unchanged, self._skipped, self._failures = np.zeros((4, sites), np.int64)
        self.skipped: list[Pages] = []

    def run(self, left: int, rng: np.random.Generator) -> Generator[Picks, Outcomes, int]:
        """Yield the new pages, then the others in chunks; return the remaining budget."""
        new = self._new[:left]
        if len(new):
            seen = yield Picks(new, np.ones(len(new)), "it was never visited")
            self._count_failures(seen)
            left -= len(new)
        while left > 0 and (self._cursor < self._end).any():
            pages, skip = self._advance()
            stay = rng.random(len(pages)) >= skip
            np.add.at(self._skipped, self._site[pages[~stay]], 1)
            self.skipped.append(pages[~stay])
            chosen, score = pages[stay][:left], 1.0 - skip[stay][:left]
            if len(chosen):
                seen = yield Picks(chosen, score, "it was not skipped by Marginalia's rule")
                np.add.at(self._visited, self._site[seen.pages[seen.answered]], 1)
                np.add.at(self._unchanged, self._site[seen.pages[seen.what == Outcome.UNCHANGED]], 1)
                self._count_failures(seen)
            left -= len(chosen)
        return left

    def _advance(self) -> tuple[Pages, Floats]:
        """Return the next chunk of each site, site by site, and the skip probability of each page."""
        before = self._visited + self._skipped
        size = np.where(
            self._visited <= MIN_VISITS, MIN_VISITS + 1 - self._visited, np.maximum(_MIN_CHUNK, before // 4)
        )
        size = np.minimum(size, self._end - self._cursor)
        offset = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        pages = self._old[np.repeat(self._cursor, size) + offset]
        self._cursor = self._cursor + size
        site = self._site[pages]
        return pages, skip_probability(self._visited[site], self._unchanged[site], before[site] + offset)

    def _count_failures(self, seen: Outcomes) -> None:
        np.add.at(self._failures, self._site[seen.pages[~seen.answered]], 1)
        failing = self._failures > _MAX_FAILURES
        self._cursor[failing] = self._end[failing]


def skip_probability(visited: Ints, unchanged: Ints, passed: Ints) -> Floats:
    """Return Marginalia's skip probability for each page; `passed` counts visited and skipped pages of its site.

    >>> visited, unchanged = np.array([25, 26, 500, 500]), np.array([25, 13, 500, 0])
    >>> skip_probability(visited, unchanged, np.array([25, 26, 1001, 10001])).tolist()
    [0.0, 0.5, 0.75, 0.75]
    """
    low = np.select([passed > 10_000, passed > 1000], [0.75, 0.5], 0.0)
    high = np.select([passed > 10_000, passed > 1000, visited > MIN_VISITS], [0.99, 0.75, 0.5], 0.0)
    return np.clip(unchanged / np.maximum(visited, 1), low, high)


def queue(book: Book) -> tuple[Pages, Ints]:
    """Return all known pages in visiting order, and where each site's pages end."""
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
