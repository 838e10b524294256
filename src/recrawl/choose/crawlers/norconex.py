"""Policy `norconex`: Norconex's recrawl check, by the sitemap's date and frequency or by a minimum interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import IntervalPolicy, interval_rankings
from recrawl.choose.shards.offers import RankedPages
from recrawl.columns import DAY, HOUR, WEEK, Floats
from recrawl.errors import UsageError

PERIODS: dict[str, float] = {
    "always": 0.0,
    "hourly": HOUR,
    "daily": DAY,
    "weekly": WEEK,
    "monthly": 30 * DAY,
    "yearly": 365 * DAY,
    "never": np.inf,
}
"""The frequencies of sitemaps in seconds. Norconex uses calendar months and years; these are 30 and 365 days."""


class Norconex(IntervalPolicy):
    """Visits the pages that pass Norconex's GenericRecrawlableResolver, longest wait first.

    A page that was never visited passes. A page with a date in the sitemap passes if the date is later than the last
    visit; otherwise a page with a change frequency in the sitemap passes when that period is over; otherwise
    `min_frequency` decides. With the default, every page passes in every run.

    The dates come from the book's hints. A replay or a program can also put them into two columns of the book's
    memory: `hints.lastmod` (seconds since 1970) and `hints.changefreq` (seconds, as in PERIODS), both NaN for unknown.

    Parameters
    ----------
    min_frequency
        always, hourly, daily, weekly, monthly, yearly, never, or a number of days. A page passes when more than this
        period has passed since its last visit.
    sitemap
        Use the dates and frequencies of sitemaps.
    fill
        Spend unused budget on the pages that will pass soonest. Norconex leaves it unspent.

    Example
    -------
    >>> from recrawl.lab.replays.small_worlds import batches
    >>> book = Book.blank(3, now=864000.0)
    >>> book.last_try[:2] = 820800.0, 172800.0
    >>> batches(Norconex(min_frequency="weekly"), book, budget=3)
    [[2, 1]]

    Source: Norconex crawler 4, GenericRecrawlableResolver.
    """

    name: ClassVar[str] = "norconex"
    source: ClassVar[str] = "practice: Norconex's GenericRecrawlableResolver (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset({"hints"})

    def __init__(self, *, min_frequency: str = "always", sitemap: bool = True, fill: bool = False) -> None:
        period(min_frequency)  # raises an error if it is invalid
        self.min_frequency, self.sitemap, self.fill = min_frequency, sitemap, fill

    def rankings(self, book: Book, budget: int, rng: np.random.Generator) -> Iterator[RankedPages]:  # noqa: ARG002
        """Yield the pages that pass; with `fill`, then the pages that pass next."""
        unknown = np.full(len(book), np.nan)
        due = pass_times(
            book.last_try,
            _sitemap_dates(book) if self.sitemap else unknown,
            book.kept("hints.changefreq", np.nan) if self.sitemap else unknown,
            period(self.min_frequency),
        )
        yield from interval_rankings(book, due, reason="it passed Norconex's recrawl check", fill=self.fill)


def pass_times(processed: Floats, lastmod: Floats, changefreq: Floats, least: float) -> Floats:
    """Return the first time at which each page passes the check; inf for never.

    >>> nan = np.nan
    >>> pass_times(np.array([-np.inf, 100.0, 100.0]), np.array([nan, 90.0, 150.0]), np.full(3, nan), 50.0).tolist()
    [-inf, inf, 100.0]
    """
    wait = np.where(np.isnan(changefreq), least, changefreq)
    # A page passes when more than the period has passed: at the next representable time after its end.
    later = np.where(wait > 0, np.nextafter(np.maximum(processed, -1e300) + wait, np.inf), processed)
    dated = np.where(lastmod > processed, processed, np.inf)
    due = np.where(np.isnan(lastmod), later, dated)
    return np.where(processed == -np.inf, -np.inf, due)


def period(text: str) -> float:
    """Convert a frequency or a number of days to seconds.

    >>> period("weekly"), period("2.5")
    (604800.0, 216000.0)
    """
    if text in PERIODS:
        return PERIODS[text]
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < np.inf:
        words = ", ".join(PERIODS)
        raise UsageError(f"norconex's min_frequency is one of {words}, or a number of days, not '{text}'")
    return days * DAY


def _sitemap_dates(book: Book) -> Floats:
    """Return the newest date in the sitemap for each page, NaN for none."""
    date: Floats = book.kept("hints.lastmod", np.nan)
    if book.hints is not None and "lastmod" in book.hints.kinds:
        claimed = book.hints.claimed[book.hints.kinds.index("lastmod")]
        date = np.where(np.isfinite(claimed), claimed, date)
    return date
