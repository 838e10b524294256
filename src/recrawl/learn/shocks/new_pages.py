"""New pages as signs of change: when a page appears in a directory, the pages that list it have changed.

A new page becomes known without a visit to the pages that link to it: from a sitemap, a feed, or another page. It says
that somebody has worked on the site, and where. Three relations of a page to a new page count: it is the *index* of the
directory in which the new page appeared, the index of a directory *above*, or a *sibling* in the same directory. A day
with new pages changes a page in relation r with probability q_r, independently of all else:

    P(unchanged) = P(unchanged without new pages) · Π_r (1 - q_r)^(k_r)

where k_r is the number of such days since the page's last visit. The probabilities q are learned from visits, by
expectation maximisation: per site, with those of all sites as the prior mean. The formula counts
less where visits find changes anyway (`room`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.learn.chunks import AnyFloats, AnyPages, chunks
from recrawl.learn.shocks.room import room_to_gain

RELATIONS = ("index", "above", "sibling")
FIRST_CRAWL = 7 * DAY
"""Pages found this long after the first page of their site, or sooner, are not new: their age is not known."""
INITIAL = np.array([0.7, 0.3, 0.1])
"""The probabilities before any visit."""
POOL_WEIGHT = 20.0
"""The weight of the initial probabilities against the visits of all sites, in days with new pages."""
SITE_WEIGHT = 6.0
"""The weight of the probabilities of all sites against the visits of the site."""
_MEMORY = "shock.new_pages"
OTHERS = "shock.new_pages.others"
"""Memory key of the sums over the sites of other shards, relation by two; absent without shards."""
_MAX_PROBABILITY = 0.99
_SECONDS = 36
"""Bits of a time in seconds, in a key of directory and time."""
_LATEST = (1 << _SECONDS) - 1


@dataclass(slots=True)
class NewPages:
    """The new pages of a book, and what visits have taught about them."""

    book: Book
    inside: Ints
    """Directory and time of each day with new pages, as sorted keys."""
    below: Ints
    """The same for all directories above those."""
    tally: Floats
    """Site by relation by two: days with new pages before visits, and how many of them are expected to have changed the
    page."""
    _log_unchanged: Floats = field(init=False)
    """Site by relation: log(1 - q)."""

    def __post_init__(self) -> None:
        self._update()

    @classmethod
    def of(cls, book: Book) -> NewPages:
        """Find the new pages of a book, and load what was learned."""
        tally = np.zeros((book.sites, len(RELATIONS), 2))
        kept = book.memory.get(_MEMORY, tally[:0])
        tally[: len(kept)] = kept
        return cls(book, *_appearances(book), tally)

    def keep(self, book: Book) -> None:
        """Store what was learned in the book's memory."""
        book.memory[_MEMORY] = self.tally

    def predict(self, pages: AnyPages, probability: AnyFloats) -> AnyFloats:
        """Return the change probabilities of pages given new pages, from those without."""
        rows, days = self._days(pages)
        if not len(rows):
            return probability
        log = (days * self._log_unchanged[self.book.site[pages[rows]]]).sum(axis=1) * room_to_gain(self.book.memory)
        given = probability.astype(np.float64)
        given[rows] = 1 - (1 - given[rows]) * np.exp(log)
        return given

    def observe(self, pages: AnyPages, changed: Flags, probability: AnyFloats) -> None:
        """Learn from visits; `probability` is that of a change without new pages."""
        rows, days = self._days(pages)
        if not len(rows):
            return
        site = self.book.site[pages[rows]]
        log = self._log_unchanged[site]
        any_change = 1 - (1 - probability[rows].astype(np.float64)) * np.exp((days * log).sum(axis=1))
        expected = days * -np.expm1(log) / np.maximum(any_change, 1e-9)[:, None]
        np.add.at(self.tally[:, :, 0], site, days)
        np.add.at(self.tally[:, :, 1], site, np.where(changed[rows, None], expected, 0.0))
        self._update()

    def _days(self, pages: AnyPages) -> tuple[Ints, Ints]:
        """Return the rows of pages with new pages since their last visits, and row by relation, on how many days."""
        book = self.book
        if book.index is None or book.folders is None or not len(self.inside):
            return np.zeros(0, np.int64), np.zeros((0, len(RELATIONS)), np.int64)
        index, folder = book.index[pages], book.folder[pages]
        home = _home(folder, book.folders.parent, index)
        since = np.maximum(book.last_visit[pages], 0.0).astype(np.int64)

        def count(keys: Ints, directory: Ints) -> Ints:
            key = directory << _SECONDS
            return np.searchsorted(keys, key | _LATEST) - np.searchsorted(keys, key | since, side="right")

        siblings = count(self.inside, home) * (~index | (home != folder))
        days = np.stack((count(self.inside, folder) * index, count(self.below, folder) * index, siblings), axis=1)
        rows = np.flatnonzero(days.any(axis=1))
        return rows, days[rows]

    def _update(self) -> None:
        days, changed = np.moveaxis(self.tally, 2, 0)
        all_days, all_changed = (self.tally.sum(axis=0) + self.book.memory.get(OTHERS, 0.0)).T
        common = (POOL_WEIGHT * INITIAL + all_changed) / (POOL_WEIGHT + all_days)
        probability = (SITE_WEIGHT * common + changed) / (SITE_WEIGHT + days)
        self._log_unchanged = np.log1p(-np.minimum(probability, _MAX_PROBABILITY))


def site_sums(book: Book) -> Floats:
    """Return what was learned, summed over the sites: relation by two."""
    sums: Floats = book.memory.get(_MEMORY, np.zeros((0, len(RELATIONS), 2))).sum(axis=0)
    return sums


def _appearances(book: Book) -> tuple[Ints, Ints]:
    """Return the days with new pages as keys of directory and time: of directories, and of all those above."""
    none = np.zeros(0, np.int64)
    if book.index is None or book.folders is None:
        return none, none
    first = np.full(book.sites, np.inf)
    np.minimum.at(first, book.site, book.found)
    late, parts = first + FIRST_CRAWL, [none]
    for rows in chunks(len(book)):
        found = book.found[rows]
        parts.append(rows.start + np.flatnonzero((found > late[book.site[rows]]) & (found <= book.now)))
    new = np.concatenate(parts)
    parent = book.folders.parent
    inside = _keys(_home(book.folder[new], parent, book.index[new]), book.found[new])
    directory, time, above = inside >> _SECONDS, inside & _LATEST, [(none, none)]
    while len(directory):
        directory = parent[directory]
        directory, time = directory[directory >= 0], time[directory >= 0]
        above.append((directory, time))
    directories, times = (np.concatenate(column) for column in zip(*above, strict=True))
    return inside, _keys(directories, times.astype(np.float64))


def _keys(directory: Ints, found: Floats) -> Ints:
    """Return keys of directory and time, sorted; of the times of one day in one directory only the last.

    >>> keys = _keys(np.array([4, 4, 4]), np.array([90000.0, 7.0, 99.0]))
    >>> (keys >> 36).tolist(), (keys & (1 << 36) - 1).tolist()
    ([4, 4], [99, 90000])
    """
    order = np.lexsort((found, directory))
    directory, found = directory[order], found[order]
    day = found // DAY
    last = np.append((directory[1:] != directory[:-1]) | (day[1:] != day[:-1]), True)[: len(order)]
    keys: Ints = directory[last] << _SECONDS | found[last].astype(np.int64)
    return keys


def _home(folder: Ints, parent: Ints, index: Flags) -> Ints:
    """Return the directories in which pages stand; an index stands in the directory above its own."""
    return np.where(index & (parent[folder] >= 0), parent[folder], folder)
