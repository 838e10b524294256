"""Hints of real sitemaps and feeds for a replay: what the hint files of the sites say, read once per cycle.

Several sitemaps or feeds of a site can list a page; the newest date that is not in the future counts, as in a live
crawl. An entry that disappears says nothing new. A source covers the pages for which it named a date, so that its
silence counts, until all its entries are gone. Dates are compared in UTC, so the same instant written in another way is
no news.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recrawl.book import Hints
from recrawl.columns import Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.lab.formats.hint_files import read_hints
from recrawl.lab.histories.history import History
from recrawl.lab.replays.signal_counts import SignalCounts
from recrawl.learn.hints.claims import plausible

_KINDS = ("lastmod", "feed")


class RecordedHints:
    """The sitemaps and feeds of a history's sites; time only moves forward."""

    def __init__(self, history: History, folder: Path) -> None:
        events = read_hints(folder)
        numbers = {url: page for page, url in enumerate(history.urls)}
        page = np.array([numbers.get(url, -1) for url in events.urls], np.int64)[events.url]
        if (page < 0).all():
            raise UsageError(f"the hint files in {folder} name no page of the archives")
        mine = page >= 0
        page, source = page[mine], events.source[mine].astype(np.int64)
        self._begins = history.begins[history.site]
        """Per page: when its site's clock starts, in seconds since 1970."""
        pairs, pair = np.unique(source * len(history) + page, return_inverse=True)
        self._page = pairs % len(history)
        """Per pair of a source and a page; so are the next four."""
        self._site = history.site[self._page]
        self._kind = np.array([_KINDS.index(kind) for kind in events.kinds])[pairs // len(history)]
        self._date = np.full(len(pairs), np.nan)
        self._listed = np.zeros(len(pairs), bool)
        time = events.time[mine] - self._begins[page]  # each site has its own clock
        order = np.argsort(time, kind="stable")
        self._time, self._pair = time[order], pair[order]
        self._new_date, self._new_listed = events.date[mine][order], events.listed[mine][order]
        self._next = 0
        self._sites = history.site
        self._counts = SignalCounts(_KINDS, self._begins)
        self._counts.read(self._dates(0.0), self._alive(), 0.0, np.zeros(len(history)))

    def read(self, now: float, last_visit: Floats) -> Hints:
        """Read all sitemaps and feeds and return the hints of the book."""
        return self._counts.read(self._dates(now), self._alive(), now, last_visit)

    def listed(self) -> Ints:
        """Return the pages that a sitemap or feed lists, as of the last reading."""
        return np.unique(self._page[self._listed])

    def _dates(self, now: float) -> Floats:
        """Return the date of every page, kind by page; nan for none."""
        end = int(np.searchsorted(self._time, now, side="right"))
        new = slice(self._next, end)
        self._date[self._pair[new]] = self._new_date[new]  # of several, the last assignment is kept
        self._listed[self._pair[new]] = self._new_listed[new]
        self._next = end
        dates = np.full((len(_KINDS), len(self._sites)), -np.inf)
        absolute = now + self._begins[self._page]
        shown = self._listed & plausible(self._date, absolute)
        np.maximum.at(dates, (self._kind[shown], self._page[shown]), self._date[shown])
        return np.where(np.isfinite(dates), dates, np.nan)

    def _alive(self) -> Flags:
        """Return, kind by page, whether the page's site has a source of the kind."""
        alive = np.zeros((len(_KINDS), int(self._sites.max()) + 1), bool)
        alive[self._kind[self._listed], self._site[self._listed]] = True
        return alive[:, self._sites]
