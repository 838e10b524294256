"""The shock model: a change rate for every page, and a common shock for every group of pages.

Page i of group g changes at the rate λ_i · m_g(t): its own rate, times the activity of its group, which is low most of
the time and very high now and then (a rebuild, a new edition). Time is divided into bins at cycles. Both factors have
nested Gamma priors: all sites → site → group → page for rates, 1 → site → group for shocks. Pages of a group differ in
their prior rates by what is known of them from their first download (`page_prior`).

A visit shows whether the page has changed since its previous visit. A change is distributed over the bins in between in
proportion to their expected activity (one step of expectation maximisation), which updates the group's bins and the
page's rate. All of it is sums: the cost of an update depends on the pages visited, not on all pages.

    shocks = Shocks.of(book, name, label)      a copy of the policy's memory, with a bin up to now
    place = shocks.bins.place(days)            the positions of the pages' last visits among the bins
    shocks.exposure(pages, place)              the activity of their groups since then
    shocks.observe(pages, place, changed)
    shocks.keep(book)                          store the state in the memory
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Float32s, Floats, Int32s, Ints, unique
from recrawl.learn.chunks import AnyFloats, AnyPages, group_sums
from recrawl.learn.shocks.page_prior import WEIGHTS, PagePrior

# --------------------------------------------------------------------------------------------------------------------
# Time divided into bins at cycles; older bins are merged, so that tables by bin stay small.
#
# Sums by group and bin are tables. `Bins.up_to` returns the bins extended to now and the `BinStep` that converts a
# table to them.


MAX_BINS = 160
"""When there are more bins, the older half is merged in pairs."""


@dataclass(frozen=True, slots=True)
class Bins:
    """Consecutive bins of time."""

    times: Floats
    """The boundaries of the bins in days, ascending."""

    def __len__(self) -> int:
        return len(self.times) - 1

    @property
    def days(self) -> Floats:
        """One per bin: its length."""
        return self.times[1:] - self.times[:-1]

    def place(self, at: Floats) -> Floats:
        """Convert times to positions among the bins: 2.5 is the middle of the third bin.

        >>> Bins(np.array([0.0, 1.0, 3.0])).place(np.array([0.5, 2.0, 9.0])).tolist()
        [0.5, 1.5, 2.0]
        """
        return np.interp(at, self.times, np.arange(len(self.times)))

    def up_to(self, now: float) -> tuple[Bins, BinStep]:
        """Add a bin up to now, unless no time has passed or the clock has stepped back.

        >>> bins, step = Bins(np.array([0.0, 1.0])).up_to(2.0)
        >>> bins.times.tolist(), step(np.array([[7.0]]), groups=2).tolist()
        ([0.0, 1.0, 2.0], [[7.0, 0.0], [0.0, 0.0]])
        """
        if now <= self.times[-1]:
            return self, BinStep(len(self), 0, merged=False)
        times = np.append(self.times, now)
        if len(times) - 1 <= MAX_BINS:
            return Bins(times), BinStep(len(self), 1, merged=False)
        old = MAX_BINS // 2
        return Bins(np.concatenate((times[:old:2], times[old:]))), BinStep(len(self), 1, merged=True)


@dataclass(frozen=True, slots=True)
class BinStep:
    """The conversion of a table of groups by bins to later bins."""

    bins: int
    """Number of bins before."""
    more: int
    """Bins added at the end."""
    merged: bool
    """Whether the older half is merged in pairs."""

    def __call__(self, table: NDArray[Any] | None, groups: int) -> Float32s:
        """Return the table with rows for new groups, a column for a new bin, and old bins merged."""
        wide = np.zeros((groups, self.bins + self.more), np.float32)
        if table is not None:
            wide[: len(table), : self.bins] = table
        if not self.merged:
            return wide
        old = MAX_BINS // 2
        return np.hstack((wide[:, :old].reshape(groups, old // 2, 2).sum(axis=2), wide[:, old:]))


# --------------------------------------------------------------------------------------------------------------------
# Groups of pages, and how many visits to each group found a change in each bin of time.
#
# A group is the pages of a site with the same URL template or directory, or all pages of the site. The counts give the
# share of visits to a page's group that found a change today, recently, and since the page's own last visit.


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


# --------------------------------------------------------------------------------------------------------------------


FIRST_RATE = 0.02
"""The prior change rate, in changes per day."""
PAGE_WEIGHT = 0.25
"""The weight of a group's rate against a page's own, in changes."""
SHOCK_WEIGHT = 3.0
"""The weight of the site's shock against the group's own visits, in pages."""
FORGET = 0.02
"""The share of the evidence on rates that decays per day."""
_SURE = 0.02
"""Probabilities are limited to this, and 1 minus this, so that no single visit decides on the weight of priors."""
_SITES_AT_ONCE = 1 << 9
_GROUPS_AT_ONCE = 1 << 12
"""Sites and groups that are summed at once, so that temporary memory does not grow with the repository."""


@dataclass(slots=True)
class Shocks:
    """The state of the model at one time: `of` loads it, `observe` updates it, `keep` stores it."""

    name: str
    """Prefix of its memory keys."""
    groups: Groups
    bins: Bins
    step: BinStep
    """Converts stored tables to the current bins."""
    changes: Float32s
    """One per page: changes observed, decayed."""
    watched: Float32s
    """One per page: its observation time, in days of usual activity, decayed."""
    events: Float32s
    """Group by bin: changes attributed to the bin."""
    expected: Float32s
    """Group by bin: changes expected of the pages observed in it at usual activity."""
    prior: PagePrior
    group_rate: Floats = field(init=False)
    """One per group: changes per day and page."""
    site_rate: Floats = field(init=False)
    """One per site: changes per day and page."""
    _since: Float32s = field(init=False)
    """Group by bin boundary: the group's activity from then to now, in days of usual activity."""
    _by_site: Ints = field(init=False)
    """The groups, ordered by site."""
    _first: Ints = field(init=False)
    """One per site, and one more: where its groups begin in `_by_site`."""

    def __post_init__(self) -> None:
        self._by_site = np.argsort(self.groups.site, kind="stable")
        sites = int(self.groups.site.max(initial=-1)) + 1
        self._first = np.searchsorted(self.groups.site[self._by_site], np.arange(sites + 1))
        self.site_rate, self.group_rate = self._rates(group_sums(self.groups.of, self.changes, len(self.groups)))
        self._since = np.zeros((len(self.groups), len(self.bins.times)), np.float32)
        for start in range(0, sites, _SITES_AT_ONCE):
            self._update_shocks(np.arange(start, min(start + _SITES_AT_ONCE, sites)))

    @classmethod
    def of(cls, book: Book, name: str, label: Ints | None, *, prior: bool = True) -> Shocks:
        """Load the state under a name from the book's memory and add a bin up to now; equal labels make a group."""
        groups = Groups.by(book, name, label)
        before = Bins(book.memory.get(f"{name}.times", np.array([_first_visit(book) / DAY])))
        bins, step = before.up_to(book.now / DAY)
        decay = (1 - FORGET) ** (bins.times[-1] - before.times[-1])
        changes, watched = (book.kept(f"{name}.{part}", 0.0, np.float32) for part in ("changes", "watched"))
        changes *= decay
        watched *= decay
        return cls(
            name=name,
            groups=groups,
            bins=bins,
            step=step,
            changes=changes,
            watched=watched,
            events=step(book.memory.get(f"{name}.events"), len(groups)),
            expected=step(book.memory.get(f"{name}.expected"), len(groups)),
            prior=PagePrior.of(book, used=prior),
        )

    def keep(self, book: Book) -> None:
        """Store the state in the book's memory."""
        self.groups.keep(book, self.name)
        kept: dict[str, AnyFloats] = {
            "times": self.bins.times,
            "changes": self.changes,
            "watched": self.watched,
            "events": self.events,
            "expected": self.expected,
        }
        book.memory |= {f"{self.name}.{part}": column for part, column in kept.items()}

    def predict(self, pages: AnyPages, place: Floats) -> Floats:
        """Return the probability that each page has changed since a position in time."""
        a, b = self.rate(pages)
        return gamma_probability(a, b, self.exposure(pages, place))

    def rate(self, pages: AnyPages) -> tuple[Floats, Floats]:
        """Return the parameters a and b of the pages' Gamma distributed rates, in changes per day."""
        a = self.changes[pages] + np.float64(PAGE_WEIGHT)
        b = self.watched[pages] + PAGE_WEIGHT / (self.group_rate[self.groups.of[pages]] * self.prior.factor(pages))
        return a, b

    def latest(self, groups: AnyPages) -> Floats:
        """Return the activity of groups in the last bin; 1 is usual."""
        if not len(self.bins):
            return np.ones(len(groups))
        last: Floats = self._since[groups, -2] / (self.bins.times[-1] - self.bins.times[-2])
        return last

    def weeks_ago(self) -> Floats:
        """Return the mean activity of each group in the bins one and two weeks before now."""
        times = self.bins.times
        bins = np.searchsorted(times, times[-1] - np.array([7.0, 14.0]), side="left")
        bins = bins[(bins > 0) & (bins < len(times) - 1)]
        if not len(bins):
            return np.ones(len(self.groups))
        shock = (self._since[:, bins - 1] - self._since[:, bins]) / (times[bins] - times[bins - 1])
        return np.asarray(shock.mean(axis=1))

    def exposure(self, pages: AnyPages, place: Floats) -> Floats:
        """Return the activity of pages since a position in time, by group and age, in days of usual activity."""
        return self._group_exposure(pages, place) * self.prior.age_factor(pages)

    def _group_exposure(self, pages: AnyPages, place: Floats) -> Floats:
        group = self.groups.of[pages]
        low = place.astype(np.int64)
        before = self._since[group, low]
        after = self._since[group, np.minimum(low + 1, self._since.shape[1] - 1)]
        exposure: Floats = before - (place - low) * (before - after)
        return exposure

    def observe(self, pages: AnyPages, place: Floats, changed: Flags) -> Ints:
        """Update with visits now, each page once; `place` is the position of each page's previous visit.

        Returns the groups whose shocks have changed.
        """
        if not len(pages) or not len(self.bins):
            return np.zeros(0, np.int64)
        a, b = self.rate(pages)
        rate = a / b
        young = self.prior.age_factor(pages)
        exposure = np.maximum(self._group_exposure(pages, place) * young, 1e-9)
        # The expected number of changes, given that there was at least one.
        per_day = np.where(changed, rate / -np.expm1(-np.maximum(rate * exposure, 1e-12)), 0.0)
        self.watched[pages] += exposure
        self.changes[pages] += per_day * exposure
        rate, per_day = rate * young, per_day * young  # per day of the group's usual activity
        touched = unique(self.groups.of[pages])
        row = np.searchsorted(touched, self.groups.of[pages])
        for start in range(0, len(touched), _GROUPS_AT_ONCE):
            end = start + _GROUPS_AT_ONCE
            here = slice(None) if len(touched) <= _GROUPS_AT_ONCE else (row >= start) & (row < end)
            self._distribute(touched[start:end], row[here] - start, place[here], rate[here], per_day[here])
        sites = unique(self.groups.site[touched]).astype(np.int64)
        batches = range(0, len(sites), _SITES_AT_ONCE)
        return np.concatenate([self._update_shocks(sites[i : i + _SITES_AT_ONCE]) for i in batches])

    def _distribute(self, touched: AnyPages, row: AnyPages, place: Floats, rate: Floats, per_day: Floats) -> None:
        """Distribute the visits of groups over the bins; `row` is the position of each visit's group in `touched`."""
        times = self._since.shape[1]
        low = place.astype(np.int64)
        rest = 1 - (place - low)  # the share of the bin after the previous visit
        cells = np.concatenate((row * times + low, row * times + np.minimum(low + 1, times - 1)))
        spread = np.empty((2, len(touched), times))
        for layer, amount in enumerate((rate, per_day)):
            begun = np.bincount(cells, np.concatenate((amount * rest, amount * (1 - rest))), len(touched) * times)
            begun.reshape(len(touched), times).cumsum(axis=1, out=spread[layer])
        spread = spread[:, :, :-1]
        since = self._since[touched]
        self.expected[touched] += spread[0] * self.bins.days
        self.events[touched] += spread[1] * (since[:, :-1] - since[:, 1:])

    def score_prior(self, pages: AnyPages, place: Floats, changed: Flags) -> None:
        """Compare the weights of the prior by what visits found that the model has not observed yet."""
        if not len(self.prior.logs) or not len(pages):
            return
        a, exposure = self.changes[pages] + np.float64(PAGE_WEIGHT), self.exposure(pages, place)
        logs = np.empty((len(pages), len(WEIGHTS)))
        changes = group_sums(self.groups.of, self.changes, len(self.groups))
        for column, weight in enumerate(WEIGHTS):
            _, rate = self._rates(changes, weight)
            b = self.watched[pages] + PAGE_WEIGHT / (rate[self.groups.of[pages]] * self.prior.factor(pages, weight))
            probability = np.clip(gamma_probability(a, b, exposure), _SURE, 1 - _SURE)
            logs[:, column] = np.log(np.where(changed, probability, 1 - probability))
        self.prior.add(pages, logs)

    def _rates(self, changes: Floats, weight: float | None = None) -> tuple[Floats, Floats]:
        """Return the rates of sites and groups; the rate of the level above is the prior mean."""
        site = self.groups.site
        watched = group_sums(
            self.groups.of, lambda rows: self.watched[rows] * self.prior.factor(rows, weight), len(self.groups)
        )
        sites = len(self._first) - 1
        site_rate = (np.bincount(site, changes, sites) + 1) / (np.bincount(site, watched, sites) + 1 / FIRST_RATE)
        return site_rate, (changes + 1) / (watched + 1 / site_rate[site])

    def _update_shocks(self, sites: Ints) -> Ints:
        """Compute the activity of the groups of sites from the sums; return the groups."""
        first, count = self._first[sites], self._first[sites + 1] - self._first[sites]
        sites, first, count = sites[count > 0], first[count > 0], count[count > 0]
        starts = np.cumsum(count) - count
        groups: Ints = self._by_site[np.repeat(first - starts, count) + np.arange(count.sum())]
        days = self.bins.days
        if not len(groups) or not len(days):
            return groups
        events, expected = self.events[groups], self.expected[groups]
        site_prior = (SHOCK_WEIGHT * self.site_rate[sites])[:, None] * days
        site_shock = (site_prior + np.add.reduceat(events, starts)) / (site_prior + np.add.reduceat(expected, starts))
        prior = (SHOCK_WEIGHT * self.group_rate[groups])[:, None] * days
        shock = (prior * np.repeat(site_shock, count, axis=0) + events) / (prior + expected)
        self._since[groups, :-1] = np.cumsum((shock * days)[:, ::-1], axis=1)[:, ::-1]
        return groups


def gamma_probability(a: Floats, b: Floats, time: Floats) -> Floats:
    """Return the probability of at least one change within a time if the rate is Gamma(a, b) distributed.

    >>> gamma_probability(np.array([1.0]), np.array([2.0]), np.array([2.0])).tolist()
    [0.5]
    """
    probability: Floats = 1 - (b / (b + time)) ** a
    return probability


def _first_visit(book: Book) -> float:
    """Return the earliest last visit of any page, where the first bin begins; now without visits."""
    visited = book.last_visit[np.isfinite(book.last_visit)]
    return float(visited.min()) if len(visited) else book.now
