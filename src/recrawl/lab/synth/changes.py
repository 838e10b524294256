"""When pages are born, change and are removed: the random part of a site's plan.

For a daily and weekly rhythm, events are drawn uniformly in "working time" and then mapped to the clock. Working time
runs fast in office hours and slowly at night and at the weekend; over a whole week it runs as fast as the clock. A
Poisson process in working time has a daily and weekly rhythm on the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.lab.synth.site_kinds import Kind
from recrawl.lab.synth.world import SyntheticWorld

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


NEVER = 1 << 60
"""Later than the end of any world."""

_YEAR = 365.25
_MOST_A_DAY = 24.0
_EARLY = 3 * HOUR


@dataclass(frozen=True, slots=True)
class Dice:
    """The inputs of every draw."""

    world: SyntheticWorld
    kind: Kind
    rhythm: Rhythm
    rng: np.random.Generator


def draw_births(dice: Dice) -> Ints:
    """Draw births of articles; busy sites publish several at once, which limits the changes of lists."""
    world, rng = dice.world, dice.rng
    per_day = world.births * dice.kind.birth * world.pages
    times = dice.rhythm.draw(rng, per_day)
    if per_day > world.publications:
        moments = np.unique(dice.rhythm.draw(rng, world.publications))
        times = np.sort(rng.choice(moments, len(times))) if len(moments) else times[:0]
    return times[(times > world.start) & (times < world.end)]


def draw_deaths(dice: Dice, birth: Ints) -> Ints:
    """Draw removals of pages: a constant probability per day, but none in the first hour."""
    life = dice.rng.exponential(1.0, len(birth)) * DAY / max(dice.world.removals * dice.kind.removal, 1e-12)
    death = birth + np.clip(life, HOUR, 1e15).astype(np.int64)
    return np.where(death < dice.world.end, death, NEVER)


def draw_rates(dice: Dice, folder: Ints, lists: Flags) -> Floats:
    """Draw changes per day of each page's own text; rates correlate within a directory (T §6.2)."""
    world, rng = dice.world, dice.rng
    mean = world.change_rate * dice.kind.change
    shape = world.rate_shape
    by_folder = rng.gamma(shape, 1 / shape, int(folder.max()) + 1)
    rates: Floats = np.minimum(mean * by_folder[folder] * rng.gamma(shape, 1 / shape, len(folder)), _MOST_A_DAY)
    rates[rng.random(len(rates)) < world.never] = 0
    # Lists change with their entries; their introductions rarely change.
    rates[lists] = mean / 4
    return rates


def draw_changes(dice: Dice, rates: Floats, folder: Ints, birth: Ints, death: Ints) -> tuple[Ints, Ints]:
    """Draw all changes of pages' own text; return pages and times, sorted by both."""
    world, rng = dice.world, dice.rng
    drawn = [dice.rhythm.draw_each(rng, rates, birth, death)]
    # New articles are corrected in their first hours.
    young = np.flatnonzero((birth > world.start) & (rates > 0))
    early = np.repeat(young, rng.poisson(dice.kind.early, len(young)))
    drawn.append((early, birth[early] + 60 + rng.exponential(_EARLY, len(early)).astype(np.int64)))
    for f in range(int(folder.max()) + 1):
        times = dice.rhythm.draw(rng, world.folder_updates / _YEAR)
        mine = np.flatnonzero((folder == f) & (rates > 0)) if len(times) else np.zeros(0, dtype=np.int64)
        for t in times.tolist():
            touched = mine[rng.random(len(mine)) < 0.5]
            drawn.append((touched, np.full(len(touched), t)))
    who = np.concatenate([pages for pages, _ in drawn])
    when = np.concatenate([times for _, times in drawn])
    alive = (when > birth[who]) & (when < np.minimum(death[who], world.end))
    who, when = who[alive], when[alive]
    order = np.lexsort((when, who))
    who, when = who[order], when[order]
    fresh = np.diff(who, prepend=-1).astype(bool) | np.diff(when, prepend=-1).astype(bool)
    return who[fresh], when[fresh]
