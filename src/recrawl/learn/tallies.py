"""How visits to a group of pages went: how many were made in each bin of time, and how many found a change.

A group is the pages of a site that have something in common: the form of their address, their directory, or nothing but
the site. From the counts comes what a visit to one page says of the others: how visits to its group have gone today,
of late, and since the page's own last visit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.learn.bins import Floats, Step

FEWEST = 8
"""A group with fewer pages is none: they belong to the rest of their site."""
FIRST_SHARE = 0.3
"""The share of visits that find a change, where nothing is known."""
_FADE = 0.95
"""How much of a group's share stays when one more visit is taken in."""

Pages = NDArray[np.int64] | NDArray[np.int32]


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
        none = np.zeros(0, np.int64)
        keys, sites = book.memory.get(f"{name}.key", none), book.memory.get(f"{name}.site", none)
        kept = book.memory.get(f"{name}.of", none)
        if len(kept) == len(book):
            return cls(kept, keys, sites)  # no page is new
        site = book.site.astype(np.int64)
        wanted = -1 - site
        if label is not None:
            mixed = np.abs(label ^ (site << 40))  # the same label on two sites is two groups
            _, row, count = np.unique(mixed, return_inverse=True, return_counts=True)
            wanted = np.where(count[row] < FEWEST, wanted, mixed)
        names, first, row = np.unique(wanted, return_index=True, return_inverse=True)
        new = ~np.isin(names, keys)
        keys, sites = np.concatenate((keys, names[new])), np.concatenate((sites, site[first[new]]))
        order = np.argsort(keys)
        of: NDArray[np.int32] = order[np.searchsorted(keys[order], names)].astype(np.int32)[row]
        return cls(of, keys, sites)

    def keep(self, book: Book, name: str) -> None:
        """Save the numbers of groups."""
        book.memory |= {f"{name}.of": self.of, f"{name}.key": self.key, f"{name}.site": self.site}


@dataclass(slots=True)
class Tally:
    """Visits and finds of groups by bins of time; the last bin is now."""

    groups: Groups
    tries: Floats
    hits: Floats
    lately: Floats
    """One per group: the share of visits that found a change, older ones counting less; not a number where none was."""
    _before: tuple[Floats, Floats] = field(init=False)
    """Visits and finds from the beginning to the beginning of each bin."""

    def __post_init__(self) -> None:
        self._before = (_running(self.tries), _running(self.hits))

    @classmethod
    def of(cls, book: Book, name: str, groups: Groups, step: Step, bins: int) -> Tally:
        """What the book's memory holds under a name, with a bin for now."""
        none = np.zeros((0, bins - step.more))
        tries, hits = (step(book.memory.get(f"{name}.{part}", none), len(groups)) for part in ("tries", "hits"))
        lately = np.full(len(groups), np.nan)
        known = book.memory.get(f"{name}.lately", lately[:0])
        lately[: len(known)] = known
        return cls(groups, tries, hits, lately)

    def keep(self, book: Book, name: str) -> None:
        """Save it."""
        self.groups.keep(book, name)
        book.memory |= {
            f"{name}.tries": self.tries.astype(np.float32),
            f"{name}.hits": self.hits.astype(np.float32),
            f"{name}.lately": self.lately,
        }

    def observe(self, pages: Pages, changed: NDArray[np.bool_]) -> None:
        """Take in visits made now."""
        group = self.groups.of[pages]
        many = len(self.groups)
        tries, hits = np.bincount(group, minlength=many), np.bincount(group, changed, many)
        if self.tries.shape[1]:
            self.tries[:, -1] += tries
            self.hits[:, -1] += hits
        some = tries > 0
        before = np.where(np.isnan(self.lately[some]), FIRST_SHARE, self.lately[some])
        stays = _FADE ** tries[some]
        self.lately[some] = stays * before + (1 - stays) * hits[some] / tries[some]

    def today(self, group: Pages) -> tuple[Floats, Floats]:
        """Visits and finds of groups in the last bin."""
        if not self.tries.shape[1]:
            return np.zeros(len(group)), np.zeros(len(group))
        return self.tries[group, -1], self.hits[group, -1]

    def since(self, group: Pages, bin_: Pages) -> tuple[Floats, Floats]:
        """Visits and finds of groups from the beginning of a bin to now."""
        now = self.today(group)
        tries, hits = (all_[group, -1] - all_[group, np.minimum(bin_, all_.shape[1] - 1)] for all_ in self._before)
        return tries + now[0], hits + now[1]


def _running(counts: Floats) -> Floats:
    """Sums over the bins before each one, the last bin left out (it goes on changing)."""
    summed = np.zeros((len(counts), max(counts.shape[1], 1)))
    np.cumsum(counts[:, :-1], axis=1, out=summed[:, 1:])
    return summed
