"""The visits of a page and of its site, in numbers, from the store alone. Nothing is written."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.record.store import Store

_MAX_VISITS = 200_000
"""Newest visits of a site that are used."""
MIN_COMPARISONS = 3
"""Minimum number of comparisons for a page's own history to be sufficient."""
_Z = 1.28
"""Standard errors on each side of an 80 % interval."""

Visits = NDArray[np.void]
"""One row per visit: page, cycle, at, changed."""


@dataclass(frozen=True, slots=True)
class OwnVisits:
    """A page's own history."""

    visits: int
    """Answered visits, including the first."""
    compared: int
    changes: int
    first: float | None
    last: float | None
    last_change: float | None
    low: float
    high: float
    """80 % interval of its change rate per visit."""


def site_visits(store: Store, site: int) -> Visits:
    """The answered visits of a site's pages, oldest first."""
    return store.visits.of_site(site, _MAX_VISITS)


def own_history(visits: Visits, page: int) -> OwnVisits:
    """Summary of a page's own visits."""
    mine = visits[visits["page"] == page]
    later = mine[1:]
    changed = later["at"][later["changed"]]
    low, high = wilson_interval(int(later["changed"].sum()), len(later))
    return OwnVisits(
        visits=len(mine),
        compared=len(later),
        changes=len(changed),
        first=float(mine["at"][0]) if len(mine) else None,
        last=float(mine["at"][-1]) if len(mine) else None,
        last_change=float(changed[-1]) if len(changed) else None,
        low=low,
        high=high,
    )


def site_rate(visits: Visits, page: int) -> float | None:
    """The share of later visits to the other pages of a site that found a change; None without one."""
    others = visits[visits["page"] != page]
    later = np.ones(len(others), bool)
    later[np.unique(others["page"], return_index=True)[1]] = False
    return float(others["changed"][later].mean()) if later.any() else None


def wilson_interval(changed: int, of: int) -> tuple[float, float]:
    """80 % interval of a share (Wilson); (0, 1) without observations.

    >>> [round(value, 2) for value in wilson_interval(0, 10)], wilson_interval(0, 0)
    ([0.0, 0.14], (0.0, 1.0))
    """
    if not of:
        return 0.0, 1.0
    share, extra = changed / of, _Z**2 / of
    middle = (share + extra / 2) / (1 + extra)
    half = _Z * math.sqrt(share * (1 - share) / of + extra / (4 * of)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)
