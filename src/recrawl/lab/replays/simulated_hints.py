"""Sitemaps in a replay: what a source says of the pages of a history, true or not.

A source is written as text, `sitemap:HOW`:

    honest          each page's date is that of its last change
    late:DAYS       honest, but it says so only that long after
    noisy:P,R       it tells of a share R of the changes, and a share P of what it tells is true
    lying           every page has changed just now, whenever it is read
    random          every page has changed at some time since the beginning, another one at each reading
    future          every page will have changed a year from now
    silent          the dates are those of the beginning and never move
    never           pages are named without a date

It is read at the start of every cycle, as the live crawler does, and its dates are judged by the same rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Hints
from recrawl.columns import DAY, Floats
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History
from recrawl.learn.hints.claims import plausible, signals_change

HOWS = ("honest", "late:DAYS", "noisy:P,R", "lying", "random", "future", "silent", "never")


def check_source(text: str) -> tuple[str, tuple[float, ...]]:
    """The way and the numbers of a source, or a clear error.

    >>> check_source("sitemap:noisy:0.2,0.5")
    ('noisy', (0.2, 0.5))
    """
    kind, _, rest = text.partition(":")
    how, _, inside = rest.partition(":")
    try:
        numbers = tuple(float(part) for part in inside.split(",")) if inside else ()
    except ValueError:
        numbers = (np.nan,)
    wanted = {"late": 1, "noisy": 2}.get(how, 0)
    right = kind == "sitemap" and how in (known.partition(":")[0] for known in HOWS) and len(numbers) == wanted
    if how == "noisy":
        right = right and 0 < numbers[0] <= 1 and 0 <= numbers[1] <= 1
    elif how == "late":
        right = right and 0 <= numbers[0] < np.inf
    if not right:
        raise UsageError(f"'{text}' is no source of hints: write sitemap: with {', '.join(HOWS)}")
    return how, numbers


class Source:
    """A sitemap over the pages of a history; time only goes forward."""

    def __init__(self, history: History, text: str, seed: int) -> None:
        self._how, numbers = check_source(text)
        self._rng = np.random.default_rng([seed, 11])
        self._pages = len(history)
        self._page, self._seen, self._said = _events(history, self._how, numbers, self._rng)
        self._next = 0
        self._read = -np.inf
        self._value = np.full(self._pages, np.nan if self._how == "never" else 0.0)
        self._signals = np.zeros(self._pages, np.int16)
        self._claimed = np.full(self._pages, -np.inf)

    def read(self, now: float, last_visit: Floats) -> Hints:
        """Read the sitemap: the hints that the book holds now."""
        self._signals[last_visit >= self._read] = 0
        before, value = self._value, self._at(now)
        told = signals_change(value, before, last_visit, now)
        self._signals[told] = np.minimum(self._signals[told], 30_000) + 1
        self._claimed[told] = value[told]
        self._read, self._value = now, value
        until = np.where(plausible(value, now), now, -np.inf)
        return Hints(("lastmod",), self._signals[None].copy(), self._claimed[None].copy(), until[None])

    def _at(self, now: float) -> Floats:
        """The dates that the sitemap shows."""
        if self._how in ("lying", "future"):
            return np.full(self._pages, now + (365 * DAY if self._how == "future" else 0.0))
        if self._how == "random":
            return self._rng.random(self._pages) * now
        value = self._value.copy()
        end = int(np.searchsorted(self._seen, now, side="right"))
        value[self._page[self._next : end]] = self._said[self._next : end]  # of several the last stands
        self._next = end
        return value


def _events(
    history: History, how: str, numbers: tuple[float, ...], rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """What is told: pages, when it can be read, and the date that is named; in the order of reading."""
    if how not in ("honest", "late", "noisy"):
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    owner = history.page_of
    changed = np.append(False, (owner[1:] == owner[:-1]) & (history.version[1:] != history.version[:-1]))
    page, said = owner[changed], history.time[changed]
    seen = said + (numbers[0] * DAY if how == "late" else 0.0)
    if how == "noisy":
        precision, recall = numbers
        told = rng.random(len(page)) < recall
        page, said = page[told], said[told]
        # False alarms are strewn evenly over the pages of each site and over time.
        false = np.repeat(history.site[page], rng.poisson((1 - precision) / precision, len(page)))
        by_site = np.argsort(history.site, kind="stable")
        starts = np.searchsorted(history.site[by_site], np.arange(len(history.sites) + 1))
        drawn = starts[false] + rng.random(len(false)) * (starts[false + 1] - starts[false])
        page = np.concatenate((page, by_site[drawn.astype(np.int64)]))
        seen = said = np.concatenate((said, rng.random(len(false)) * history.span))
    order = np.argsort(seen, kind="stable")
    return page[order], seen[order], said[order]
