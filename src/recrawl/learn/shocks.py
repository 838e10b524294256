"""What is believed of change when pages change together: a rate for every page, a common shock for every group.

Page i of group g changes at the rate λ_i · m_g(t): its own rate, times what happens to the group at the time, which is
mostly next to nothing and now and then very much (a rebuild, a new edition). Time is cut into bins at the moments of
cycles. Both factors have Gamma priors, nested: all sites → site → group → page for rates, 1 → site → group for shocks.

A visit says whether the page has changed since the visit before it, so when it has, the change is spread over the bins
in between by what is believed of them (one step of expectation maximisation); the belief of each bin of the group, and
of the page's rate, moves with it. All of it is sums: an update costs what was visited, not what there is.

    believe = Shocks.of(book)                  a copy of the policy's memory, with a bin up to now
    w = believe.exposure(last)                 how much has happened to each page's group since its last visit
    believe.observe(pages, last, changed)
    believe.keep(book)                         into the memory again
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book

DAY = 86400.0
FEWEST = 8
"""A form with fewer pages has no group of its own."""
MOST_BINS = 160
"""When there are more bins, the older half of them is joined two by two."""
FIRST_RATE = 0.02
"""Changes a day of a page of which nothing is known."""
PAGE_WEIGHT = 0.25
"""How much a group's rate counts against a page's own changes: a quarter of a change."""
SHOCK_WEIGHT = 3.0
"""How much the site's shock counts against the group's own visits: as much as three pages."""
FORGET = 0.02
"""The share of what is known of rates that is forgotten in a day."""

_SUMS = ("events", "expected", "tries", "hits")

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Shocks:
    """The belief at one time; `of` makes it, `observe` changes it, `keep` saves it."""

    group: NDArray[np.int64]
    """One per page: its group."""
    site: NDArray[np.int64]
    """One per group: its site."""
    key: NDArray[np.int64]
    """One per group: the form of its pages, or -1 - site for the pages of a site that have no group."""
    times: Floats
    """Where bins end, days; the first is where they begin."""
    changes: Floats
    """One per page: changes seen, older ones faded."""
    watched: Floats
    """One per page: for how long it was watched, counted by what happened to its group."""
    events: Floats
    """Group by bin: changes thought to have fallen there."""
    expected: Floats
    """Group by bin: changes that would have been expected of the pages watched there, had nothing happened."""
    tries: Floats
    hits: Floats
    """Group by bin: visits made there, and those that found a change."""
    rate: Floats
    """One per page, changes a day; with `a` and `b` set by `settle`."""
    a: Floats
    b: Floats
    _group_rate: Floats
    _site_rate: Floats
    _sum: Floats
    """Group by bin: what has happened to the group until then, in days of ordinary time."""

    @classmethod
    def of(cls, book: Book) -> Shocks:
        """The belief that a book's memory holds, with a bin from the last moment in it to now."""
        keys, sites = _known_groups(book)
        group, keys, sites = _groups(book, keys, sites)
        times = book.memory.get("shock.times", np.array([_beginning(book) / DAY]))
        bins = len(times) - 1
        blank = np.zeros(0)
        belief = cls(
            group=group,
            site=sites,
            key=keys,
            times=times,
            changes=book.kept("shock.changes", 0.0),
            watched=book.kept("shock.watched", 0.0),
            **{name: _padded(book.memory.get(f"shock.{name}"), len(keys), bins) for name in _SUMS},
            rate=blank,
            a=blank,
            b=blank,
            _group_rate=blank,
            _site_rate=blank,
            _sum=blank,
        )
        belief._go_on(book.now / DAY)
        belief.settle()
        belief._follow(np.arange(len(keys)))
        return belief

    def keep(self, book: Book) -> None:
        """Save the belief in the book's memory."""
        book.memory |= {
            "shock.key": self.key,
            "shock.site": self.site,
            "shock.times": self.times,
            "shock.changes": self.changes,
            "shock.watched": self.watched,
        }
        book.memory |= {f"shock.{name}": getattr(self, name).astype(np.float32) for name in _SUMS}

    def place(self, at: Floats) -> Floats:
        """Moments (days) as places among the bins: 2.5 is the middle of the third bin."""
        return np.interp(at, self.times, np.arange(len(self.times)))

    def exposure(self, pages: NDArray[np.int64], place: Floats) -> Floats:
        """What has happened to the pages' groups since a place in time, in days of ordinary time."""
        group = self.group[pages]
        low = place.astype(np.int64)
        high = np.minimum(low + 1, self._sum.shape[1] - 1)
        before = self._sum[group, low]
        passed: Floats = self._sum[group, -1] - before - (place - low) * (self._sum[group, high] - before)
        return passed

    def settle(self) -> None:
        """Rates from what was seen: each level leans on the one above it as far as it has seen little itself."""
        site = self.site[self.group]
        sites = int(self.site.max(initial=-1)) + 1
        self._site_rate = (_sums(site, self.changes, sites) + 1) / (_sums(site, self.watched, sites) + 1 / FIRST_RATE)
        groups = len(self.key)
        seen, watched = _sums(self.group, self.changes, groups), _sums(self.group, self.watched, groups)
        self._group_rate = (seen + 1) / (watched + 1 / self._site_rate[self.site])
        self.a = self.changes + PAGE_WEIGHT
        self.b = self.watched + PAGE_WEIGHT / self._group_rate[self.group]
        self.rate = self.a / self.b

    def observe(self, pages: NDArray[np.int64], place: Floats, changed: NDArray[np.bool_]) -> None:
        """Visits now: whether pages have changed since the places in time of the visits before."""
        if not len(pages) or len(self.times) < 2:
            return
        group, rate = self.group[pages], self.rate[pages]
        passed = np.maximum(self.exposure(pages, place), 1e-9)
        # The expected number of changes, given that there was one at least.
        per_day = np.where(changed, rate / -np.expm1(-np.maximum(rate * passed, 1e-12)), 0.0)
        np.add.at(self.watched, pages, passed)
        np.add.at(self.changes, pages, per_day * passed)
        touched, row = np.unique(group, return_inverse=True)
        shares = self._sum.shape[1]
        low = place.astype(np.int64)
        rest = 1 - (place - low)  # of the bin in which the last visit lies
        spread = np.zeros((2, len(touched), shares))
        for layer, amount in enumerate((rate, per_day)):
            np.add.at(spread[layer], (row, low), amount * rest)
            np.add.at(spread[layer], (row, np.minimum(low + 1, shares - 1)), amount * (1 - rest))
        spread = np.cumsum(spread, axis=2)[:, :, : shares - 1]
        self.expected[touched] += spread[0] * np.diff(self.times)
        self.events[touched] += spread[1] * np.diff(self._sum[touched], axis=1)
        self.tries[touched, -1] += np.bincount(row)
        self.hits[touched, -1] += np.bincount(row, changed)
        sites = np.unique(self.site[touched])
        self._follow(np.flatnonzero(np.isin(self.site, sites)))

    def _follow(self, groups: NDArray[np.int64]) -> None:
        """What has happened to groups, from the sums; all groups of a site must be among them."""
        sites, row = np.unique(self.site[groups], return_inverse=True)
        days = np.diff(self.times)
        events, expected = self.events[groups], self.expected[groups]
        totals = np.zeros((2, len(sites), len(days)))
        np.add.at(totals[0], row, events)
        np.add.at(totals[1], row, expected)
        ours = (SHOCK_WEIGHT * self._site_rate[sites])[:, None] * days
        of_site = (ours + totals[0]) / (ours + totals[1])
        own = (SHOCK_WEIGHT * self._group_rate[groups])[:, None] * days
        shock = (own * of_site[row] + events) / (own + expected)
        if len(self._sum) != len(self.key):
            self._sum = np.zeros((len(self.key), len(self.times)))
        self._sum[groups, 1:] = np.cumsum(shock * days, axis=1)

    def _go_on(self, now: float) -> None:
        """A bin from the last moment to now; what is known of rates fades."""
        if now <= self.times[-1]:
            return  # a clock that has stepped back: the last bin goes on
        faded = (1 - FORGET) ** (now - self.times[-1])
        self.changes = self.changes * faded
        self.watched = self.watched * faded
        self.times = np.append(self.times, now)
        blank = np.zeros((len(self.key), 1))
        for name in _SUMS:
            setattr(self, name, np.hstack((getattr(self, name), blank)))
        if len(self.times) - 1 > MOST_BINS:
            self._join()

    def _join(self) -> None:
        """Join old bins two by two: what happened long ago need not be known to the day."""
        old = MOST_BINS // 2
        self.times = np.concatenate((self.times[:old:2], self.times[old:]))
        for name in _SUMS:
            sums = getattr(self, name)
            joined = sums[:, :old].reshape(len(sums), old // 2, 2).sum(axis=2)
            setattr(self, name, np.hstack((joined, sums[:, old:])))


def _beginning(book: Book) -> float:
    """Where the first bin begins: at the first visit that is known."""
    seen = book.last_visit[np.isfinite(book.last_visit)]
    return float(seen.min()) if len(seen) else book.now


def _known_groups(book: Book) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    none = np.zeros(0, np.int64)
    return book.memory.get("shock.key", none), book.memory.get("shock.site", none)


def _groups(
    book: Book, keys: NDArray[np.int64], sites: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Each page's group, and all groups with their sites; those that are known keep their numbers."""
    site = book.site.astype(np.int64)
    form = np.full(len(book), 1, np.int64) if book.form is None else book.form
    wanted = form ^ (site << 40)  # the form holds the host already; sites are told apart where it does not
    _, row, count = np.unique(wanted, return_inverse=True, return_counts=True)
    wanted = np.where(count[row] < FEWEST, -1 - site, np.abs(wanted))
    names, first, row = np.unique(wanted, return_index=True, return_inverse=True)
    new = ~np.isin(names, keys)
    keys = np.concatenate((keys, names[new]))
    sites = np.concatenate((sites, site[first[new]]))
    order = np.argsort(keys)
    return order[np.searchsorted(keys[order], names)][row], keys, sites


def _padded(sums: NDArray[np.float32] | None, groups: int, bins: int) -> Floats:
    whole = np.zeros((groups, bins))
    if sums is not None:
        whole[: len(sums), : sums.shape[1]] = sums
    return whole


def _sums(of: NDArray[np.int64], values: Floats, many: int) -> Floats:
    return np.bincount(of, values, many).astype(np.float64)
