"""The repository as a whole, and its last cycles, from the summaries written at the end of each cycle."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recrawl.columns import DAY
from recrawl.crawl.reports.summaries import AGES
from recrawl.record.store import Store

Z90 = 1.64
"""Half-width of a 90 % interval, in standard deviations."""
_CLASSES = ("1 h", "6 h", "1 d", "3 d", "7 d", "14 d", "30 d", "90 d", "longer")


@dataclass(frozen=True, slots=True)
class CycleFigures:
    """Results of a cycle. Freshness is that at its end; None if it was not estimated."""

    cycle: int
    policy: str
    started: float
    visits: int
    changed: int
    new: int
    gone: int
    unchanged: int
    failed: int
    unmodified: int
    """Responses with status 304."""
    received: int
    expected: float
    fresh: float | None
    low: float | None
    high: float | None

    @property
    def found(self) -> int:
        """Updates of all kinds."""
        return self.changed + self.new + self.gone


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the repository."""

    at: float
    """Time of the summary."""
    pages: int
    sites: int
    fresh: float | None
    low: float | None
    high: float | None
    age: float | None
    """Median time since the last visit of a page, as of `at`."""
    ages: list[tuple[str, int]]
    """Pages by time since the last visit, in classes named by their upper bound."""


def overview(store: Store, now: float) -> Overview | None:
    """Return the current state of the repository; None before the first crawl has ended.

    Freshness is extrapolated from the time of the summary at the mean change rate of the sites.
    """
    row = store.summaries.latest()
    if row is None:
        return None
    sites, rate = store.summaries.mean_rate()
    passed = max(0.0, now - row["at"]) / DAY
    fresh = row["freshness"] * math.exp(-rate * passed)
    low, high = band(fresh, row["freshness_sd"])
    counts = json.loads(row["ages"])
    ages = list(zip(_CLASSES, counts, strict=True))
    return Overview(row["at"], row["pages"], sites, fresh, low, high, median_age(counts), ages)


def cycles(store: Store, limit: int) -> list[CycleFigures]:
    """Return the last cycles, oldest first, without crawls of new pages."""
    return [_figures(row) for row in reversed(store.summaries.refreshes(limit))]


def band(mean: float | None, deviation: float | None) -> tuple[float | None, float | None]:
    """Return the 90 % interval of a share.

    >>> band(0.5, 0.1), band(0.99, 0.1), band(None, None)
    ((0.336, 0.664), (0.826, 1.0), (None, None))
    """
    if mean is None or deviation is None:
        return None, None
    return max(0.0, round(mean - Z90 * deviation, 6)), min(1.0, round(mean + Z90 * deviation, 6))


def median_age(counts: Sequence[int]) -> float | None:
    """Return the median, interpolated within its class; None for no pages.

    >>> median_age([0, 0, 4, 0, 0, 0, 0, 0, 0]) / 3600, median_age([0] * 9)
    (15.0, None)
    """
    half, before = sum(counts) / 2, 0
    edges = (0.0, *AGES, 2 * AGES[-1])
    for k, count in enumerate(counts):
        if count and before + count >= half:
            return edges[k] + (edges[k + 1] - edges[k]) * (half - before) / count
        before += count
    return None


def _figures(row: dict[str, Any]) -> CycleFigures:
    low, high = band(row["freshness"], row["freshness_sd"])
    names = ("cycle", "policy", "started", "visits", "changed", "new", "gone", "unchanged", "failed", "received")
    return CycleFigures(
        **{name: row[name] for name in names},
        unmodified=row["not_modified"],
        expected=row["expected"],
        fresh=row["freshness"],
        low=low,
        high=high,
    )
