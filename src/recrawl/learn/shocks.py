"""What is believed of change when pages change together: a rate for every page, a common shock for every group.

Page i of group g changes at the rate λ_i · m_g(t): its own rate, times what happens to the group at the time, which is
mostly next to nothing and now and then very much (a rebuild, a new edition). Time is cut into bins at the moments of
cycles. Both factors have Gamma priors, nested: all sites → site → group → page for rates, 1 → site → group for shocks.

A visit says whether the page has changed since the visit before it, so when it has, the change is spread over the bins
in between by what is believed of them (one step of expectation maximisation); the belief of each bin of the group, and
of the page's rate, moves with it. All of it is sums: an update costs what was visited, not what there is.

    belief = Shocks.of(book)                   a copy of the policy's memory, with a bin up to now
    place = belief.bins.place(days)            the pages' last visits among the bins
    belief.exposure(pages, place)              how much has happened to their groups since then
    belief.observe(pages, place, changed)
    belief.keep(book)                          into the memory again
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.learn.bins import Bins, Floats, Step
from recrawl.learn.tallies import Groups, Pages

DAY = 86400.0
FIRST_RATE = 0.02
"""Changes a day of a page of which nothing is known."""
PAGE_WEIGHT = 0.25
"""How much a group's rate counts against a page's own changes: a quarter of a change."""
SHOCK_WEIGHT = 3.0
"""How much the site's shock counts against the group's own visits: as much as three pages."""
FORGET = 0.02
"""The share of what is known of rates that is forgotten in a day."""


@dataclass(slots=True)
class Shocks:
    """The belief at one time; `of` makes it, `observe` changes it, `keep` saves it."""

    groups: Groups
    bins: Bins
    step: Step
    """What has become of tables since the belief was kept."""
    changes: Floats
    """One per page: changes seen, older ones faded."""
    watched: Floats
    """One per page: for how long it was watched, counted by what happened to its group."""
    events: Floats
    """Group by bin: changes thought to have fallen there."""
    expected: Floats
    """Group by bin: changes that would have been expected of the pages watched there, had nothing happened."""
    group_rate: Floats = field(init=False)
    """One per group, changes a day."""
    site_rate: Floats = field(init=False)
    a: Floats = field(init=False)
    """One per page: the rate is thought to be Gamma(a, b), changes a day."""
    b: Floats = field(init=False)
    _sum: Floats = field(init=False)
    """Group by moment: what has happened to the group until then, in days of ordinary time."""

    def __post_init__(self) -> None:
        self._settle()
        self._sum = np.zeros((len(self.groups), len(self.bins.times)))
        self._follow(np.arange(len(self.groups)))

    @classmethod
    def of(cls, book: Book) -> Shocks:
        """The belief that a book's memory holds, with a bin from the last moment in it to now."""
        groups = Groups.by(book, "shock", book.form)
        before = Bins(book.memory.get("shock.times", np.array([_beginning(book) / DAY])))
        bins, step = before.up_to(book.now / DAY)
        faded = (1 - FORGET) ** (bins.times[-1] - before.times[-1])
        none = np.zeros((0, len(before)))
        return cls(
            groups=groups,
            bins=bins,
            step=step,
            changes=book.kept("shock.changes", 0.0) * faded,
            watched=book.kept("shock.watched", 0.0) * faded,
            events=step(book.memory.get("shock.events", none), len(groups)),
            expected=step(book.memory.get("shock.expected", none), len(groups)),
        )

    def keep(self, book: Book) -> None:
        """Save the belief in the book's memory."""
        self.groups.keep(book, "shock")
        book.memory |= {
            "shock.times": self.bins.times,
            "shock.changes": self.changes,
            "shock.watched": self.watched,
            "shock.events": self.events.astype(np.float32),
            "shock.expected": self.expected.astype(np.float32),
        }

    def latest(self) -> Floats:
        """One per group: how much happened to it in the last bin; 1 is what is usual."""
        if not len(self.bins):
            return np.ones(len(self.groups))
        last: Floats = (self._sum[:, -1] - self._sum[:, -2]) / (self.bins.times[-1] - self.bins.times[-2])
        return last

    def a_week_ago(self) -> Floats:
        """One per group: how much happened to it in the bins that hold this moment one and two weeks ago."""
        moments = self.bins.times
        bins = np.searchsorted(moments, moments[-1] - np.array([7.0, 14.0]), side="left")
        bins = bins[(bins > 0) & (bins < len(moments) - 1)]
        if not len(bins):
            return np.ones(len(self.groups))
        shock = (self._sum[:, bins] - self._sum[:, bins - 1]) / (moments[bins] - moments[bins - 1])
        return np.asarray(shock.mean(axis=1))

    def exposure(self, pages: Pages, place: Floats) -> Floats:
        """What has happened to the pages' groups since a place in time, in days of ordinary time."""
        group = self.groups.of[pages]
        low = place.astype(np.int64)
        high = np.minimum(low + 1, self._sum.shape[1] - 1)
        before = self._sum[group, low]
        passed: Floats = self._sum[group, -1] - before - (place - low) * (self._sum[group, high] - before)
        return passed

    def observe(self, pages: Pages, place: Floats, changed: NDArray[np.bool_]) -> None:
        """Visits now: whether pages have changed since the places in time of the visits before."""
        if not len(pages) or not len(self.bins):
            return
        group, rate = self.groups.of[pages], self.a[pages] / self.b[pages]
        passed = np.maximum(self.exposure(pages, place), 1e-9)
        # The expected number of changes, given that there was one at least.
        per_day = np.where(changed, rate / -np.expm1(-np.maximum(rate * passed, 1e-12)), 0.0)
        np.add.at(self.watched, pages, passed)
        np.add.at(self.changes, pages, per_day * passed)
        touched, row = np.unique(group, return_inverse=True)
        moments = self._sum.shape[1]
        low = place.astype(np.int64)
        rest = 1 - (place - low)  # of the bin in which the last visit lies
        spread = np.zeros((2, len(touched), moments))
        for layer, amount in enumerate((rate, per_day)):
            np.add.at(spread[layer], (row, low), amount * rest)
            np.add.at(spread[layer], (row, np.minimum(low + 1, moments - 1)), amount * (1 - rest))
        spread = np.cumsum(spread, axis=2)[:, :, : moments - 1]
        self.expected[touched] += spread[0] * np.diff(self.bins.times)
        self.events[touched] += spread[1] * np.diff(self._sum[touched], axis=1)
        sites = np.unique(self.groups.site[touched])
        self._follow(np.flatnonzero(np.isin(self.groups.site, sites)))

    def _settle(self) -> None:
        """Rates from what was seen: each level leans on the one above it as far as it has seen little itself."""
        group, of_site = self.groups.of, self.groups.site
        changes, watched = (np.bincount(group, sums, len(self.groups)) for sums in (self.changes, self.watched))
        sites = int(of_site.max(initial=-1)) + 1
        self.site_rate = (np.bincount(of_site, changes, sites) + 1) / (
            np.bincount(of_site, watched, sites) + 1 / FIRST_RATE
        )
        self.group_rate = (changes + 1) / (watched + 1 / self.site_rate[of_site])
        self.a = self.changes + PAGE_WEIGHT
        self.b = self.watched + PAGE_WEIGHT / self.group_rate[group]

    def _follow(self, groups: Pages) -> None:
        """What has happened to groups, from the sums; all groups of a site must be among them."""
        sites, row = np.unique(self.groups.site[groups], return_inverse=True)
        days = np.diff(self.bins.times)
        events, expected = self.events[groups], self.expected[groups]
        totals = np.zeros((2, len(sites), len(days)))
        np.add.at(totals[0], row, events)
        np.add.at(totals[1], row, expected)
        ours = (SHOCK_WEIGHT * self.site_rate[sites])[:, None] * days
        of_site = (ours + totals[0]) / (ours + totals[1])
        own = (SHOCK_WEIGHT * self.group_rate[groups])[:, None] * days
        shock = (own * of_site[row] + events) / (own + expected)
        self._sum[groups, 1:] = np.cumsum(shock * days, axis=1)


def _beginning(book: Book) -> float:
    """Where the first bin begins: at the first visit that is known."""
    seen = book.last_visit[np.isfinite(book.last_visit)]
    return float(seen.min()) if len(seen) else book.now
