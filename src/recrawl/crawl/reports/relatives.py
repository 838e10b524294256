"""Pages whose changes go with those of a page, or precede them, from the visits of its site.

Time is divided into steps as long as the page's median visit interval. In each step a page was seen changed, seen
unchanged, or not seen. The weight of a relative is the correlation of its changes with those of the page some steps
later, over the steps in which both were seen; it must exceed what the best of that many pages reaches by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import HOUR, Flags, Float32s, Floats, Ints, median
from recrawl.crawl.reports.predictions import Visits

LAGS = 8
"""Lags that are tried, from 0 steps."""
_MIN_STEP = HOUR
_MAX_STEPS = 400
_MAX_PAGES = 3000
_MIN_COMMON = 6
"""Minimum number of steps in which both were seen."""

Grid = Float32s
"""Page by step: 1 changed, 0 unchanged, NaN not seen."""


@dataclass(frozen=True, slots=True)
class Relative:
    """A page whose changes predict those of another."""

    page: int
    weight: float
    """The correlation, up to 1."""
    lag: float
    """Seconds by which its changes precede."""
    together: int
    """Steps in which both changed, `lag` apart."""
    seen: int
    """Steps in which both were seen."""
    since: bool
    """Whether it has changed since the page's last visit."""


def relatives_of(visits: Visits, page: int, limit: int = 5) -> list[Relative]:
    """The strongest relatives, strongest first; none if the page's own history is too short."""
    mine = visits[visits["page"] == page]
    if len(mine) < _MIN_COMMON + 1:
        return []
    step = max(_MIN_STEP, median(np.diff(mine["at"])))
    numbers, grid = _grid(visits, page, float(mine["at"][-1]), step)
    own = grid[np.searchsorted(numbers, page)]
    changed = ~np.isnan(own) & (own > 0)
    if not 0 < changed.sum() < np.count_nonzero(~np.isnan(own)):
        return []  # it always changes, or never: no other page can add to that
    found = [_compared(own, grid, lag) for lag in range(min(LAGS, grid.shape[1] - 1))]
    weight = np.array([part[0] for part in found])
    weight[:, numbers == page] = -np.inf
    best = weight.argmax(axis=0)
    top = np.argsort(-weight.max(axis=0), kind="stable")[:limit]
    later = visits["page"][(visits["at"] > mine["at"][-1]) & visits["changed"]]
    return [
        Relative(
            page=int(numbers[k]),
            weight=float(weight[best[k], k]),
            lag=float(best[k] * step),
            together=int(found[best[k]][1][k]),
            seen=int(found[best[k]][2][k]),
            since=bool((later == numbers[k]).any()),
        )
        for k in top.tolist()
        if weight[best[k], k] > 0
    ]


def _grid(visits: Visits, page: int, end: float, step: float) -> tuple[Ints, Grid]:
    """Pages, sorted, including the page itself, and what was seen of them in each step up to `end`."""
    first = _first_visits(visits)
    # Rounded: visits shortly before or after the page, in the same cycle, belong to its step.
    back = np.round((end - visits["at"]) / step).astype(np.int64)
    use = ~first & (back >= 0) & (back < _MAX_STEPS)
    names, counts = np.unique(visits["page"][use & visits["changed"]], return_counts=True)
    numbers = np.union1d(names[np.argsort(-counts, kind="stable")][:_MAX_PAGES], [page])
    use &= np.isin(visits["page"], numbers)
    grid = np.full((len(numbers), int(back[use].max(initial=0)) + 1), np.nan, np.float32)
    row, column = np.searchsorted(numbers, visits["page"][use]), grid.shape[1] - 1 - back[use]
    grid[row, column] = 0.0
    hit = visits["changed"][use]
    grid[row[hit], column[hit]] = 1.0
    return numbers, grid


def _first_visits(visits: Visits) -> Flags:
    """Marks first visits, which are not changes."""
    first = np.zeros(len(visits), np.bool_)
    first[np.unique(visits["page"], return_index=True)[1]] = True
    return first


def _compared(own: Float32s, grid: Grid, lag: int) -> tuple[Floats, Ints, Ints]:
    """For each page: the correlation beyond chance of its steps with the page's own `lag` later, 0 where there is
    none; steps in which both changed; steps in which both were seen.
    """
    later = own[lag:]
    before = grid[:, : grid.shape[1] - lag]
    both = ~np.isnan(before) & ~np.isnan(later)
    seen = both.sum(axis=1)
    a, b = np.where(both, before, 0.0).astype(np.float64), np.where(both, later, 0.0).astype(np.float64)
    together = (a * b).sum(axis=1)
    count = np.maximum(seen, 1)
    covariance = together / count - a.sum(axis=1) * b.sum(axis=1) / count**2
    left, right = a.sum(axis=1) / count, b.sum(axis=1) / count
    spread = left * (1 - left) * right * (1 - right)
    weight = np.where(spread > 0, covariance / np.sqrt(np.maximum(spread, 1e-12)), 0.0)
    limit = np.sqrt(2.0 * np.log(max(2, len(grid))) / count)
    kept = (seen >= _MIN_COMMON) & (weight > limit)
    return np.where(kept, weight, 0.0), together.astype(np.int64), seen.astype(np.int64)
