"""What is known of a page's change rate before its second visit: its prior from the first download, and its age.

The prior (`book.prior`, computed by `compare.change_prior`) is a factor on the rate that the page would have by its
group. Young pages change far more often than they will later: a new page is corrected and completed within days. The
rate of a page that was found after the site's first crawl is therefore multiplied by 1 + 30 / (1 + its age in days).
The age of pages of the first crawl is unknown; they count as old.

Both hold for changes of content. Where any change of the text counts, pages mostly change with their templates, and
`book.prior` is NaN: such pages have neither factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Float32s, Floats
from recrawl.learn.chunks import AnyPages

YOUNG_FACTOR = 30.0
"""How much more often a page changes on its first day."""
FIRST_CRAWL = 7 * DAY
"""Pages found this long after the first page of their site, or sooner, are of unknown age."""


@dataclass(frozen=True, slots=True)
class PagePrior:
    """The priors of the pages of a book."""

    book: Book
    first_found: Floats
    """One per site: when its first page was found; empty if neither priors nor ages are used."""

    @classmethod
    def of(cls, book: Book, *, used: bool = True) -> PagePrior:
        """Return the priors of a book's pages; neutral ones if they are not used or the book has none."""
        used = used and book.prior is not None
        first = np.full(book.sites if used else 0, np.inf)
        if used:
            np.minimum.at(first, book.site, book.found)
        return cls(book, first)

    def factor(self, pages: AnyPages | slice) -> Float32s | float:
        """Return the pages' rates relative to those of average pages.

        >>> book = Book.blank(2)
        >>> book.prior = np.log(np.array([1, 3], np.float32))
        >>> PagePrior.of(book).factor(np.array([1])).round(3).tolist(), PagePrior.of(book, used=False).factor([1])
        ([3.0], 1.0)
        """
        if self.book.prior is None or not len(self.first_found):
            return 1.0
        factor: Float32s = np.exp(np.nan_to_num(self.book.prior[pages]))
        return factor

    def age_factor(self, pages: AnyPages) -> Floats | float:
        """Return by how much the pages' youth has raised their rates since their last visits, on average.

        >>> book = Book.blank(2, now=31 * DAY)
        >>> book.found[1], book.last_visit[:], book.prior = 30 * DAY, [0, 30 * DAY], np.zeros(2, np.float32)
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
            factor[young] += YOUNG_FACTOR * np.log((1 + now) / (1 + before)) / np.maximum(now - before, 1e-6)
        return factor
