"""Change probabilities from each page's own visits, at a constant Poisson rate.

The alternative that `mixture` compares with the change model; it is right where pages change independently. Every page
has a rate with a Gamma prior whose mean is the rate of its site. The number of changes is estimated from the number of
visits that found one (Cho's bias-reduced estimate), since several changes between two visits look like one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Float32s, Floats
from recrawl.learn.chunks import AnyPages, chunks
from recrawl.learn.rates.estimators import bias_reduced
from recrawl.learn.shocks.model import FIRST_RATE, gamma_probability
from recrawl.model import Outcomes

PRIOR_WEIGHT = 1.0
"""The weight of the site's rate, in changes."""


class PoissonRate:
    """Change probabilities from the counts of a book and the times of first downloads."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @cached_property
    def since(self) -> Float32s:
        """One per page: the day of its first download; NaN if it was not stored."""
        return self._book.kept("shock.since", np.nan, np.float32)

    def learn(self, seen: Outcomes, at: Floats) -> None:
        """Store the times of first downloads in the book's memory."""
        first = seen.answered & (self._book.visits[seen.pages] == 0)
        self.since[seen.pages[first]] = at[first] / DAY
        self._book.memory["shock.since"] = self.since

    def predict(self, pages: AnyPages) -> Floats:
        """Return the probability that each page has changed since its last visit.

        >>> book = Book.blank(2, now=20 * DAY)
        >>> book.visits[:], book.changes[:], book.last_visit[:] = 9, [1, 5], 16 * DAY
        >>> PoissonRate(book).predict(np.arange(2)).round(2).tolist()
        [0.12, 0.54]
        """
        book = self._book
        gap = np.maximum(book.now - book.last_visit[pages], 1.0) / DAY
        changes, days = self._history(pages)
        return gamma_probability(changes + PRIOR_WEIGHT, days + PRIOR_WEIGHT / self._site_rate[book.site[pages]], gap)

    @cached_property
    def _site_rate(self) -> Floats:
        """One per site: changes per day and page."""
        site, sites = self._book.site, self._book.sites
        changes, days = np.zeros(sites), np.zeros(sites)
        for chunk in chunks(len(site)):
            history = self._history(np.arange(chunk.start, chunk.stop))
            changes += np.bincount(site[chunk], history[0], sites)
            days += np.bincount(site[chunk], history[1], sites)
        rate: Floats = (changes + 1) / (days + 1 / FIRST_RATE)
        return rate

    def _history(self, pages: AnyPages) -> tuple[Floats, Floats]:
        """Return the estimated changes of pages between their first and last visits, and the days in between."""
        book = self._book
        compared = np.maximum(book.visits[pages] - 1.0, 0.0)
        found = np.clip(book.changes[pages] - 1.0, 0.0, compared)
        stored = self.since[pages].astype(np.float64)
        first = np.where(np.isnan(stored), book.found[pages] / DAY, stored)
        days = np.where(compared > 0, np.maximum(book.last_visit[pages] / DAY - first, 0.0), 0.0)
        return compared * bias_reduced(found, compared, 1.0), days
