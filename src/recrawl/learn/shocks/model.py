"""What is believed of change when pages change together: a rate for every page, a common shock for every group.

Page i of group g changes at the rate λ_i · m_g(t): its own rate, times what happens to the group at the time, which is
mostly next to nothing and now and then very much (a rebuild, a new edition). Time is cut into bins at the moments of
cycles. Both factors have Gamma priors, nested: all sites → site → group → page for rates, 1 → site → group for shocks.

A visit says whether the page has changed since the visit before it, so when it has, the change is spread over the bins
in between by what is believed of them (one step of expectation maximisation); the belief of each bin of the group, and
of the page's rate, moves with it. All of it is sums: an update costs what was visited, not what there is.

    belief = Shocks.of(book, name, label)      a copy of the policy's memory, with a bin up to now
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
from recrawl.columns import unique
from recrawl.learn.chunks import AnyFloats, Pages, sums
from recrawl.learn.shocks.group_tallies import Groups
from recrawl.learn.shocks.time_bins import Bins, BinStep, Floats

DAY = 86400.0
FIRST_RATE = 0.02
"""Changes a day of a page of which nothing is known."""
PAGE_WEIGHT = 0.25
"""How much a group's rate counts against a page's own changes: a quarter of a change."""
SHOCK_WEIGHT = 3.0
"""How much the site's shock counts against the group's own visits: as much as three pages."""
FORGET = 0.02
"""The share of what is known of rates that is forgotten in a day."""
_SITES = 1 << 9
_GROUPS = 1 << 12
"""So many sites, or groups, are summed up at once; the room that it takes does not grow with the repository."""


@dataclass(slots=True)
class Shocks:
    """The belief at one time; `of` makes it, `observe` changes it, `keep` saves it."""

    name: str
    """Under which it is kept."""
    groups: Groups
    bins: Bins
    step: BinStep
    """What has become of tables since the belief was kept."""
    changes: NDArray[np.float32]
    """One per page: changes seen, older ones faded."""
    watched: NDArray[np.float32]
    """One per page: for how long it was watched, counted by what happened to its group."""
    events: NDArray[np.float32]
    """Group by bin: changes thought to have fallen there."""
    expected: NDArray[np.float32]
    """Group by bin: changes that would have been expected of the pages watched there, had nothing happened."""
    group_rate: Floats = field(init=False)
    """One per group, changes a day."""
    site_rate: Floats = field(init=False)
    _since: NDArray[np.float32] = field(init=False)
    """Group by moment: what has happened to the group from then to now, in days of ordinary time."""
    _by_site: NDArray[np.int64] = field(init=False)
    """The groups of site after site."""
    _begins: NDArray[np.int64] = field(init=False)
    """One per site, and one more: where its groups begin in `_by_site`."""

    def __post_init__(self) -> None:
        self._by_site = np.argsort(self.groups.site, kind="stable")
        sites = int(self.groups.site.max(initial=-1)) + 1
        self._begins = np.searchsorted(self.groups.site[self._by_site], np.arange(sites + 1))
        self._settle()
        self._since = np.zeros((len(self.groups), len(self.bins.times)), np.float32)
        for start in range(0, sites, _SITES):
            self._follow(np.arange(start, min(start + _SITES, sites)))

    @classmethod
    def of(cls, book: Book, name: str, label: NDArray[np.int64] | None) -> Shocks:
        """The belief that a book's memory holds under a name, with a bin from the last moment in it to now.

        Pages with the same label are a group.
        """
        groups = Groups.by(book, name, label)
        before = Bins(book.memory.get(f"{name}.times", np.array([_beginning(book) / DAY])))
        bins, step = before.up_to(book.now / DAY)
        faded = (1 - FORGET) ** (bins.times[-1] - before.times[-1])
        changes, watched = (book.kept(f"{name}.{part}", 0.0, np.float32) for part in ("changes", "watched"))
        changes *= faded
        watched *= faded
        return cls(
            name=name,
            groups=groups,
            bins=bins,
            step=step,
            changes=changes,
            watched=watched,
            events=step(book.memory.get(f"{name}.events"), len(groups)),
            expected=step(book.memory.get(f"{name}.expected"), len(groups)),
        )

    def keep(self, book: Book) -> None:
        """Save the belief in the book's memory."""
        self.groups.keep(book, self.name)
        kept: dict[str, AnyFloats] = {
            "times": self.bins.times,
            "changes": self.changes,
            "watched": self.watched,
            "events": self.events,
            "expected": self.expected,
        }
        book.memory |= {f"{self.name}.{part}": column for part, column in kept.items()}

    def chance(self, pages: Pages, place: Floats) -> Floats:
        """The chances of pages of having changed since places in time."""
        a, b = self.rate(pages)
        return gamma(a, b, self.exposure(pages, place))

    def rate(self, pages: Pages) -> tuple[Floats, Floats]:
        """The pages' rates are thought to be Gamma(a, b), changes a day."""
        a = self.changes[pages] + np.float64(PAGE_WEIGHT)
        b = self.watched[pages] + PAGE_WEIGHT / self.group_rate[self.groups.of[pages]]
        return a, b

    def latest(self, groups: Pages) -> Floats:
        """How much happened to groups in the last bin; 1 is what is usual."""
        if not len(self.bins):
            return np.ones(len(groups))
        last: Floats = self._since[groups, -2] / (self.bins.times[-1] - self.bins.times[-2])
        return last

    def a_week_ago(self) -> Floats:
        """One per group: how much happened to it in the bins that hold this moment one and two weeks ago."""
        moments = self.bins.times
        bins = np.searchsorted(moments, moments[-1] - np.array([7.0, 14.0]), side="left")
        bins = bins[(bins > 0) & (bins < len(moments) - 1)]
        if not len(bins):
            return np.ones(len(self.groups))
        shock = (self._since[:, bins - 1] - self._since[:, bins]) / (moments[bins] - moments[bins - 1])
        return np.asarray(shock.mean(axis=1))

    def exposure(self, pages: Pages, place: Floats) -> Floats:
        """What has happened to the pages' groups since a place in time, in days of ordinary time."""
        group = self.groups.of[pages]
        low = place.astype(np.int64)
        before = self._since[group, low]
        after = self._since[group, np.minimum(low + 1, self._since.shape[1] - 1)]
        passed: Floats = before - (place - low) * (before - after)
        return passed

    def observe(self, pages: Pages, place: Floats, changed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Visits now: whether pages have changed since the places in time of the visits before. Each page once.

        Gives the groups of which something else is believed now.
        """
        if not len(pages) or not len(self.bins):
            return np.zeros(0, np.int64)
        a, b = self.rate(pages)
        rate = a / b
        passed = np.maximum(self.exposure(pages, place), 1e-9)
        # The expected number of changes, given that there was one at least.
        per_day = np.where(changed, rate / -np.expm1(-np.maximum(rate * passed, 1e-12)), 0.0)
        self.watched[pages] += passed
        self.changes[pages] += per_day * passed
        touched = unique(self.groups.of[pages])
        row = np.searchsorted(touched, self.groups.of[pages])
        for start in range(0, len(touched), _GROUPS):
            here = slice(None) if len(touched) <= _GROUPS else (row >= start) & (row < start + _GROUPS)
            self._spread(touched[start : start + _GROUPS], row[here] - start, place[here], rate[here], per_day[here])
        sites = unique(self.groups.site[touched]).astype(np.int64)
        return np.concatenate([self._follow(sites[i : i + _SITES]) for i in range(0, len(sites), _SITES)])

    def _spread(self, touched: Pages, row: Pages, place: Floats, rate: Floats, per_day: Floats) -> None:
        """Spread what visits say of some groups over the bins; `row` is where among them each visit's group is."""
        moments = self._since.shape[1]
        low = place.astype(np.int64)
        rest = 1 - (place - low)  # of the bin in which the last visit lies
        cells = np.concatenate((row * moments + low, row * moments + np.minimum(low + 1, moments - 1)))
        spread = np.empty((2, len(touched), moments))
        for layer, amount in enumerate((rate, per_day)):
            begun = np.bincount(cells, np.concatenate((amount * rest, amount * (1 - rest))), len(touched) * moments)
            begun.reshape(len(touched), moments).cumsum(axis=1, out=spread[layer])
        spread = spread[:, :, :-1]
        happened = self._since[touched]
        self.expected[touched] += spread[0] * self.bins.days
        self.events[touched] += spread[1] * (happened[:, :-1] - happened[:, 1:])

    def _settle(self) -> None:
        """Rates from what was seen: each level leans on the one above it as far as it has seen little itself."""
        of_site = self.groups.site
        changes, watched = (sums(self.groups.of, column, len(self.groups)) for column in (self.changes, self.watched))
        sites = len(self._begins) - 1
        self.site_rate = (np.bincount(of_site, changes, sites) + 1) / (
            np.bincount(of_site, watched, sites) + 1 / FIRST_RATE
        )
        self.group_rate = (changes + 1) / (watched + 1 / self.site_rate[of_site])

    def _follow(self, sites: NDArray[np.int64]) -> NDArray[np.int64]:
        """What has happened to the groups of sites, from the sums; gives the groups."""
        first, many = self._begins[sites], self._begins[sites + 1] - self._begins[sites]
        sites, first, many = sites[many > 0], first[many > 0], many[many > 0]
        begins = np.cumsum(many) - many
        groups: NDArray[np.int64] = self._by_site[np.repeat(first - begins, many) + np.arange(many.sum())]
        days = self.bins.days
        if not len(groups) or not len(days):
            return groups
        events, expected = self.events[groups], self.expected[groups]
        ours = (SHOCK_WEIGHT * self.site_rate[sites])[:, None] * days
        of_site = (ours + np.add.reduceat(events, begins)) / (ours + np.add.reduceat(expected, begins))
        own = (SHOCK_WEIGHT * self.group_rate[groups])[:, None] * days
        shock = (own * np.repeat(of_site, many, axis=0) + events) / (own + expected)
        self._since[groups, :-1] = np.cumsum((shock * days)[:, ::-1], axis=1)[:, ::-1]
        return groups


def gamma(a: Floats, b: Floats, passed: Floats) -> Floats:
    """The chance of any change in so much time, if the rate is Gamma(a, b) distributed.

    >>> gamma(np.array([1.0]), np.array([2.0]), np.array([2.0])).tolist()
    [0.5]
    """
    chance: Floats = 1 - (b / (b + passed)) ** a
    return chance


def _beginning(book: Book) -> float:
    """Where the first bin begins: at the first visit that is known."""
    seen = book.last_visit[np.isfinite(book.last_visit)]
    return float(seen.min()) if len(seen) else book.now
