"""The repository as a whole, and its last cycles, from the summaries written at the end of each cycle."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from recrawl.crawl.reports.figures import NOTHING, band, stored
from recrawl.repository import push
from recrawl.repository.delivery.parked import numbers_by_receiver, parked_problems
from recrawl.repository.reader import Reader
from recrawl.repository.status import brake_problems, index_problems

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
    missing: int
    skipped: int
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
    """The state of the repository now, as of the last summary."""

    at: float
    """Time of the summary."""
    pages: int
    stored: int
    sites: int
    fresh: float | None
    low: float | None
    high: float | None
    age: float | None
    """Median time since the last visit of a stored page."""
    ages: list[tuple[str, int]]
    """Stored pages by time since the last visit as of `at`, in classes named by their upper bound."""


def overview(repo: Reader) -> Overview | None:
    """Return the current state of the repository; None before the first crawl has ended."""
    found, now = stored(repo.storage.store), repo.now()
    if found is None:
        return None
    figures = found.as_dict(now)
    return Overview(
        at=found.at,
        **{name: figures[name] for name in ("pages", "stored", "sites")},
        fresh=figures["freshness"],
        low=figures["freshness_low"],
        high=figures["freshness_high"],
        age=figures["age_seconds"].get("p50"),
        ages=list(zip(_CLASSES, found.ages, strict=True)),
    )


def cycles(repo: Reader, limit: int, *, since: float = 0.0, until: float = _EVER, most: int = 0) -> list[CycleFigures]:
    """Return the last cycles that started in this time, oldest first, without crawls of new pages.

    Of more than `most` (0: any number), as many neighbours are added up as it takes to have no more than that.
    """
    found = [_figures(row) for row in reversed(repo.storage.store.summaries.refreshes(limit, since, until))]
    each = math.ceil(len(found) / most) if most else 1
    return found if each <= 1 else [_sum(found[k : k + each]) for k in range(0, len(found), each)]


def _sum(group: Sequence[CycleFigures]) -> CycleFigures:
    """Add up neighbouring cycles; freshness is that at the end of the last one."""
    names = (
        "visits",
        "changed",
        "new",
        "gone",
        "unchanged",
        "missing",
        "skipped",
        "failed",
        "unmodified",
        "received",
        "expected",
    )
    totals = {name: sum(getattr(row, name) for row in group) for name in names}
    return replace(group[-1], started=group[0].started, cycles=len(group), **totals)


def runs(repo: Reader, before: int, limit: int) -> list[dict[str, Any]]:
    """Return crawls and cycles with numbers below `before` and their results, newest first."""
    return [_decoded(row) for row in repo.storage.store.summaries.cycles(before, limit)]


def totals(repo: Reader) -> dict[str, Any]:
    """Return the figures of the whole repository, `archive_bytes` and the `last_cycle`, if any."""
    store = repo.storage.store
    newest = store.summaries.latest_cycle()
    return {
        **_now(repo),
        **store.summaries.totals(),
        "archive_bytes": store.warcs.total_bytes(),
        "last_cycle": _decoded(newest) if newest else None,
    }


def _now(repo: Reader) -> dict[str, Any]:
    """The figures that were written last, at this moment; all zero before the first crawl has ended."""
    return (stored(repo.storage.store) or NOTHING).as_dict(repo.now())


def problems(repo: Reader) -> list[str]:
    """Describe what needs attention, one sentence each: subscriptions, sources of pushes, sites on the
    brake, pages that search cannot find."""
    store = repo.storage.store
    return [*push.problems(repo), *parked_problems(repo), *brake_problems(store), *index_problems(store)]


def missing_pages(repo: Reader) -> int:
    """Return how many pages answer that they do not exist, while it is not certain yet that they are gone."""
    return int(_now(repo)["states"]["missing"])


def has_pages(repo: Reader) -> bool:
    """Return whether any page is known."""
    return repo.storage.store.pages.any()


def figures(repo: Reader) -> dict[str, Any]:
    """Return what monitoring needs, from a few small queries: totals of visits, failures, states and sizes."""
    store, delivered = repo.storage.store, numbers_by_receiver(repo)
    failures: Counter[str] = Counter()
    for counts in store.summaries.failures(_FAILURE_CYCLES):
        failures.update(counts)
    return {
        **_now(repo),
        "visits": store.summaries.visit_totals(),
        "failures": failures,
        "last": store.summaries.latest(),
        "waiting": sum(row["waiting"] for row in delivered if row["kind"] == "alert"),
        "deliveries": delivered,
        "archive_bytes": store.warcs.total_bytes(),
    }


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: json.loads(row[name]) if row[name] else None for name in ("failures", "ages")}


def _figures(row: dict[str, Any]) -> CycleFigures:
    low, high = band(row["freshness"], row["freshness_sd"])
    names = ("cycle", "policy", "started", "visits", "changed", "new", "gone", "unchanged", "received")
    others = ("missing", "skipped", "failed")
    return CycleFigures(
        **{name: row[name] for name in (*names, *others)},
        unmodified=row["not_modified"],
        expected=row["expected"],
        fresh=row["freshness"],
        low=low,
        high=high,
    )
