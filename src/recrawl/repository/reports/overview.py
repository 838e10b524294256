"""The repository as a whole, and its last cycles, from the summaries written at the end of each cycle."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from recrawl.columns import DAY
from recrawl.crawl.reports.summaries import AGES
from recrawl.repository.push import receiving
from recrawl.repository.reader import Reader
from recrawl.repository.status import brake_problems

Z90 = 1.64
"""Half-width of a 90 % interval, in standard deviations."""
_FAILURE_CYCLES = 100
_EVER = 1e300
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
    cycles: int = 1
    """How many cycles were added up."""

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


def overview(repo: Reader) -> Overview | None:
    """Return the current state of the repository; None before the first crawl has ended.

    Freshness is extrapolated from the time of the summary at the mean change rate of the sites.
    """
    summaries = repo.storage.store.summaries
    row = summaries.latest()
    if row is None:
        return None
    sites, rate = summaries.mean_rate()
    passed = max(0.0, repo.now() - row["at"]) / DAY
    fresh = row["freshness"] * math.exp(-rate * passed)
    low, high = band(fresh, row["freshness_sd"])
    counts = json.loads(row["ages"])
    ages = list(zip(_CLASSES, counts, strict=True))
    return Overview(row["at"], row["pages"], sites, fresh, low, high, median_age(counts), ages)


def cycles(repo: Reader, limit: int, *, since: float = 0.0, until: float = _EVER, most: int = 0) -> list[CycleFigures]:
    """Return the last cycles that started in this time, oldest first, without crawls of new pages.

    Of more than `most` (0: any number), as many neighbours are added up as it takes to have no more than that.
    """
    found = [_figures(row) for row in reversed(repo.storage.store.summaries.refreshes(limit, since, until))]
    each = math.ceil(len(found) / most) if most else 1
    return found if each <= 1 else [_sum(found[k : k + each]) for k in range(0, len(found), each)]


def _sum(group: Sequence[CycleFigures]) -> CycleFigures:
    """Add up neighbouring cycles; freshness is that at the end of the last one."""
    names = ("visits", "changed", "new", "gone", "unchanged", "failed", "unmodified", "received", "expected")
    totals = {name: sum(getattr(row, name) for row in group) for name in names}
    return replace(group[-1], started=group[0].started, cycles=len(group), **totals)


def runs(repo: Reader, before: int, limit: int) -> list[dict[str, Any]]:
    """Return crawls and cycles with numbers below `before` and their results, newest first."""
    return [_decoded(row) for row in repo.storage.store.summaries.cycles(before, limit)]


def totals(repo: Reader) -> dict[str, Any]:
    """Return counts of the whole repository, `states` of pages, `archive_bytes` and the `last_cycle`, if any."""
    store = repo.storage.store
    newest = store.summaries.latest_cycle()
    return {
        **store.summaries.totals(),
        "states": store.summaries.states(),
        "archive_bytes": store.warcs.total_bytes(),
        "last_cycle": _decoded(newest) if newest else None,
    }


def problems(repo: Reader) -> list[str]:
    """Describe what needs attention, one sentence each: subscriptions, sources of pushes, sites on the brake."""
    return [*receiving.problems(repo), *brake_problems(repo.storage.store)]


def has_pages(repo: Reader) -> bool:
    """Return whether any page is known."""
    return repo.storage.store.pages.any()


def figures(repo: Reader) -> dict[str, Any]:
    """Return what monitoring needs, from a few small queries: totals of visits, failures, states and sizes."""
    store = repo.storage.store
    failures: Counter[str] = Counter()
    for counts in store.summaries.failures(_FAILURE_CYCLES):
        failures.update(counts)
    return {
        "states": store.summaries.states(),
        "sites": store.summaries.mean_rate()[0],
        "visits": store.summaries.visit_totals(),
        "failures": failures,
        "last": store.summaries.latest(),
        "waiting": store.outbox.count_waiting(),
        "archive_bytes": store.warcs.total_bytes(),
    }


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


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: json.loads(row[name]) if row[name] else None for name in ("failures", "ages")}


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
