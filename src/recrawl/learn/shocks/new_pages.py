"""New pages as signs of change: when a page appears in a directory, the pages that list it have changed.

A new page becomes known without a visit to the pages that link to it: from a sitemap, a feed, or another page. It says
that somebody has worked on the site, and where. Three relations of a page to a new page count: it is the *index* of the
directory in which the new page appeared, the index of a directory *above*, or a *sibling* in the same directory. A day
with new pages changes a page in relation r with probability q_r, independently of all else:

    P(unchanged) = P(unchanged without new pages) · Π_r (1 - q_r)^(k_r)

where k_r is the number of such days since the page's last visit. The probabilities q are learned from visits: for a
grid of them, the book's memory holds the log-likelihood of what the visits to a site found. The prior of a site is a
Beta distribution around the mean of all sites. The formula counts less where visits find changes anyway (`room`).

The pages of a group often change at once, for reasons of their own. If this happens after a new page, each of their
visits would be taken as another proof that new pages change them. So the visits to a group in a cycle are stored as
evidence up to the first that finds a change. While a cycle runs, all of its visits count, so that a new page that has
changed nothing is soon forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Float32s, Floats, Ints, unique
from recrawl.learn.chunks import AnyFloats, AnyPages, chunks
from recrawl.model import Pages

RELATIONS = ("index", "above", "sibling")
FIRST_CRAWL = 7 * DAY
"""Pages found this long after the first page of their site, or sooner, are not new: their age is not known."""
INITIAL = np.array([0.7, 0.3, 0.1])
"""The probabilities before any visit."""
POOL_WEIGHT = 20.0
"""The weight of the initial probabilities against the visits of all sites, in days with new pages."""
SITE_WEIGHT = 6.0
"""The weight of the probabilities of all sites against the visits of the site."""
GRID = 1 / (1 + np.exp(-np.arange(-6.0, 4.0)))
"""The probabilities whose likelihoods are compared, evenly spaced in log odds."""
_SURE = 0.02
"""Probabilities without new pages are limited to this, and 1 minus this, so that no single visit decides."""
_MEMORY = "shock.new_pages.logs"
OTHERS = "shock.new_pages.others"
"""Memory key of the sums over the sites of other shards, relation by grid; absent without shards."""
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
    logs: Float32s
    """Site by relation by probability of the grid: log-likelihood of the visits, relative to a probability of 0."""
    _prior: Floats = field(init=False)
    """Relation by probability of the grid: the logarithm of a site's prior; constant during a cycle."""
    _log_unchanged: Floats = field(init=False)
    """Site by relation: log(1 - q)."""

    def __post_init__(self) -> None:
        visited = np.flatnonzero(self.logs.any(axis=(1, 2)))
        total = self.logs[visited].sum(axis=0, dtype=np.float64) + self.book.memory.get(OTHERS, 0.0)
        self._prior = _log_beta(_mean(_log_beta(INITIAL, POOL_WEIGHT) + total), SITE_WEIGHT)
        self._log_unchanged = np.tile(np.log1p(-_mean(self._prior)), (len(self.logs), 1))
        self._update(visited)

    @classmethod
    def of(cls, book: Book) -> NewPages:
        """Find the new pages of a book, and load what was learned."""
        logs = np.zeros((book.sites, len(RELATIONS), len(GRID)), np.float32)
        kept = book.memory.get(_MEMORY, logs[:0])
        logs[: len(kept)] = kept
        return cls(book, *_appearances(book), logs)

    def keep(self, book: Book) -> None:
        """Store what was learned in the book's memory."""
        book.memory[_MEMORY] = self.logs

    def predict(self, pages: AnyPages, probability: AnyFloats) -> AnyFloats:
        """Return the change probabilities of pages given new pages, from those without."""
        rows, days = self._days(pages)
        if not len(rows):
            return probability
        log = (days * self._log_unchanged[self.book.site[pages[rows]]]).sum(axis=1) * room_to_gain(self.book.memory)
        given = probability.astype(np.float64)
        given[rows] = 1 - (1 - given[rows]) * np.exp(log)
        return given

    def observe(self, pages: Pages, changed: Flags, predict: Callable[[Pages], AnyFloats]) -> None:
        """Learn from visits; `predict` returns the change probabilities of pages without new pages."""
        rows, days = self._days(pages)
        if not len(rows):
            return
        site = self.book.site[pages[rows]]
        unchanged = 1 - np.clip(predict(pages[rows]).astype(np.float64), _SURE, 1 - _SURE)
        log = days * self._log_unchanged[site]
        others = unchanged[:, None] * np.exp(log.sum(axis=1, keepdims=True) - log)  # without the relation itself
        if_unchanged = days[:, :, None] * np.log1p(-GRID)
        if_changed = np.log1p(-others[:, :, None] * np.exp(if_unchanged)) - np.log1p(-others)[:, :, None]
        likelihood = np.where(changed[rows, None, None], if_changed, if_unchanged)
        np.add.at(self.logs, site, likelihood.astype(np.float32))
        self._update(unique(site))

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

    def _update(self, sites: AnyPages) -> None:
        """Compute the probabilities of sites from their visits."""
        self._log_unchanged[sites] = np.log1p(-_mean(self._prior + self.logs[sites]))


def _log_beta(mean: Floats, weight: float) -> Floats:
    """Return, relation by probability of the grid, the logarithm of a Beta distribution with this mean and weight.

    Even steps in log odds are shorter in probability towards 0 and 1, as q (1 - q), by which the density is multiplied.
    """
    log: Floats = weight * (mean[:, None] * np.log(GRID) + (1 - mean[:, None]) * np.log1p(-GRID))
    return log


def _mean(logs: Floats) -> Floats:
    """Return the expected probabilities, from the logarithms of distributions over the grid (the last axis)."""
    odds = np.exp(logs - logs.max(axis=-1, keepdims=True))
    mean: Floats = odds @ GRID / odds.sum(axis=-1)
    return mean


def site_sums(book: Book) -> Floats:
    """Return what was learned, summed over the sites: relation by grid."""
    logs = book.memory.get(_MEMORY, np.zeros((0, len(RELATIONS), len(GRID))))
    sums: Floats = logs.sum(axis=0, dtype=np.float64)
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


# --------------------------------------------------------------------------------------------------------------------
# How much an order by weak evidence can gain: nothing where almost every visit finds a change anyway.
#
# Change priors and new pages tell which of many quiet pages may have changed. Where the pages of a shock wait for a
# visit, each of which finds a change almost surely, such evidence takes visits from them. So it counts by the factor
# 5 (0.9 - h), from 0 to 1, where h is the share of the latest visits that found a change. At first h is 0.95:
# the evidence counts once visits have found nothing often enough.


SLOPE, NONE = 5.0, 0.9
"""The evidence does not count if nine in ten visits find a change, and fully if at least three in ten find nothing."""
FADE = 0.995
"""The factor by which the share of visits that found a change decays with each visit."""
HITS = "shock.hits"
"""Memory key of the counts."""
_INITIAL = np.array([20.0, 19.0])
"""Visits, and those that found a change, before any visit."""


def room_to_gain(memory: dict[str, NDArray[Any]]) -> float:
    """Return the factor, from 0 to 1.

    >>> memory = {}
    >>> room_to_gain(memory)
    0.0
    >>> note_hits(memory, np.arange(1000) % 5 > 0)
    >>> round(room_to_gain(memory), 1)
    0.5
    """
    visits, changed = hits(memory)
    return min(1.0, max(0.0, SLOPE * (NONE - float(changed) / float(visits))))


def hits(memory: dict[str, NDArray[Any]], share: float = 1.0) -> Floats:
    """Return the visits, and those that found a change, decayed; `share` is the shard's share of the collection."""
    counts: Floats = memory.get(HITS, share * _INITIAL)
    return counts


def note_hits(memory: dict[str, NDArray[Any]], changed: Flags, share: float = 1.0) -> None:
    """Add the visits of a cycle, and whether each found a change.

    A shard makes a share of all visits: its counts decay as fast as those of all shards, and add up to them.
    """
    before = hits(memory, share) * FADE ** (len(changed) / share)
    weight = FADE ** (np.arange(len(changed))[::-1] / share)
    memory[HITS] = before + np.array([weight.sum(), weight[changed].sum()])
