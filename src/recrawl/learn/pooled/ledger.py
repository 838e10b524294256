"""What is kept of every page's visits for the `pooled` predictor: sums that fade, counts by weekday, a bit a visit.

    ledger = Ledger.of(site, folder)
    rows = features(ledger, pages, now)      # what is known before the visits (see `pooled_features`)
    ledger.note(pages, at, changed)          # then what they brought

It is a fold over visits, in the lab as live: what is known at a time follows from the visits before it and nothing
else, so a prediction cannot see the future. Its size does not grow with the visits: about 190 bytes a page.

A page that was not visited for k days may have changed on any of them. So a visit tells of the last k days (at most
seven), each counted from the visit's own hour back: of daily visits each tells of one weekday, whole and unmixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.columns import DAY, Flags, Float32s, Floats, Int32s, Ints

HALF_LIVES = np.array([1.0, 3.0, 10.0, 60.0])
"""In days: the sums of a page fade so fast."""
OF_GROUPS = np.array([0, 2])
"""Which of them sites and directories have too."""
LONGEST = 7.0
"""Days without a visit count for no more than this."""
_WEEKLY = 0.9
"""What a weekday's counts keep from week to week."""
_HOURLY = 0.97
HOURS = 4
"""Parts of a day that are told apart."""
_SHORT = 0.75
"""Visits that come sooner after the last, in days, tell of a part of the day."""


@dataclass(slots=True)
class GroupSums:
    """Sites, or directories: the sums of all their pages, each as of the group's own time."""

    of: Ints
    """One per page: its group."""
    time: Floats
    changes: Float32s
    days: Float32s
    """Days that pages were watched, fading as the changes do: their quotient is a rate per page and day."""
    week_changes: Float32s
    week_days: Float32s

    @classmethod
    def blank(cls, of: NDArray[Any]) -> Self:
        """Groups of pages that were never visited."""
        many = int(of.max(initial=-1)) + 1

        def zeros(width: int) -> Float32s:
            return np.zeros((many, width), np.float32)

        return cls(
            of.astype(np.int64),
            np.zeros(many),
            zeros(len(OF_GROUPS)),
            zeros(len(OF_GROUPS)),
            zeros(7),
            zeros(7),
        )

    def note(self, pages: Ints, at: Floats, changed: Float32s, watched: Float32s) -> None:
        """Take in visits of pages."""
        group = self.of[pages]
        then = self.time.copy()
        order = np.argsort(at, kind="stable")  # of the times of one group the last stays
        then[group[order]] = np.maximum(then[group[order]], at[order])
        keep = fade(then - self.time, HALF_LIVES[OF_GROUPS])
        self.changes *= keep
        self.days *= keep
        self.time[:] = then
        many = len(self.time)
        self.changes += np.bincount(group, changed, many).astype(np.float32)[:, None]
        self.days += np.bincount(group, watched, many).astype(np.float32)[:, None]

    def note_weekday(self, pages: Ints, weekday: Ints, share: Float32s) -> None:
        """Take in what visits say of one day each."""
        cell, many = self.of[pages] * 7 + weekday, self.week_days.size
        self.week_changes += np.bincount(cell, share, many).astype(np.float32).reshape(-1, 7)
        self.week_days += np.bincount(cell, minlength=many).astype(np.float32).reshape(-1, 7)


@dataclass(slots=True)
class Ledger:
    """Columns over pages. Times are seconds since 1970, UTC; not a number where something never happened."""

    first: Floats
    last: Floats
    last_change: Floats
    compared: Int32s
    """Visits that could be compared with one before."""
    changed: Int32s
    bits: NDArray[np.uint32]
    """The last 32 compared visits, the newest in the lowest bit: whether they found a change."""
    changes: Float32s
    """Page by half-life: changes found, fading; as of `last`."""
    days: Float32s
    """The same of the days that the visits tell of."""
    week_changes: Float32s
    """Page by weekday, Monday first."""
    week_days: Float32s
    week_last: Float32s
    """What was found the last time that a visit told of this weekday."""
    hour_changes: Float32s
    hour_visits: Float32s
    sites: GroupSums
    folders: GroupSums

    @classmethod
    def of(cls, site: NDArray[Any], folder: NDArray[Any]) -> Self:
        """A ledger of pages that were never visited."""
        pages = len(site)

        def zeros(width: int) -> Float32s:
            return np.zeros((pages, width), np.float32)

        halves = len(HALF_LIVES)
        return cls(
            first=np.full(pages, np.nan),
            last=np.full(pages, np.nan),
            last_change=np.full(pages, np.nan),
            compared=np.zeros(pages, np.int32),
            changed=np.zeros(pages, np.int32),
            bits=np.zeros(pages, np.uint32),
            changes=zeros(halves),
            days=zeros(halves),
            week_changes=zeros(7),
            week_days=zeros(7),
            week_last=np.full((pages, 7), np.nan, np.float32),
            hour_changes=zeros(HOURS),
            hour_visits=zeros(HOURS),
            sites=GroupSums.blank(site),
            folders=GroupSums.blank(folder),
        )

    def __len__(self) -> int:
        return len(self.first)

    def note(self, pages: Ints, at: ArrayLike, changed: Flags) -> None:
        """Take in visits that said something, each page once; what a page's first visit found is not looked at.

        >>> ledger = Ledger.of(np.zeros(2, int), np.zeros(2, int))
        >>> ledger.note(np.array([0, 1]), 0.0, np.array([True, True]))
        >>> ledger.note(np.array([1]), DAY, np.array([True]))
        >>> ledger.compared.tolist(), ledger.changed.tolist(), ledger.bits.tolist(), ledger.sites.changes[0].tolist()
        ([0, 1], [0, 1], [0, 1], [1.0, 1.0])
        """
        when = np.broadcast_to(np.asarray(at, np.float64), len(pages))
        known, found = ~np.isnan(self.last[pages]), changed
        if not known.all():
            self.first[pages[~known]] = self.last[pages[~known]] = when[~known]
            pages, when, found = pages[known], when[known], changed[known]
        if not len(pages):
            return
        gap = np.maximum((when - self.last[pages]) / DAY, 0.0)
        hit, watched = found.astype(np.float32), np.minimum(gap, LONGEST).astype(np.float32)
        self._fade(pages, gap, hit, watched)
        self._note_weekdays(pages, when, gap, hit)
        self._note_hours(pages, when, gap, hit)
        for group in (self.sites, self.folders):
            group.note(pages, when, hit, watched)
        self.compared[pages] += 1
        self.changed[pages] += found
        self.bits[pages] = (self.bits[pages] << np.uint32(1)) | found.astype(np.uint32)
        self.last[pages] = when
        self.last_change[pages[found]] = when[found]

    def _fade(self, pages: Ints, gap: Floats, hit: Float32s, watched: Float32s) -> None:
        keep = fade(gap * DAY, HALF_LIVES)
        self.changes[pages] = self.changes[pages] * keep + hit[:, None]
        self.days[pages] = self.days[pages] * keep + watched[:, None]

    def _note_weekdays(self, pages: Ints, when: Floats, gap: Floats, hit: Float32s) -> None:
        many = days_between(gap)
        for back in range(int(many.max())):
            told = many > back
            page, share = pages[told], np.asarray(hit[told] / many[told], np.float32)
            day = weekday(when[told] - back * DAY)
            self.week_changes[page, day] = self.week_changes[page, day] * np.float32(_WEEKLY) + share
            self.week_days[page, day] = self.week_days[page, day] * np.float32(_WEEKLY) + 1
            self.week_last[page, day] = share
            for group in (self.sites, self.folders):
                group.note_weekday(page, day, share)

    def _note_hours(self, pages: Ints, when: Floats, gap: Floats, hit: Float32s) -> None:
        short = gap < _SHORT
        if not short.any():
            return
        page, part = pages[short], hour(when[short])
        self.hour_changes[page, part] = self.hour_changes[page, part] * np.float32(_HOURLY) + hit[short]
        self.hour_visits[page, part] = self.hour_visits[page, part] * np.float32(_HOURLY) + 1

    # -- as arrays, for a policy's memory -----------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it holds, by name. Which group a page is in is not: the book says so."""
        flat: dict[str, NDArray[Any]] = {}
        for item in fields(self):
            part = getattr(self, item.name)
            if isinstance(part, GroupSums):
                flat |= {f"{item.name}.{inner.name}": getattr(part, inner.name) for inner in fields(part)[1:]}
            else:
                flat[item.name] = part
        return flat

    @classmethod
    def restored(cls, kept: Mapping[str, NDArray[Any]], site: NDArray[Any], folder: NDArray[Any]) -> Self:
        """From arrays that were kept when there were fewer pages, or as many."""
        ledger = cls.of(site, folder)
        for name, column in ledger.arrays().items():
            old = kept[name][: len(column)]
            column[: len(old)] = old
        return ledger


def fade(seconds: Floats, half_lives: Floats) -> Float32s:
    """What is left of a sum after so long; one column a half-life."""
    return np.exp2(seconds[:, None] * (-1.0 / DAY / half_lives)).astype(np.float32)


def weekday(at: Floats) -> Ints:
    """0 for Monday, in UTC.

    >>> weekday(np.array([0.0, 4 * DAY])).tolist()  # 1 January 1970 was a Thursday
    [3, 0]
    """
    day: Ints = (np.floor(at / DAY).astype(np.int64) + 3) % 7
    return day


def hour(at: Floats) -> Ints:
    """Which part of the day."""
    part: Ints = np.floor(at % DAY / DAY * HOURS).astype(np.int64)
    return part


def days_between(gap: Floats) -> Ints:
    """Of how many days a visit tells, given the days since the one before."""
    return np.fmin(np.fmax(np.round(gap), 1.0), LONGEST).astype(np.int64)  # what is not a number counts as one
