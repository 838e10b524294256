"""The repository as a whole, and its last cycles: from the sums that are written when a cycle ends."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recrawl.crawl.hints import push_sources
from recrawl.crawl.reports.summaries import AGES
from recrawl.record.store import Store
from recrawl.serve.push import websub

SURE = 1.64
"""Standard deviations to either side: nine times in ten the truth lies between."""
_DAY = 86400.0
_CLASSES = ("1 h", "6 h", "1 d", "3 d", "7 d", "14 d", "30 d", "90 d", "longer")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a cycle came to. Freshness is that at its end, None where it was not estimated."""

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
    """Answers that were 304."""
    received: int
    expected: float
    fresh: float | None
    low: float | None
    high: float | None

    @property
    def found(self) -> int:
        """Updates of any kind."""
        return self.changed + self.new + self.gone


@dataclass(frozen=True, slots=True)
class Whole:
    """How the repository stands."""

    at: float
    """When the sums were made."""
    pages: int
    sites: int
    fresh: float | None
    low: float | None
    high: float | None
    age: float | None
    """The median time since a page was last looked at, as of `at`."""
    ages: list[tuple[str, int]]
    """Pages in classes of that time, each named by its end."""


def whole(store: Store, now: float) -> Whole | None:
    """How the repository stands now; None before the first crawl has ended.

    Since the sums were made, time has passed: freshness has fallen since, at the mean rate of the sites.
    """
    row = store.summaries.latest()
    if row is None:
        return None
    sites, rate = store.summaries.mean_rate()
    passed = max(0.0, now - row["at"]) / _DAY
    fresh = row["freshness"] * math.exp(-rate * passed)
    low, high = band(fresh, row["freshness_sd"])
    counts = json.loads(row["ages"])
    ages = list(zip(_CLASSES, counts, strict=True))
    return Whole(row["at"], row["pages"], sites, fresh, low, high, median_age(counts), ages)


def cycles(store: Store, limit: int) -> list[Figures]:
    """The last cycles, oldest first; crawls of what is new are not among them."""
    return [_figures(row) for row in reversed(store.summaries.refreshes(limit))]


def band(mean: float | None, deviation: float | None) -> tuple[float | None, float | None]:
    """Where a share lies, nine times in ten.

    >>> band(0.5, 0.1), band(0.99, 0.1), band(None, None)
    ((0.336, 0.664), (0.826, 1.0), (None, None))
    """
    if mean is None or deviation is None:
        return None, None
    return max(0.0, round(mean - SURE * deviation, 6)), min(1.0, round(mean + SURE * deviation, 6))


def median_age(counts: Sequence[int]) -> float | None:
    """The median, as well as classes tell it; None for no pages.

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


def _figures(row: dict[str, Any]) -> Figures:
    low, high = band(row["freshness"], row["freshness_sd"])
    names = ("cycle", "policy", "started", "visits", "changed", "new", "gone", "unchanged", "failed", "received")
    return Figures(
        **{name: row[name] for name in names},
        unmodified=row["not_modified"],
        expected=row["expected"],
        fresh=row["freshness"],
        low=low,
        high=high,
    )


def troubles(store: Store, now: float) -> list[str]:
    """What goes wrong without stopping anything: hubs that do not renew, sources of pushes that are mostly wrong."""
    return [*websub.subscription_problems(store, now), *push_sources.troubles(store)]
