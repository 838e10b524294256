"""What a page's own record says, and nothing else: its changes come one by one, at a steady rate.

The plainest of the experts that `council` hears, and right where pages have nothing to do with one another. Every page
has a rate with a Gamma prior whose mean is the rate of its site. How many changes there were follows from how many
visits found one (Cho's bias-reduced estimate), since several changes between two visits look like one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from recrawl.book import Book
from recrawl.learn.chunks import Column, Floats, Pages, parts
from recrawl.learn.rates.estimators import bias_reduced
from recrawl.learn.shocks.model import DAY, FIRST_RATE, gamma

PRIOR = 1.0
"""How much the site's rate counts against a page's own changes: as much as one change."""


class PoissonRate:
    """Chances at one time, from the counts of a book and when pages were first downloaded."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @cached_property
    def since(self) -> Column:
        """One per page: the day of its first download; not a number where that was before anybody noted it."""
        return self._book.kept("shock.since", np.nan, np.float32)

    def begin(self, pages: Pages, at: Floats) -> None:
        """Pages were downloaded for the first time."""
        self.since[pages] = at / DAY

    def chance(self, pages: Pages) -> Floats:
        """The chances of pages of having changed since their last visits.

        >>> book = Book.blank(2, now=20 * DAY)
        >>> book.visits[:], book.changes[:], book.last_visit[:] = 9, [1, 5], 16 * DAY
        >>> PoissonRate(book).chance(np.arange(2)).round(2).tolist()
        [0.12, 0.54]
        """
        book = self._book
        gap = np.maximum(book.now - book.last_visit[pages], 1.0) / DAY
        changes, days = self._record(pages)
        return gamma(changes + PRIOR, days + PRIOR / self._rate[book.site[pages]], gap)

    @cached_property
    def _rate(self) -> Floats:
        """One per site, changes a day."""
        site, sites = self._book.site, self._book.sites
        changes, days = np.zeros(sites), np.zeros(sites)
        for part in parts(len(site)):
            seen = self._record(np.arange(part.start, part.stop))
            changes += np.bincount(site[part], seen[0], sites)
            days += np.bincount(site[part], seen[1], sites)
        rate: Floats = (changes + 1) / (days + 1 / FIRST_RATE)
        return rate

    def _record(self, pages: Pages) -> tuple[Floats, Floats]:
        """Changes that pages are thought to have had while they were watched, and for how many days that was."""
        book = self._book
        again = np.maximum(book.visits[pages] - 1.0, 0.0)
        found = np.clip(book.changes[pages] - 1.0, 0.0, again)
        noted = self.since[pages].astype(np.float64)
        first = np.where(np.isnan(noted), book.found[pages] / DAY, noted)
        days = np.where(again > 0, np.maximum(book.last_visit[pages] / DAY - first, 0.0), 0.0)
        return again * bias_reduced(found, again, 1.0), days
