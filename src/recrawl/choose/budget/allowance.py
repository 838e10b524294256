"""The limits of a cycle beyond its number of visits: bytes, visits per site, reserved visits.

`Allowance` holds the limits, fixed when the cycle begins. `Balance` is what is left of them: `fit` returns which pages
of a batch may be visited, `pay` deducts their outcomes, `open` returns which pages can still be visited at all.
`budgeted` applies the two to a policy.

Visits reserved for a site, for pushed pages or for new pages are pools beside the general one. A visit is paid from the
first pool with something left: its site's, the pool for pushes, the pool for new pages, the general one.
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
from recrawl.choose.budget.fair import Commons
from recrawl.choose.top_k import rank_within
from recrawl.columns import Flags, Floats, Int32s, Ints
from recrawl.model import Outcomes, Pages, Unvisited

_UNLIMITED = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The limits of one cycle; none by default. Sites are given by number."""

    bytes: float = float("inf")
    """Bytes received in all."""
    site_bytes: float = float("inf")
    """Bytes received from each site."""
    site_most: int | None = None
    """Maximum visits to a site that is not in `most`."""
    most: Mapping[int, int] = field(default_factory=dict)
    """Site to maximum visits."""
    least: Mapping[int, int] = field(default_factory=dict)
    """Site to reserved visits, while it has pages to visit."""
    new: int | None = None
    """Visits to pages never downloaded: at least this while there are such pages, at most this while others wait."""
    pushed: int = 0
    """Visits reserved for pushed pages; beyond that they compete like all others."""
    held: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Some sites that would exceed their fair share: to their visits by right, and those that others left to them when
    the cycle began. This is for reports; what is reserved for the others is not stored here."""

    def __bool__(self) -> bool:
        return self != Allowance()

    def limits(self) -> dict[str, Any]:
        """Return the limits that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value != getattr(_NONE, name)}

    def text(self) -> str:
        """Return the JSON that is stored with a cycle; empty without limits."""
        limits = self.limits()
        return json.dumps(limits, sort_keys=True) if limits else ""

    @classmethod
    def of(cls, text: str) -> Allowance:
        """Parse the result of `text`.

        >>> Allowance.of(Allowance(bytes=1e6, most={3: 10}).text())
        Allowance(bytes=1000000.0, site_bytes=inf, site_most=None, most={3: 10}, least={}, new=None, pushed=0, held={})
        """
        limits = json.loads(text) if text else {}
        for name in ("most", "least"):
            limits[name] = {int(site): visits for site, visits in limits.get(name, {}).items()}
        limits["held"] = {int(site): tuple(visits) for site, visits in limits.get("held", {}).items()}
        return cls(**limits)


_NONE = Allowance()


class Balance:
    """What is left of an allowance; `expected` is the bytes expected per page, its size by default.

    `reserved` are further visits reserved for sites, one entry per site: what they claim of the budget (see `fair`). Of
    these, the share `hope` should find something. A site whose visits find less by a whole find, and by more than
    chance, loses its claim: most likely its pages change together, and have not changed.

    In a cluster, `commons` limits the visits that are paid from the general pool: other shards use it, too.

    >>> book = Book.blank(6)
    >>> book.site[:] = [0, 0, 0, 0, 1, 1]
    >>> balance = Balance(Allowance(site_most=2), book, 5)
    >>> balance.fit(np.arange(6)).tolist()
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
        reserved: Ints | None = None,
        hope: Floats | None = None,
        commons: Commons | None = None,
    ) -> None:
        sites = book.sites
        self._commons = commons if commons is not None and not commons.alone else None
        self._used = 0
        """Visits paid from the general pool."""
        self.left = budget
        self.bytes = allowance.bytes
        self._site = book.site
        self._open = book.known.copy()
        self._room = _by_site(allowance.most, _UNLIMITED if allowance.site_most is None else allowance.site_most, sites)
        self._bytes = np.full(sites, allowance.site_bytes)
        limited = allowance.bytes < np.inf or allowance.site_bytes < np.inf
        self._expected = np.maximum(book.size if expected is None else expected, 1.0) if limited else None
        self._new = (book.visits == 0) if allowance.new is not None else None
        self._pushed = pushed if pushed is not None and allowance.pushed else None
        known = np.bincount(book.site[book.known], minlength=sites)
        least = _by_site(allowance.least, 0, sites)
        self._hope = np.zeros(sites)
        """One per site: the finds expected of a visit, 0 where a reserve is not a claim."""
        self._lacking = np.zeros(sites)
        """One per site: the finds that its visits lack."""
        self._chance = np.zeros(sites)
        """One per site: the variance of the finds of these visits, if each finds something by chance."""
        if reserved is not None:
            claimed = np.flatnonzero(reserved[:sites] > least[: len(reserved)])
            self._hope[claimed] = 1.0 if hope is None else hope[claimed]
            least[: len(reserved)] = np.maximum(least[: len(reserved)], reserved[:sites])
        self._reserved = np.minimum(least, np.minimum(known, self._room))
        self._reserved_pushed = min(allowance.pushed, _count(self._pushed, self._open))
        self._reserved_new = min(allowance.new or 0, _count(self._new, self._open))
        self._new_only = self._new is not None
        """Whether new pages are limited to the visits reserved for them."""

    def open(self) -> Flags:
        """Return which pages may still be visited in this cycle."""
        known = self._open.copy()
        known &= (self._room > 0)[self._site]
        if self._expected is not None:
            known &= self._expected <= np.minimum(self.bytes, self._bytes)[self._site]
        if self._general <= 0:
            known &= self._has_reserve()
        elif self._new_only and self._reserved_new <= 0 and self._new is not None:
            known &= ~self._new | self._has_reserve()
        return known

    def fit(self, pages: Pages) -> Flags:
        """Return which pages of a batch, best first, may be visited."""
        site = self._site[pages]
        fits = rank_within(site) < self._room[site]
        if self._expected is not None:
            fits &= self._within_bytes(pages, fits)
        fits[fits] = self._pools(pages[fits]) >= 0
        fits[np.flatnonzero(fits)[max(0, self.left) :]] = False
        return fits

    def used_up(self, pages: Pages) -> Flags:
        """Return which pages belong to sites that get no more visits, unless visits that are reserved are released."""
        site = self._site[pages]
        used_up = self._room[site] <= 0
        exhausted = self._commons is None or self._commons.exhausted
        if exhausted and self._general <= 0 and not self._reserved_pushed and not self._reserved_new:
            used_up |= self._reserved[site] <= 0
        return np.asarray(used_up)

    def pay(self, seen: Outcomes) -> None:
        """Deduct the visits of a batch; a held server gets no more visits."""
        self._open[seen.pages] = False
        self._room[self._site[seen.pages[seen.what == Unvisited.HELD]]] = 0
        made = seen.visited
        self._lose_claims(seen.take(made))
        if seen.received is not None:
            self._spend(seen.pages[made], seen.received[made].astype(np.float64))
        else:
            self._spend(seen.pages[made], self._expected[seen.pages[made]] if self._expected is not None else None)

    def after(self, pages: Pages) -> Balance:
        """Return the balance after visits to pages, if each transfers the expected bytes."""
        balance = copy(self)
        for name in ("_open", "_room", "_bytes", "_reserved"):
            setattr(balance, name, getattr(self, name).copy())
        balance._open[pages] = False
        balance._spend(pages, None if self._expected is None else self._expected[pages])
        return balance

    def release(self) -> bool:
        """Make reserved visits that nothing uses available to all pages; return False if none were reserved."""
        had = self._new_only or bool(self._reserved.any()) or self._reserved_pushed > 0 or self._reserved_new > 0
        self._reserved[:] = 0
        self._reserved_pushed = self._reserved_new = 0
        self._new_only = False
        return had

    def tell(self) -> None:
        """Tell the other shards of a cluster what is claimed, and what was used of the visits that nobody claims."""
        if self._commons is not None:
            self._commons.used, self._commons.reserved = self._used, int(self._reserved.sum())

    def _lose_claims(self, seen: Outcomes) -> None:
        site = self._site[seen.pages]
        if self._hope[site].any():
            hope = self._hope[site]
            self._lacking += np.bincount(site, hope - seen.changed, len(self._hope))
            self._chance += np.bincount(site, hope * (1 - hope), len(self._hope))
            self._reserved[(self._hope > 0) & (self._lacking >= 1 + np.sqrt(self._chance))] = 0

    def _spend(self, pages: Pages, amounts: Floats | None) -> None:
        pool, site = self._pools(pages), self._site[pages]
        sites = len(self._room)
        self.left -= len(pages)
        self._room -= np.minimum(np.bincount(site, minlength=sites), self._room)
        own = np.bincount(site[pool == _OF_SITE], minlength=sites)
        self._reserved = np.minimum(self._reserved - own, self._room)
        self._reserved_pushed -= int(np.count_nonzero(pool == _OF_PUSHED))
        self._reserved_new -= int(np.count_nonzero(pool == _OF_NEW))
        self._used += int(np.count_nonzero(pool == _OF_ALL))
        if amounts is not None:
            self.bytes -= float(amounts.sum())
            self._bytes -= np.bincount(site, weights=amounts, minlength=sites)

    def _pools(self, pages: Pages) -> NDArray[np.int8]:
        """Return the pool that pays for each page of a batch; -1 if nothing is left for it."""
        site = self._site[pages]
        pool = np.full(len(pages), -1, np.int8)
        pool[rank_within(site) < self._reserved[site]] = _OF_SITE
        if self._pushed is not None:
            _assign(pool, self._pushed[pages], self._reserved_pushed, _OF_PUSHED)
        common = np.ones(len(pages), bool)
        if self._new is not None:
            _assign(pool, self._new[pages], self._reserved_new, _OF_NEW)
            if self._new_only:
                common = ~self._new[pages]
        _assign(pool, common, self._general, _OF_ALL)
        return pool

    def _has_reserve(self) -> Flags:
        """Return which pages have reserved visits."""
        reserved = (self._reserved > 0)[self._site]
        if self._pushed is not None and self._reserved_pushed > 0:
            reserved |= self._pushed
        if self._new is not None and self._reserved_new > 0:
            reserved |= self._new
        return reserved

    def _within_bytes(self, pages: Pages, fits: Flags) -> Flags:
        """Return the pages that the bytes allow, in order; a page that is too large does not stop smaller ones."""
        assert self._expected is not None
        size, site = self._expected[pages], self._site[pages]
        within = np.zeros(len(pages), bool)
        rest, room = self.bytes, self._bytes.copy()
        for _ in range(_MAX_PASSES):
            candidates = fits & ~within & (size <= np.minimum(rest, room[site]))
            amount = np.where(candidates, size, 0.0)
            more = candidates & (np.cumsum(amount) <= rest) & (_running_sum(site, amount) <= room[site])
            if not more.any():
                break
            within |= more
            rest -= float(size[more].sum())
            room -= np.bincount(site[more], weights=size[more], minlength=len(room))
        return within

    @property
    def _general(self) -> int:
        """What is left of the general pool."""
        left = self.left - int(self._reserved.sum()) - self._reserved_pushed - self._reserved_new
        return int(max(0, left if self._commons is None else min(left, self._commons.limit - self._used)))


_OF_SITE, _OF_PUSHED, _OF_NEW, _OF_ALL = range(4)
_MAX_PASSES = 8


def _assign(pool: NDArray[np.int8], eligible: Flags, room: int, which: int) -> None:
    """Assign the first `room` eligible pages without a pool to a pool."""
    free = np.flatnonzero(eligible & (pool < 0))
    pool[free[: max(0, room)]] = which


def _by_site(limits: Mapping[int, int], default: int, sites: int) -> Ints:
    column = np.full(sites, default, np.int64)
    for site, visits in limits.items():
        if site < sites:
            column[site] = visits
    return column


def _count(flags: Flags | None, known: Flags) -> int:
    return 0 if flags is None else int(np.count_nonzero(flags & known))


def _running_sum(group: Int32s, amount: Floats) -> Floats:
    """Return the running sum within each group.

    >>> _running_sum(np.array([0, 1, 0, 1], np.int32), np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [1.0, 2.0, 4.0, 6.0]
    """
    order = np.argsort(group, kind="stable")
    total = np.cumsum(amount[order])
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    before = np.repeat(np.r_[0.0, total][first], np.diff(np.r_[first, len(group)]))
    running = np.empty(len(group))
    running[order] = total - before
    return running
