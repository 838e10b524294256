"""Dates in served sitemaps, correct or not, of the kinds in `lab.replays.simulated_hints`."""

from __future__ import annotations

import numpy as np

from recrawl.columns import Ints
from recrawl.lab.formats.archive import Archive
from recrawl.lab.replays.simulated_hints import parse_source

_DAY = 86400
_NEVER = -1
_SEED = 11


class Dates:
    """Dates of pages at a time; `_NEVER` for a page without one."""

    def __init__(self, archive: Archive, how: str) -> None:
        self._archive = archive
        self.how, self._numbers = parse_source(f"sitemap:{how}")
        self.moves = self.how in ("lying", "random", "future", "late", "noisy")
        """Whether dates change without a change of a page."""
        self._page, self._time = (
            self._entries() if self.how == "noisy" else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        )

    def of(self, rows: Ints, now: float) -> list[str]:
        """Return the dates of pages in these rows, in the format of sitemaps; empty for none."""
        times = self._seconds(rows, int(now))
        stamps = np.datetime_as_string(np.maximum(times, 0).astype("datetime64[s]"))
        return [f"{stamp}Z" if time >= 0 else "" for stamp, time in zip(stamps.tolist(), times.tolist(), strict=True)]

    def _seconds(self, rows: Ints, now: int) -> Ints:
        archive, count = self._archive, len(rows)
        if self.how == "honest":
            return archive.times[rows].astype(np.int64)
        if self.how == "late":
            return self._as_of(rows, now - int(self._numbers[0] * _DAY))
        if self.how == "noisy":
            return self._noisy(rows, now)
        if self.how == "random":
            rng = np.random.default_rng([_SEED, now])
            return rng.integers(int(archive.start), max(now, int(archive.start) + 1), count)
        constant = {"lying": now, "future": now + 365 * _DAY, "silent": int(archive.start), "never": _NEVER}
        return np.full(count, constant[self.how], np.int64)

    def _as_of(self, rows: Ints, then: int) -> Ints:
        """Return the dates as they were at an earlier time."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        before = self._archive.rows_at(then)[pages]
        return np.where(before >= 0, self._archive.times[np.maximum(before, 0)], _NEVER).astype(np.int64)

    def _noisy(self, rows: Ints, now: int) -> Ints:
        """Return the last listed date of each page, its first row's if none was listed."""
        pages = np.searchsorted(self._archive.first, rows, side="right") - 1
        date = self._archive.times[self._archive.first[:-1]].astype(np.int64)
        listed = self._time <= now
        date[self._page[listed]] = self._time[listed]  # in order of time: the last assignment is kept
        return date[pages]

    def _entries(self) -> tuple[Ints, Ints]:
        """Return the entries of a noisy sitemap: some of the changes, and wrong dates of any pages."""
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
