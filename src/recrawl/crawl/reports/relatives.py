"""Pages whose changes go with a page's own, or run before them: found in the visits of a site.

Time is cut into steps as long as the page is usually left alone. In each step a page was seen to change, seen to be
unchanged, or not seen. The weight of a relative is the correlation of its changes with those of the page some steps
later, over the steps in which both were seen; it must be more than the best of so many pages reaches by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.reports.predictions import Visits

LAGS = 8
"""Steps back that are looked at, none included."""
_LEAST_STEP = 3600.0
_MOST_STEPS = 400
_MOST_PAGES = 3000
_LEAST_COMMON = 6
"""Steps in which both must have been seen."""

Grid = NDArray[np.float32]
"""Page by step: 1 changed, 0 unchanged, not a number where it was not seen."""


@dataclass(frozen=True, slots=True)
class Relative:
    """A page whose changes tell of another's."""

    page: int
    weight: float
    """The correlation, up to 1."""
    lag: float
    """Seconds by which its changes come before."""
    together: int
    """Steps in which both changed, `lag` apart."""
    seen: int
    """Steps in which both were seen."""
    since: bool
    """It was seen to change after the page itself was last looked at."""


def relatives_of(visits: Visits, page: int, most: int = 5) -> list[Relative]:
    """The strongest relatives, the strongest first; none where the page's own history is too short."""
    mine = visits[visits["page"] == page]
    if len(mine) < _LEAST_COMMON + 1:
        return []
    step = max(_LEAST_STEP, float(np.median(np.diff(mine["at"]))))
    numbers, grid = _grid(visits, page, float(mine["at"][-1]), step)
    own = grid[np.searchsorted(numbers, page)]
    changed = ~np.isnan(own) & (own > 0)
    if not 0 < changed.sum() < np.count_nonzero(~np.isnan(own)):
        return []  # it always changes, or never: no other page can tell more
    found = [_compared(own, grid, lag) for lag in range(min(LAGS, grid.shape[1] - 1))]
    weight = np.array([part[0] for part in found])
    weight[:, numbers == page] = -np.inf
    best = weight.argmax(axis=0)
    top = np.argsort(-weight.max(axis=0), kind="stable")[:most]
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


def _grid(visits: Visits, page: int, end: float, step: float) -> tuple[NDArray[np.int64], Grid]:
    """Pages, sorted, and what was seen of them in each step up to `end`; the page itself is always among them."""
    first = _first_visits(visits)
    # Rounded, not cut off: what is visited a little before or after the page, in the same cycle, belongs to its step.
    back = np.round((end - visits["at"]) / step).astype(np.int64)
    use = ~first & (back >= 0) & (back < _MOST_STEPS)
    names, many = np.unique(visits["page"][use & visits["changed"]], return_counts=True)
    numbers = np.union1d(names[np.argsort(-many, kind="stable")][:_MOST_PAGES], [page])
    use &= np.isin(visits["page"], numbers)
    grid = np.full((len(numbers), int(back[use].max(initial=0)) + 1), np.nan, np.float32)
    row, column = np.searchsorted(numbers, visits["page"][use]), grid.shape[1] - 1 - back[use]
    grid[row, column] = 0.0
    hit = visits["changed"][use]
    grid[row[hit], column[hit]] = 1.0
    return numbers, grid


def _first_visits(visits: Visits) -> NDArray[np.bool_]:
    """Where a page is seen for the first time: that was no change."""
    first = np.zeros(len(visits), np.bool_)
    first[np.unique(visits["page"], return_index=True)[1]] = True
    return first


def _compared(
    own: NDArray[np.float32], grid: Grid, lag: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
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
    kept = (seen >= _LEAST_COMMON) & (weight > limit)
    return np.where(kept, weight, 0.0), together.astype(np.int64), seen.astype(np.int64)
