"""Visit statistics of every page for the `pooled` predictor: decaying sums, counts by weekday, one bit per visit.

    ledger = Ledger.of(site, folder)
    rows = features(ledger, pages, now)      # what is known before the visits (see `features`)
    ledger.note(pages, at, changed)          # then what the visits found

The ledger is a fold over visits, in the lab as live: its state at a time follows from the visits before it alone, so a
prediction cannot see the future. Its size does not grow with the number of visits: about 190 bytes per page.

A page that was not visited for k days may have changed on any of them. So a visit covers the last k days (at most
seven), counted back from the hour of the visit; each daily visit covers exactly one weekday.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.columns import DAY, Flags, Float32s, Floats, Int32s, Ints

HALF_LIVES = np.array([1.0, 3.0, 10.0, 60.0])
"""Half-lives of a page's decaying sums, in days."""
GROUP_HALF_LIVES = np.array([0, 2])
"""Indices of the half-lives that sites and directories have sums for."""
MAX_DAYS = 7.0
"""A longer gap between visits counts as this many days."""
_WEEKDAY_DECAY = 0.9
"""Factor applied to a weekday's counts at each new observation of it."""
_HOUR_DECAY = 0.97
"""The same for the parts of a day."""
DAY_PARTS = 4
"""Parts into which a day is divided."""
_SHORT_GAP = 0.75
"""Only visits within this many days of the last one count for the parts of the day."""


@dataclass(slots=True)
class GroupSums:
    """Sums over all pages of each site, or of each directory, decayed to the group's own time."""

    of: Ints
    """One per page: its group."""
    time: Floats
    changes: Float32s
    days: Float32s
    """Days of observation, decaying like the changes: changes / days is a rate per page and day."""
    week_changes: Float32s
    week_days: Float32s

    @classmethod
    def blank(cls, of: NDArray[Any]) -> Self:
        """Groups of pages that were never visited."""
        count = int(of.max(initial=-1)) + 1

        def zeros(width: int) -> Float32s:
            return np.zeros((count, width), np.float32)

        return cls(
            of.astype(np.int64),
            np.zeros(count),
            zeros(len(GROUP_HALF_LIVES)),
            zeros(len(GROUP_HALF_LIVES)),
            zeros(7),
            zeros(7),
        )

    def note(self, pages: Ints, at: Floats, changed: Float32s, watched: Float32s) -> None:
        """Add visits of pages."""
        group = self.of[pages]
        then = self.time.copy()
        order = np.argsort(at, kind="stable")  # so that the last visit of a group sets its time
        then[group[order]] = np.maximum(then[group[order]], at[order])
        kept_share = decay(then - self.time, HALF_LIVES[GROUP_HALF_LIVES])
        self.changes *= kept_share
        self.days *= kept_share
        self.time[:] = then
        count = len(self.time)
        self.changes += np.bincount(group, changed, count).astype(np.float32)[:, None]
        self.days += np.bincount(group, watched, count).astype(np.float32)[:, None]

    def note_weekday(self, pages: Ints, weekday: Ints, share: Float32s) -> None:
        """Add one observed day per visit."""
        cell, count = self.of[pages] * 7 + weekday, self.week_days.size
        self.week_changes += np.bincount(cell, share, count).astype(np.float32).reshape(-1, 7)
        self.week_days += np.bincount(cell, minlength=count).astype(np.float32).reshape(-1, 7)


@dataclass(slots=True)
class Ledger:
    """Columns over pages. Times are seconds since 1970, UTC; NaN where an event never happened."""

    first: Floats
    last: Floats
    last_change: Floats
    compared: Int32s
    """Visits that could be compared with an earlier one."""
    changed: Int32s
    bits: NDArray[np.uint32]
    """Whether each of the last 32 compared visits found a change; the newest is the lowest bit."""
    changes: Float32s
    """Page by half-life: changes found, decayed to `last`."""
    days: Float32s
    """Page by half-life: days covered by visits, decayed to `last`."""
    week_changes: Float32s
    """Page by weekday, Monday first."""
    week_days: Float32s
    week_last: Float32s
    """The result of the last visit that covered this weekday."""
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

        half_lives = len(HALF_LIVES)
        return cls(
            first=np.full(pages, np.nan),
            last=np.full(pages, np.nan),
            last_change=np.full(pages, np.nan),
            compared=np.zeros(pages, np.int32),
            changed=np.zeros(pages, np.int32),
            bits=np.zeros(pages, np.uint32),
            changes=zeros(half_lives),
            days=zeros(half_lives),
            week_changes=zeros(7),
            week_days=zeros(7),
            week_last=np.full((pages, 7), np.nan, np.float32),
            hour_changes=zeros(DAY_PARTS),
            hour_visits=zeros(DAY_PARTS),
            sites=GroupSums.blank(site),
            folders=GroupSums.blank(folder),
        )

    def __len__(self) -> int:
        return len(self.first)

    def note(self, pages: Ints, at: ArrayLike, changed: Flags) -> None:
        """Add successful visits, each page at most once; whether a page's first visit found a change is ignored.

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
        hit, watched = found.astype(np.float32), np.minimum(gap, MAX_DAYS).astype(np.float32)
        self._note_sums(pages, gap, hit, watched)
        self._note_weekdays(pages, when, gap, hit)
        self._note_hours(pages, when, gap, hit)
        for group in (self.sites, self.folders):
            group.note(pages, when, hit, watched)
        self.compared[pages] += 1
        self.changed[pages] += found
        self.bits[pages] = (self.bits[pages] << np.uint32(1)) | found.astype(np.uint32)
        self.last[pages] = when
        self.last_change[pages[found]] = when[found]

    def _note_sums(self, pages: Ints, gap: Floats, hit: Float32s, watched: Float32s) -> None:
        kept_share = decay(gap * DAY, HALF_LIVES)
        self.changes[pages] = self.changes[pages] * kept_share + hit[:, None]
        self.days[pages] = self.days[pages] * kept_share + watched[:, None]

    def _note_weekdays(self, pages: Ints, when: Floats, gap: Floats, hit: Float32s) -> None:
        count = covered_days(gap)
        for back in range(int(count.max())):
            covered = count > back
            page, share = pages[covered], np.asarray(hit[covered] / count[covered], np.float32)
            day = weekday(when[covered] - back * DAY)
            self.week_changes[page, day] = self.week_changes[page, day] * np.float32(_WEEKDAY_DECAY) + share
            self.week_days[page, day] = self.week_days[page, day] * np.float32(_WEEKDAY_DECAY) + 1
            self.week_last[page, day] = share
            for group in (self.sites, self.folders):
                group.note_weekday(page, day, share)

    def _note_hours(self, pages: Ints, when: Floats, gap: Floats, hit: Float32s) -> None:
        short = gap < _SHORT_GAP
        if not short.any():
            return
        page, part = pages[short], part_of_day(when[short])
        self.hour_changes[page, part] = self.hour_changes[page, part] * np.float32(_HOUR_DECAY) + hit[short]
        self.hour_visits[page, part] = self.hour_visits[page, part] * np.float32(_HOUR_DECAY) + 1

    # -- storage ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name. The group of each page is left out, since the book has it."""
        flat: dict[str, NDArray[Any]] = {}
        for item in fields(self):
            part = getattr(self, item.name)
            if isinstance(part, GroupSums):
                flat |= {f"{item.name}.{field.name}": getattr(part, field.name) for field in fields(part)[1:]}
            else:
                flat[item.name] = part
        return flat

    @classmethod
    def restored(cls, stored_arrays: Mapping[str, NDArray[Any]], site: NDArray[Any], folder: NDArray[Any]) -> Self:
        """A ledger from the result of `arrays`, stored when there were as many pages or fewer."""
        ledger = cls.of(site, folder)
        for name, column in ledger.arrays().items():
            stored = stored_arrays[name][: len(column)]
            column[: len(stored)] = stored
        return ledger


def decay(seconds: Floats, half_lives: Floats) -> Float32s:
    """The factor by which sums decay over these seconds; one column per half-life."""
    return np.exp2(seconds[:, None] * (-1.0 / DAY / half_lives)).astype(np.float32)


def weekday(at: Floats) -> Ints:
    """0 for Monday, in UTC.

    >>> weekday(np.array([0.0, 4 * DAY])).tolist()  # 1 January 1970 was a Thursday
    [3, 0]
    """
    day: Ints = (np.floor(at / DAY).astype(np.int64) + 3) % 7
    return day


def part_of_day(at: Floats) -> Ints:
    """The index of the part of the day."""
    part: Ints = np.floor(at % DAY / DAY * DAY_PARTS).astype(np.int64)
    return part


def covered_days(gap: Floats) -> Ints:
    """How many days a visit covers, given the days since the visit before."""
    return np.fmin(np.fmax(np.round(gap), 1.0), MAX_DAYS).astype(np.int64)  # NaN counts as one
