"""What a cycle may spend beyond its number of visits: bytes, limits and shares of sites, reserves. Columns, no I/O.

`Allowance` is what was decided when the cycle began, in plain numbers. `Purse` is what is left of it as the cycle goes
on: `fit` says which of a batch of pages may be visited, `pay` takes in what came of them, `open` which pages have any
room at all. `choose.allowed` puts the two between a policy and the world.

Visits that are kept for somebody (a site, new pages, pushed pages) are pools of their own beside the general one. A
page is paid out of the first that has something left: its site's, that for pushes, that for new pages, the general one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.top_k import rank_within
from recrawl.model import Outcomes, Pages, Unvisited

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
_ANY = np.iinfo(np.int64).max // 4
"""Room without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The limits of one cycle; without any, a policy is on its own. Sites are given by their numbers."""

    bytes: float = float("inf")
    """To be received in all."""
    site_bytes: float = float("inf")
    """To be received from any one site."""
    site_most: int | None = None
    """Visits to a site that `most` does not name."""
    most: Mapping[int, int] = field(default_factory=dict)
    least: Mapping[int, int] = field(default_factory=dict)
    """Visits that are kept for a site as long as it has pages to visit."""
    new: int | None = None
    """Visits for pages that were never downloaded: no fewer while there are such pages, no more while others wait."""
    pushed: int = 0
    """Visits kept for pushed pages; beyond that they compete like all others."""

    def __bool__(self) -> bool:
        return self != Allowance()

    def told(self) -> dict[str, Any]:
        """What it says, without what it leaves open."""
        return {name: value for name, value in asdict(self).items() if value != getattr(_NONE, name)}

    def text(self) -> str:
        """As it is kept with a cycle; empty without limits."""
        said = self.told()
        return json.dumps(said, sort_keys=True) if said else ""

    @classmethod
    def of(cls, text: str) -> Allowance:
        """What `text` wrote.

        >>> Allowance.of(Allowance(bytes=1e6, most={3: 10}).text())
        Allowance(bytes=1000000.0, site_bytes=inf, site_most=None, most={3: 10}, least={}, new=None, pushed=0)
        """
        said = json.loads(text) if text else {}
        for name in ("most", "least"):
            said[name] = {int(site): visits for site, visits in said.get(name, {}).items()}
        return cls(**said)


_NONE = Allowance()


class Purse:
    """What is left of an allowance. `expected` are the bytes that each page will probably bring; its size if not given.

    >>> book = Book.blank(6)
    >>> book.site[:] = [0, 0, 0, 0, 1, 1]
    >>> purse = Purse(Allowance(site_most=2), book, 5)
    >>> purse.fit(np.arange(6)).tolist()
    [True, True, False, False, True, True]
    """

    def __init__(
        self,
        allowance: Allowance,
        book: Book,
        budget: int,
        *,
        expected: Floats | None = None,
        pushed: Flags | None = None,
    ) -> None:
        sites = book.sites
        self.left = budget
        self.bytes = allowance.bytes
        self._site = book.site
        self._open = book.known.copy()
        self._room = _by_site(allowance.most, _ANY if allowance.site_most is None else allowance.site_most, sites)
        self._bytes = np.full(sites, allowance.site_bytes)
        weighs = allowance.bytes < np.inf or allowance.site_bytes < np.inf
        self._expected = np.maximum(book.size if expected is None else expected, 1.0) if weighs else None
        self._new = (book.visits == 0) if allowance.new is not None else None
        self._pushed = pushed if pushed is not None and allowance.pushed else None
        there = np.bincount(book.site[book.known], minlength=sites)
        self._kept = np.minimum(_by_site(allowance.least, 0, sites), np.minimum(there, self._room))
        self._kept_pushed = min(allowance.pushed, _count(self._pushed, self._open))
        self._kept_new = min(allowance.new or 0, _count(self._new, self._open))
        self._new_only = self._new is not None
        """New pages get what is kept for them and nothing else."""
        self._settle()

    def open(self) -> Flags:
        """Pages that may still be visited in this cycle."""
        known = self._open.copy()
        known &= (self._room > 0)[self._site]
        if self._expected is not None:
            known &= self._expected <= np.minimum(self.bytes, self._bytes)[self._site]
        if self._general <= 0:
            known &= self._rich()
        elif self._new_only and self._kept_new <= 0 and self._new is not None:
            known &= ~self._new | self._rich()
        return known

    def fit(self, pages: Pages) -> Flags:
        """Which pages of a batch, best first, may be visited."""
        site = self._site[pages]
        fits = rank_within(site) < self._room[site]
        if self._expected is not None:
            fits &= self._light_enough(pages, fits)
        fits[fits] = self._pools(pages[fits]) >= 0
        fits[np.flatnonzero(fits)[max(0, self.left) :]] = False
        return fits

    def pay(self, seen: Outcomes) -> None:
        """Take in what came of a batch."""
        self._open[seen.pages] = False
        self._room[self._site[seen.pages[seen.what == Unvisited.HELD]]] = 0
        made = seen.visited
        if seen.received is not None:
            self._spend(seen.pages[made], seen.received[made].astype(np.float64))
        else:
            self._spend(seen.pages[made], self._expected[seen.pages[made]] if self._expected is not None else None)

    def after(self, pages: Pages) -> Purse:
        """What it would be after visits to these pages, if each brought what is expected."""
        purse = copy(self)
        for name in ("_open", "_room", "_bytes", "_kept"):
            setattr(purse, name, getattr(self, name).copy())
        purse._open[pages] = False
        purse._spend(pages, None if self._expected is None else self._expected[pages])
        return purse

    def release(self) -> bool:
        """Give what is kept for some to all, since those it is kept for do not want it; False when nothing was kept."""
        had = self._new_only or bool(self._kept.any()) or self._kept_pushed > 0 or self._kept_new > 0
        self._kept[:] = 0
        self._kept_pushed = self._kept_new = 0
        self._new_only = False
        self._settle()
        return had

    def _spend(self, pages: Pages, amounts: Floats | None) -> None:
        pool, site = self._pools(pages), self._site[pages]
        sites = len(self._room)
        self.left -= len(pages)
        self._room -= np.minimum(np.bincount(site, minlength=sites), self._room)
        own = np.bincount(site[pool == _OF_SITE], minlength=sites)
        self._kept = np.minimum(self._kept - own, self._room)
        self._kept_pushed -= int(np.count_nonzero(pool == _OF_PUSHED))
        self._kept_new -= int(np.count_nonzero(pool == _OF_NEW))
        if amounts is not None:
            self.bytes -= float(amounts.sum())
            self._bytes -= np.bincount(site, weights=amounts, minlength=sites)
        self._settle()

    def _pools(self, pages: Pages) -> NDArray[np.int8]:
        """Where each page of a batch is paid from; -1 where nothing is left for it."""
        site = self._site[pages]
        pool = np.full(len(pages), -1, np.int8)
        pool[rank_within(site) < self._kept[site]] = _OF_SITE
        if self._pushed is not None:
            _take(pool, self._pushed[pages], self._kept_pushed, _OF_PUSHED)
        common = np.ones(len(pages), bool)
        if self._new is not None:
            _take(pool, self._new[pages], self._kept_new, _OF_NEW)
            if self._new_only:
                common = ~self._new[pages]
        _take(pool, common, self._general, _OF_ALL)
        return pool

    def _rich(self) -> Flags:
        """Pages for which something is kept."""
        rich = (self._kept > 0)[self._site]
        if self._pushed is not None and self._kept_pushed > 0:
            rich |= self._pushed
        if self._new is not None and self._kept_new > 0:
            rich |= self._new
        return rich

    def _light_enough(self, pages: Pages, fits: Flags) -> Flags:
        """As many as the bytes allow, in their order; one that is too large does not stop smaller ones behind it."""
        assert self._expected is not None
        weight, site = self._expected[pages], self._site[pages]
        light = np.zeros(len(pages), bool)
        rest, room = self.bytes, self._bytes.copy()
        for _ in range(_PASSES):
            asked = fits & ~light & (weight <= np.minimum(rest, room[site]))
            amount = np.where(asked, weight, 0.0)
            more = asked & (np.cumsum(amount) <= rest) & (_running(site, amount) <= room[site])
            if not more.any():
                break
            light |= more
            rest -= float(weight[more].sum())
            room -= np.bincount(site[more], weights=weight[more], minlength=len(room))
        return light

    def _settle(self) -> None:
        kept = int(self._kept.sum()) + self._kept_pushed + self._kept_new
        self._general = max(0, self.left - kept)


_OF_SITE, _OF_PUSHED, _OF_NEW, _OF_ALL = range(4)
_PASSES = 8


def _take(pool: NDArray[np.int8], wanted: Flags, room: int, which: int) -> None:
    """The first so many that are wanted and not yet paid for."""
    free = np.flatnonzero(wanted & (pool < 0))
    pool[free[: max(0, room)]] = which


def _by_site(said: Mapping[int, int], default: int, sites: int) -> NDArray[np.int64]:
    column = np.full(sites, default, np.int64)
    for site, visits in said.items():
        if site < sites:
            column[site] = visits
    return column


def _count(flags: Flags | None, known: Flags) -> int:
    return 0 if flags is None else int(np.count_nonzero(flags & known))


def _running(group: NDArray[np.int32], amount: Floats) -> Floats:
    """What has come up to each place, itself included, within its group.

    >>> _running(np.array([0, 1, 0, 1], np.int32), np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [1.0, 2.0, 4.0, 6.0]
    """
    order = np.argsort(group, kind="stable")
    total = np.cumsum(amount[order])
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    before = np.repeat(np.r_[0.0, total][first], np.diff(np.r_[first, len(group)]))
    running = np.empty(len(group))
    running[order] = total - before
    return running
