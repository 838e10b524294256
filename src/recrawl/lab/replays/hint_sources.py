"""Sources of hints for a replay: simulated sitemaps, or recorded sitemaps and feeds."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from recrawl.book import Hints
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.errors import UsageError
from recrawl.lab.formats.hint_files import hint_digest, hint_files, read_hints
from recrawl.lab.histories.history import LIES, History
from recrawl.learn.hints import plausible, signals_change
from recrawl.parameters import SITEMAP_KINDS

# --------------------------------------------------------------------------------------------------------------------
# Signals since the last visits, counted from readings of dated sources as the live crawler counts them.


_MAX_SIGNALS = 30_000


class SignalCounts:
    """What the sources have said about every page; time only moves forward."""

    def __init__(self, kinds: tuple[str, ...], begins: Floats, first: float = np.nan) -> None:
        """`begins`: the start of the pages' clocks, in seconds since 1970; `first`: the date before any reading."""
        self._kinds = kinds
        self._begins = begins
        shape = len(kinds), len(begins)
        self._value = np.full(shape, first)
        """Kind by page: the last valid date, in seconds since 1970; so are the next two."""
        self._signals = np.zeros(shape, np.int16)
        self._claimed = np.full(shape, -np.inf)
        self._until = np.full(shape, -np.inf)
        self._read = -np.inf

    def read(self, dates: Floats, covers: Flags, now: float, last_visit: Floats) -> Hints:
        """Count the signals of a reading and return the hints of the book.

        Parameters
        ----------
        dates
            Kind by page, in seconds since 1970; nan for none.
        covers
            Kind by page: whether the source is there, so that it covers pages for which it ever named a date.
        now, last_visit
            On the clocks of the pages.
        """
        self._signals[:, last_visit >= self._read] = 0
        seen = self._begins + now
        signalled = signals_change(dates, self._value, self._begins + last_visit, seen)
        self._signals[signalled] = np.minimum(self._signals[signalled], _MAX_SIGNALS) + 1
        valid = plausible(dates, seen)
        self._value = np.where(valid, dates, self._value)
        self._claimed = np.where(signalled, dates - self._begins, self._claimed)
        self._until = np.where(covers & ~np.isnan(self._value), now, self._until)
        self._read = now
        return Hints(self._kinds, self._signals.copy(), self._claimed.copy(), self._until.copy())


# --------------------------------------------------------------------------------------------------------------------
# Hints of real sitemaps and feeds for a replay: what the hint files of the sites say, read once per cycle.
#
# Several sitemaps or feeds of a site can list a page; the newest date that is not in the future counts, as in a live
# crawl. An entry that disappears says nothing new. A source covers the pages for which it named a date, so that its
# silence counts, until all its entries are gone. Dates are compared in UTC, so the same instant written in another way
# is no news.


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


# --------------------------------------------------------------------------------------------------------------------
# Simulated sitemaps for a replay: dates of change for the pages of a history, correct or not.
#
# The text of a sitemap is `sitemap:KIND`:
#
#     honest          each page's date is that of its last change
#     late:DAYS       honest, but published that many days later
#     noisy:P,R       precision P and recall R: a share R of the changes is listed, and a share P of the dates is right
#     lying           the date of every page is the time of reading
#     random          the date of every page is random since the start, and another one at each reading
#     future          the date of every page is a year ahead
#     silent          the dates are those of the start and never change
#     never           pages have no date
#
# The replay reads the sitemap at the start of every cycle, as the live crawler does, and accepts dates by the same
# rule.


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


# --------------------------------------------------------------------------------------------------------------------


class HintSource(Protocol):
    """Something that is read at the start of every cycle."""

    def read(self, now: float, last_visit: Floats) -> Hints:
        """Return the hints of the book."""

    def listed(self) -> Ints:
        """Return the pages that it makes known, as of the last reading."""


def is_simulated(text: str) -> bool:
    """Whether the text names a simulated sitemap, not a folder."""
    return text.startswith("sitemap:")


def check_hints(text: str) -> None:
    """Raise a UsageError if the text is neither a simulated sitemap nor a folder of hint files."""
    if is_simulated(text):
        parse_source(text)
    elif Path(text).exists():
        hint_files(Path(text))
    else:
        kinds = ", ".join(SITEMAP_KINDS)
        raise UsageError(f"invalid hints '{text}'; use a folder of hint files, or sitemap: followed by {kinds}")


def hint_source(history: History, text: str, seed: int) -> HintSource:
    """Return the source that the text names; an adversary that lies has a sitemap of its own."""
    liars = history.facts.get(LIES)
    if liars is not None and text and not is_simulated(text):
        raise UsageError("an adversary that lies cannot stand beside recorded hints; use --hints sitemap:HOW")
    if is_simulated(text) or liars is not None:
        return SimulatedSitemap(history, text or "sitemap:never", seed, liars)
    return RecordedHints(history, Path(text))


def hints_key(text: str) -> str:
    """Return what results depend on: the text, or the content of the files."""
    return text if not text or is_simulated(text) else hint_digest(Path(text))
