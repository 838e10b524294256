"""Daily and weekly rhythm: events are drawn uniformly in "working time" and then mapped to the clock.

Working time runs fast in office hours and slowly at night and at the weekend; over a whole week it runs as fast as the
clock. A Poisson process in working time has a daily and weekly rhythm on the clock.
"""

from __future__ import annotations

import numpy as np

from recrawl.columns import Floats, Ints

HOUR = 3600
DAY = 86400
_MONDAY = 4 * DAY  # 1 January 1970 was a Thursday


def _week() -> Floats:
    """Return the relative activity of each hour of the week, from Monday 0:00 UTC; mean 1."""
    day = np.full(24, 0.15)
    day[6:9] = 1.0
    day[9:18] = 2.4
    day[18:23] = 0.9
    week = np.concatenate([day] * 5 + [day * 0.35, day * 0.45])
    busy: Floats = week / week.mean()
    return busy


class Rhythm:
    """The clock from `start` to `end` and its working time, both in seconds.

    >>> even = Rhythm(0.0, 0, 7 * DAY)
    >>> int(even.clock(even.work(np.array([5000.0])))[0])
    5000
    """

    def __init__(self, strength: float, start: int, end: int) -> None:
        edges = np.arange(start - start % HOUR, end + HOUR, HOUR, dtype=np.int64)
        pace = (1 - strength) + strength * _week()[(edges[:-1] - _MONDAY) // HOUR % 168]
        # A pace of 0 could not be inverted.
        self._work = np.concatenate(([0.0], np.cumsum(np.maximum(pace, 1e-6) * HOUR)))
        self._edges = edges.astype(np.float64)
        self.start = start
        self.end = end

    def work(self, clock: Floats | Ints) -> Floats:
        """Convert clock time to working time."""
        return np.interp(clock, self._edges, self._work)

    def clock(self, work: Floats) -> Ints:
        """Convert working time to whole seconds of the clock."""
        return np.interp(work, self._work, self._edges).astype(np.int64)

    def draw(self, rng: np.random.Generator, per_day: float) -> Ints:
        """Draw the sorted times of one Poisson process over the whole window."""
        low, high = self.work(np.array([self.start, self.end], dtype=np.int64))
        count = rng.poisson(per_day * (high - low) / DAY)
        return np.sort(self.clock(rng.uniform(low, high, count)))

    def draw_each(self, rng: np.random.Generator, per_day: Floats, birth: Ints, death: Ints) -> tuple[Ints, Ints]:
        """Draw one process per page during its life; return the pages and times, unsorted."""
        low, high = self.work(birth), self.work(np.minimum(death, self.end))
        counts = rng.poisson(per_day * np.maximum(high - low, 0) / DAY)
        who = np.repeat(np.arange(len(per_day)), counts)
        return who, self.clock(low[who] + rng.random(len(who)) * (high - low)[who])
