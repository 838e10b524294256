"""How visits to a group of pages went: how many were made in each bin of time, and how many found a change.

A group is the pages of a site that have something in common: the form of their address, their directory, or nothing but
the site. From the counts comes what a visit to one page says of the others: how visits to its group have gone today,
of late, and since the page's own last visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import unique
from recrawl.learn.chunks import Pages
from recrawl.learn.shocks.time_bins import BinStep, Floats

FEWEST = 8
"""A group with fewer pages is none: they belong to the rest of their site."""
FIRST_SHARE = 0.3
"""The share of visits that find a change, where nothing is known."""
_FADE = 0.95
"""How much of a group's share stays when one more visit is taken in."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Which pages belong together; groups keep their numbers as pages and groups are added."""

    of: NDArray[np.int32]
    """One per page: its group."""
    key: Pages
    """One per group: what its pages have in common, or -1 - site for the rest of a site."""
    site: Pages
    """One per group."""

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def by(cls, book: Book, name: str, label: NDArray[np.int64] | None) -> Groups:
        """By a label of pages, within sites; by site alone where there is none. What was kept under the name goes on.

        >>> book = Book.blank(9)
        >>> Groups.by(book, "x", np.array([5] * 8 + [6])).of.tolist()
        [1, 1, 1, 1, 1, 1, 1, 1, 0]
        """
        if label is None:  # sites have numbers already
            all_ = np.arange(book.sites)
            return cls(book.site, -1 - all_, all_)
        none = np.zeros(0, np.int64)
        keys, sites = book.memory.get(f"{name}.key", none), book.memory.get(f"{name}.site", none)
        kept = book.memory.get(f"{name}.of", none)
        if len(kept) == len(book):
            return cls(kept, keys, sites)  # no page is new
        mixed = book.site.astype(np.int64)
        mixed <<= 40  # the same label on two sites is two groups
        mixed ^= label
        np.abs(mixed, out=mixed)
        order = np.argsort(mixed).astype(np.int32)
        mixed = mixed[order]
        begins = np.flatnonzero(np.concatenate(([True], mixed[1:] != mixed[:-1]))) if len(mixed) else none
        many = np.diff(begins, append=len(mixed))
        site = book.site[order[begins]].astype(np.int64)
        wanted = np.where(many < FEWEST, -1 - site, mixed[begins])
        names, first, row = np.unique(wanted, return_index=True, return_inverse=True)
        new = ~np.isin(names, keys)
        keys, sites = np.concatenate((keys, names[new])), np.concatenate((sites, site[first[new]]))
        sorted_ = np.argsort(keys)
        number = sorted_[np.searchsorted(keys[sorted_], names)].astype(np.int32)[row]
        of = np.empty(len(book), np.int32)
        of[order] = np.repeat(number, many)
        return cls(of, keys, sites)

    def keep(self, book: Book, name: str) -> None:
        """Save the numbers of groups; those of sites are the book's own."""
        if self.of is not book.site:
            book.memory |= {f"{name}.of": self.of, f"{name}.key": self.key, f"{name}.site": self.site}


@dataclass(slots=True)
class GroupTally:
    """Visits and finds of groups by bins of time; the last bin is now. Groups of several groupings stand side by side.

    A grouping more is more rows, and no more steps.
    """

    groupings: tuple[Groups, ...]
    bins: int
    before: NDArray[np.float32]
    """Visits and finds, by group and bin: all from the beginning to the beginning of the bin."""
    today: NDArray[np.float32]
    """Visits and finds, by group: those of the last bin."""
    lately: Floats
    """One per group: the share of visits that found a change, older ones counting less."""
    _first: NDArray[np.int64] = field(init=False)
    """One per grouping: the row of its first group."""
    _all: NDArray[np.float32] = field(init=False)
    """Visits and finds, by group: all up to now."""

    def __post_init__(self) -> None:
        self._all = self.before[:, :, -1] + self.today
        self._first = np.cumsum([0, *(len(groups) for groups in self.groupings[:-1])])

    @classmethod
    def of(
        cls, book: Book, names: Sequence[str], groupings: tuple[Groups, ...], step: BinStep, bins: int
    ) -> GroupTally:
        """What the book's memory holds under the groupings' names, with a bin for now."""
        many = sum(map(len, groupings))
        before, today = np.zeros((2, many, max(bins, 1)), np.float32), np.zeros((2, many), np.float32)
        lately = np.full(many, FIRST_SHARE)
        row = 0
        for name, groups in zip(names, groupings, strict=True):
            rows = slice(row, row + len(groups))
            for layer, part in enumerate(("tries", "hits")):
                counts = step(book.memory.get(f"{name}.{part}"), len(groups))
                np.cumsum(counts[:, :-1], axis=1, out=before[layer, rows, 1:])
                if bins:
                    today[layer, rows] = counts[:, -1]
            known = book.memory.get(f"{name}.lately", lately[:0])
            lately[row : row + len(known)] = np.where(np.isnan(known), FIRST_SHARE, known)
            row += len(groups)
        return cls(groupings, bins, before, today, lately)

    def keep(self, book: Book, names: Sequence[str]) -> None:
        """Save it."""
        for name, groups, row in zip(names, self.groupings, self._first.tolist(), strict=True):
            groups.keep(book, name)
            rows = slice(row, row + len(groups))
            for layer, part in enumerate(("tries", "hits")):
                counts = np.empty((len(groups), self.bins), np.float32)
                counts[:, :-1] = np.diff(self.before[layer, rows], axis=1)
                counts[:, -1:] = self.today[layer, rows, None]
                most = int(counts.max(initial=0))
                book.memory[f"{name}.{part}"] = counts.astype(np.min_scalar_type(most))  # whole numbers, mostly small
            book.memory[f"{name}.lately"] = self.lately[rows]

    def rows(self, pages: Pages) -> NDArray[np.int64]:
        """Page by grouping: the rows of the pages' groups."""
        rows = np.empty((len(pages), len(self.groupings)), np.int64)
        for column, groups in enumerate(self.groupings):
            rows[:, column] = groups.of[pages]
        rows += self._first
        return rows

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Take in visits made now; which rows that has moved."""
        rows = self.rows(pages).ravel()
        touched = unique(rows)
        of = np.searchsorted(touched, rows)
        tries = np.bincount(of, minlength=len(touched))
        hits = np.bincount(of, np.repeat(changed, len(self.groupings)), len(touched))
        if self.bins:
            more = np.array((tries, hits), np.float32)
            self.today[:, touched] += more
            self._all[:, touched] += more
        stays = _FADE**tries
        self.lately[touched] = stays * self.lately[touched] + (1 - stays) * hits / np.maximum(tries, 1)
        return touched

    def since(self, rows: NDArray[np.int64], bin_: NDArray[np.int64] | int) -> NDArray[np.float32]:
        """Visits and finds of groups from the beginning of a bin to now."""
        bins = self.before.shape[2]
        cells = rows * bins + np.minimum(bin_, bins - 1)
        counts: NDArray[np.float32] = self._all.take(rows, axis=1)
        counts -= self.before.reshape(2, -1).take(cells, axis=1)
        return counts
