"""The dates that a served sitemap names, true or not: as in replays (see `lab.replays.simulated_hints`)."""

from __future__ import annotations

import numpy as np

from recrawl.columns import Ints
from recrawl.lab.formats.archive import Archive
from recrawl.lab.replays.simulated_hints import parse_source

_DAY = 86400
_NEVER = -1
_SEED = 11

Rows = Ints


class Dates:
    """Dates of pages at a time; `_NEVER` for a page that has none."""

    def __init__(self, archive: Archive, how: str) -> None:
        self._archive = archive
        self.how, self._numbers = parse_source(f"sitemap:{how}")
        self.moves = self.how in ("lying", "random", "future", "late", "noisy")
        """Whether dates change although no page does."""
        self._page, self._time = self._told() if self.how == "noisy" else (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def of(self, rows: Rows, now: float) -> list[str]:
        """The dates of pages in these rows, as sitemaps write them; empty where there is none."""
        times = self._seconds(rows, int(now))
        stamps = np.datetime_as_string(np.maximum(times, 0).astype("datetime64[s]"))
        return [f"{stamp}Z" if time >= 0 else "" for stamp, time in zip(stamps.tolist(), times.tolist(), strict=True)]

    def _seconds(self, rows: Rows, now: int) -> Ints:
        archive, many = self._archive, len(rows)
        if self.how == "honest":
            return archive.times[rows].astype(np.int64)
        if self.how == "late":
            return self._as_of(rows, now - int(self._numbers[0] * _DAY))
        if self.how == "noisy":
            return self._noisy(rows, now)
        if self.how == "random":
            rng = np.random.default_rng([_SEED, now])
            return rng.integers(int(archive.start), max(now, int(archive.start) + 1), many)
        constant = {"lying": now, "future": now + 365 * _DAY, "silent": int(archive.start), "never": _NEVER}
        return np.full(many, constant[self.how], np.int64)

    def _as_of(self, rows: Rows, then: int) -> Ints:
        """The dates as they were at an earlier time."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        before = self._archive.rows_at(then)[pages]
        return np.where(before >= 0, self._archive.times[np.maximum(before, 0)], _NEVER).astype(np.int64)

    def _noisy(self, rows: Rows, now: int) -> Ints:
        """The last thing that was told of each page, at its beginning if nothing was."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        date = self._archive.times[self._archive.first[:-1]].astype(np.int64)
        told = self._time <= now
        date[self._page[told]] = self._time[told]  # in order of time: of several the last stands
        return date[pages]

    def _told(self) -> tuple[Rows, Ints]:
        """What a noisy sitemap tells of: some of the changes, and false ones on any page of the same sites."""
        archive, (precision, recall) = self._archive, self._numbers
        rng = np.random.default_rng(_SEED)
        later = np.ones(len(archive.times), bool)
        later[archive.first[:-1]] = False
        true = np.flatnonzero(later & (rng.random(len(later)) < recall))
        page, time = archive.page_of[true], archive.times[true].astype(np.int64)
        false = rng.poisson(len(page) * (1 - precision) / precision)
        page = np.concatenate((page, rng.integers(0, len(archive.first) - 1, false)))
        time = np.concatenate((time, rng.integers(int(archive.start), int(archive.end) + 1, false)))
        order = np.argsort(time, kind="stable")
        return page[order], time[order]
