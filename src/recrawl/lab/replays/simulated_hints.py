"""Simulated sitemaps for a replay: dates of change for the pages of a history, correct or not.

The text of a sitemap is `sitemap:KIND`:

    honest          each page's date is that of its last change
    late:DAYS       honest, but published that many days later
    noisy:P,R       precision P and recall R: a share R of the changes is listed, and a share P of the dates is right
    lying           the date of every page is the time of reading
    random          the date of every page is random since the start, and another one at each reading
    future          the date of every page is a year ahead
    silent          the dates are those of the start and never change
    never           pages have no date

The replay reads the sitemap at the start of every cycle, as the live crawler does, and accepts dates by the same rule.
"""

from __future__ import annotations

import numpy as np

from recrawl.book import Hints
from recrawl.columns import DAY, Floats, Ints
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.lab.replays.signal_counts import SignalCounts
from recrawl.learn.hints.claims import plausible
from recrawl.parameters import SITEMAP_KINDS


def parse_source(text: str) -> tuple[str, tuple[float, ...]]:
    """Return the kind and the numbers of a sitemap; raise a UsageError for an invalid text.

    >>> parse_source("sitemap:noisy:0.2,0.5")
    ('noisy', (0.2, 0.5))
    """
    source, _, rest = text.partition(":")
    kind, _, inside = rest.partition(":")
    try:
        numbers = tuple(float(part) for part in inside.split(",")) if inside else ()
    except ValueError:
        numbers = (np.nan,)
    count = {"late": 1, "noisy": 2}.get(kind, 0)
    valid = (
        source == "sitemap" and kind in (known.partition(":")[0] for known in SITEMAP_KINDS) and len(numbers) == count
    )
    if kind == "noisy":
        valid = valid and 0 < numbers[0] <= 1 and 0 <= numbers[1] <= 1
    elif kind == "late":
        valid = valid and 0 <= numbers[0] < np.inf
    if not valid:
        raise UsageError(f"invalid hints '{text}'; use sitemap: followed by {', '.join(SITEMAP_KINDS)}")
    return kind, numbers


class SimulatedSitemap:
    """A sitemap over the pages of a history; time only moves forward."""

    def __init__(self, history: History, text: str, seed: int, liars: Floats | None = None) -> None:
        """`liars` is 1 for pages that always have the time of reading as their date, whatever the kind."""
        self._kind, numbers = parse_source(text)
        self._rng = np.random.default_rng([seed, 11])
        self._pages = len(history)
        self._page, self._published, self._date = _entries(history, self._kind, numbers, self._rng)
        self._liars = np.flatnonzero(liars) if liars is not None else np.zeros(0, np.int64)
        self._next = 0
        self._value = np.full(self._pages, np.nan if self._kind == "never" else 0.0)
        self._counts = SignalCounts(("lastmod",), np.zeros(self._pages), first=self._value[0])

    def read(self, now: float, last_visit: Floats) -> Hints:
        """Read the sitemap and return the hints of the book."""
        self._value = self._at(now)
        self._value[self._liars] = now
        return self._counts.read(self._value[None], plausible(self._value, now)[None], now, last_visit)

    def listed(self) -> Ints:
        """Return the pages that the sitemap makes known: none, it is about dates only."""
        return np.zeros(0, np.int64)

    def _at(self, now: float) -> Floats:
        """Return the dates in the sitemap."""
        if self._kind in ("lying", "future"):
            return np.full(self._pages, now + (365 * DAY if self._kind == "future" else 0.0))
        if self._kind == "random":
            return self._rng.random(self._pages) * now
        value = self._value.copy()
        end = int(np.searchsorted(self._published, now, side="right"))
        value[self._page[self._next : end]] = self._date[self._next : end]  # of several, the last assignment is kept
        self._next = end
        return value


def _entries(
    history: History, kind: str, numbers: tuple[float, ...], rng: np.random.Generator
) -> tuple[Ints, Floats, Floats]:
    """Return the entries in order of publication: page, time of publication, and date."""
    if kind not in ("honest", "late", "noisy"):
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    owner = history.page_of
    changed = np.append(False, (owner[1:] == owner[:-1]) & (history.version[1:] != history.version[:-1]))
    page, date = owner[changed], history.time[changed]
    published = date + (numbers[0] * DAY if kind == "late" else 0.0)
    if kind == "noisy":
        precision, recall = numbers
        listed = rng.random(len(page)) < recall
        page, date = page[listed], date[listed]
        # Wrong dates are uniform over the pages of each site and over time.
        false = np.repeat(history.site[page], rng.poisson((1 - precision) / precision, len(page)))
        by_site = np.argsort(history.site, kind="stable")
        starts = np.searchsorted(history.site[by_site], np.arange(len(history.sites) + 1))
        drawn = starts[false] + rng.random(len(false)) * (starts[false + 1] - starts[false])
        page = np.concatenate((page, by_site[drawn.astype(np.int64)]))
        published = date = np.concatenate((date, rng.random(len(false)) * history.span))
    order = np.argsort(published, kind="stable")
    return page[order], published[order], date[order]
