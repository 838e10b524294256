"""Norconex's gate: at each run a page is let through or not, by what its sitemap said or by a least interval."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from recrawl.book import Book
from recrawl.choose.crawlers.interval_base import Times, interval_picks
from recrawl.choose.protocol import Choice
from recrawl.errors import UsageError

_DAY = 86400.0
PERIODS: dict[str, float] = {
    "always": 0.0,
    "hourly": 3600.0,
    "daily": _DAY,
    "weekly": 7 * _DAY,
    "monthly": 30 * _DAY,
    "yearly": 365 * _DAY,
    "never": np.inf,
}
"""Seconds, for the words of sitemaps. Norconex counts calendar months and years; these are 30 and 365 days."""


class Norconex:
    """Pages that Norconex's GenericRecrawlableResolver lets through, those that wait longest first (spec P9).

    A page that was never visited passes. One with a sitemap's date passes if the date is later than the last visit;
    else one with a sitemap's change frequency passes when that time has gone by; else `min_frequency` decides. With
    the default, every page passes in every run.

    The dates are those of the book's hints. A replay or a program can also put them into two columns of the book's
    memory: `hints.lastmod` (seconds since 1970) and `hints.changefreq` (seconds, as in PERIODS), both NaN for unknown.
    Where nothing is said the rule is `min_frequency` alone.

    Parameters
    ----------
    min_frequency
        always, hourly, daily, weekly, monthly, yearly, never, or a number of days. A page passes when more than this
        has gone by since its last visit.
    sitemap
        Whether what sitemaps say comes first. If not, it is not heeded.
    fill
        Give budget that is left over to the pages that will pass soonest. Norconex itself leaves it.

    Example
    -------
    >>> from recrawl.loop import drive
    >>> from recrawl.lab.replays.small_worlds import Still
    >>> book = Book.blank(3, now=10 * 86400.0)
    >>> book.last_try[:2] = [9.5 * 86400, 2 * 86400]
    >>> [seen.pages.tolist() for seen in drive(Norconex(min_frequency="weekly"), Still(), book, budget=3, seed=1)]
    [[2, 1]]

    Source: Norconex crawler 4, GenericRecrawlableResolver.
    """

    name: ClassVar[str] = "norconex"
    source: ClassVar[str] = "practice: Norconex's GenericRecrawlableResolver (spec P9)"
    needs: ClassVar[frozenset[str]] = frozenset({"hints"})

    def __init__(self, *, min_frequency: str = "always", sitemap: bool = True, fill: bool = False) -> None:
        period(min_frequency)  # complain now
        self.min_frequency, self.sitemap, self.fill = min_frequency, sitemap, fill

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:  # noqa: ARG002
        """One batch; two when the budget is to be filled."""
        unknown = np.full(len(book), np.nan)
        due = passes(
            book.last_try,
            _dates(book) if self.sitemap else unknown,
            book.kept("hints.changefreq", np.nan) if self.sitemap else unknown,
            period(self.min_frequency),
        )
        yield from interval_picks(book, due, budget, reason="passes the gate of norconex", fill=self.fill)


def passes(processed: Times, lastmod: Times, changefreq: Times, least: float) -> Times:
    """The first time at which each page passes the gate; inf for never.

    >>> nan = np.nan
    >>> passes(np.array([-np.inf, 100.0, 100.0]), np.array([nan, 90.0, 150.0]), np.full(3, nan), 50.0).tolist()
    [-inf, inf, 100.0]
    """
    wait = np.where(np.isnan(changefreq), least, changefreq)
    # A page passes when more than the period has gone by: at the next time after its end that there is.
    later = np.where(wait > 0, np.nextafter(np.maximum(processed, -1e300) + wait, np.inf), processed)
    dated = np.where(lastmod > processed, processed, np.inf)
    due = np.where(np.isnan(lastmod), later, dated)
    return np.where(processed == -np.inf, -np.inf, due)


def period(text: str) -> float:
    """Seconds.

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
    return days * _DAY


def _dates(book: Book) -> Times:
    """The newest date that the sitemap has named for each page, NaN for none."""
    date: Times = book.kept("hints.lastmod", np.nan)
    if book.hints is not None and "lastmod" in book.hints.kinds:
        said = book.hints.claimed[book.hints.kinds.index("lastmod")]
        date = np.where(np.isfinite(said), said, date)
    return date
