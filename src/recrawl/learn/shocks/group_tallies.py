"""Groups of pages, and how many visits to each group found a change in each bin of time.

A group is the pages of a site with the same URL template or directory, or all pages of the site. The counts give the
share of visits to a page's group that found a change today, recently, and since the page's own last visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from recrawl.book import Book
from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints, unique
from recrawl.learn.chunks import AnyPages
from recrawl.learn.shocks.time_bins import BinStep

MIN_PAGES = 8
"""Pages with a label that fewer pages share go to a common group of their site."""
FIRST_SHARE = 0.3
"""The prior share of visits that find a change."""
_FADE = 0.95
"""The factor by which a group's share decays with each visit."""


@dataclass(frozen=True, slots=True)
class Groups:
    """A division of pages into groups, whose numbers stay the same when pages and groups are added."""

    of: Int32s
    """One per page: its group."""
    key: AnyPages
    """One per group: its key, or -1 - site for the common group of a site."""
    site: AnyPages
    """One per group: its site."""

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def by(cls, book: Book, name: str, label: Ints | None) -> Groups:
        """Group pages by label within sites, or by site without labels; stored groups keep their numbers.

        >>> book = Book.blank(9)
        >>> Groups.by(book, "x", np.array([5] * 8 + [6])).of.tolist()
        [1, 1, 1, 1, 1, 1, 1, 1, 0]
        """
        if label is None:
            all_ = np.arange(book.sites)
            return cls(book.site, -1 - all_, all_)
        none = np.zeros(0, np.int64)
        keys, sites = book.memory.get(f"{name}.key", none), book.memory.get(f"{name}.site", none)
        kept = book.memory.get(f"{name}.of", none)
        if len(kept) == len(book):
            return cls(kept, keys, sites)  # there are no new pages
        mixed = book.site.astype(np.int64)
        mixed <<= 40  # the same label on two sites makes two groups
        mixed ^= label
        np.abs(mixed, out=mixed)
        order = np.argsort(mixed).astype(np.int32)
        mixed = mixed[order]
        starts = np.flatnonzero(np.concatenate(([True], mixed[1:] != mixed[:-1]))) if len(mixed) else none
        size = np.diff(starts, append=len(mixed))
        site = book.site[order[starts]].astype(np.int64)
        group_key = np.where(size < MIN_PAGES, -1 - site, mixed[starts])
        names, first, row = np.unique(group_key, return_index=True, return_inverse=True)
        new = ~np.isin(names, keys)
        keys, sites = np.concatenate((keys, names[new])), np.concatenate((sites, site[first[new]]))
        sorted_ = np.argsort(keys)
        number = sorted_[np.searchsorted(keys[sorted_], names)].astype(np.int32)[row]
        of = np.empty(len(book), np.int32)
        of[order] = np.repeat(number, size)
        return cls(of, keys, sites)

    def keep(self, book: Book, name: str) -> None:
        """Store the groups in the book's memory; site numbers are in the book itself."""
        if self.of is not book.site:
            book.memory |= {f"{name}.of": self.of, f"{name}.key": self.key, f"{name}.site": self.site}


@dataclass(slots=True)
class GroupTally:
    """Visits and changes by group and bin of time; the last bin is the current one.

    The groups of several groupings are rows of one table, so that each operation handles all groupings at once.
    """

    groupings: tuple[Groups, ...]
    bins: int
    before: Float32s
    """Visits and changes, by group and bin: the totals before the bin."""
    today: Float32s
    """Visits and changes, by group: those of the last bin."""
    lately: Floats
    """One per group: the share of visits that found a change, decayed."""
    _first: Ints = field(init=False)
    """One per grouping: the row of its first group."""
    _all: Float32s = field(init=False)
    """Visits and changes, by group: the totals up to now."""

    def __post_init__(self) -> None:
        self._all = self.before[:, :, -1] + self.today
        self._first = np.cumsum([0, *(len(groups) for groups in self.groupings[:-1])])

    @classmethod
    def of(
        cls, book: Book, names: Sequence[str], groupings: tuple[Groups, ...], step: BinStep, bins: int
    ) -> GroupTally:
        """Load the counts under the groupings' names from the book's memory, extended to now."""
        total = sum(map(len, groupings))
        before, today = np.zeros((2, total, max(bins, 1)), np.float32), np.zeros((2, total), np.float32)
        lately = np.full(total, FIRST_SHARE)
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
        """Store the counts in the book's memory."""
        for name, groups, row in zip(names, self.groupings, self._first.tolist(), strict=True):
            groups.keep(book, name)
            rows = slice(row, row + len(groups))
            for layer, part in enumerate(("tries", "hits")):
                counts = np.empty((len(groups), self.bins), np.float32)
                counts[:, :-1] = np.diff(self.before[layer, rows], axis=1)
                counts[:, -1:] = self.today[layer, rows, None]
                largest = int(counts.max(initial=0))
                book.memory[f"{name}.{part}"] = counts.astype(np.min_scalar_type(largest))  # mostly small integers
            book.memory[f"{name}.lately"] = self.lately[rows]

    def rows(self, pages: AnyPages) -> Ints:
        """Return, page by grouping, the rows of the pages' groups."""
        rows = np.empty((len(pages), len(self.groupings)), np.int64)
        for column, groups in enumerate(self.groupings):
            rows[:, column] = groups.of[pages]
        rows += self._first
        return rows

    def observe(self, pages: AnyPages, changed: Flags) -> Ints:
        """Add visits at the current time; return the rows that have changed."""
        rows = self.rows(pages).ravel()
        touched = unique(rows)
        of = np.searchsorted(touched, rows)
        visits = np.bincount(of, minlength=len(touched))
        changes = np.bincount(of, np.repeat(changed, len(self.groupings)), len(touched))
        if self.bins:
            more = np.array((visits, changes), np.float32)
            self.today[:, touched] += more
            self._all[:, touched] += more
        decay = _FADE**visits
        self.lately[touched] = decay * self.lately[touched] + (1 - decay) * changes / np.maximum(visits, 1)
        return touched

    def since(self, rows: Ints, bin_: Ints | int) -> Float32s:
        """Return the visits and changes of groups from the beginning of a bin to now."""
        bins = self.before.shape[2]
        cells = rows * bins + np.minimum(bin_, bins - 1)
        counts: Float32s = self._all.take(rows, axis=1)
        counts -= self.before.reshape(2, -1).take(cells, axis=1)
        return counts
