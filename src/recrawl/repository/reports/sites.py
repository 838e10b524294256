"""Sites: rate, freshness, budget share and health of each."""

from __future__ import annotations

from typing import Any

from recrawl.discover.urls import key
from recrawl.record.store import Store
from recrawl.repository.reports.overview import band

RECENT_CYCLES = 10
"""Cycles and crawls over which a site's share of the visits is computed."""
_MAX_NAMES = 500
_FAILING = 0.5
_UNSTABLE = 0.1


def names(store: Store) -> list[tuple[int, str]]:
    """Return number and origin of the first 500 sites, by origin."""
    return store.sites.names(_MAX_NAMES)


def sites(store: Store, now: float, only: int | None = None) -> list[dict[str, Any]]:
    """Return all sites, or one, with their figures; some are None before a site's first cycle."""
    total, rows = store.summaries.recent(RECENT_CYCLES, only)
    return [_figures(row, total, now) for row in rows]


def page_number(store: Store, url: str) -> int | None:
    """Return the number of a page; None if it is unknown."""
    return store.pages.number(key(url))


def _figures(row: dict[str, Any], total: int, now: float) -> dict[str, Any]:
    good, bad = row["lm_good"] + row["etag_good"], row["lm_bad"] + row["etag_bad"]
    low, high = band(row["freshness"], row["freshness_sd"])
    return {
        "id": row["id"],
        "origin": row["origin"],
        "pages": row["pages"] or 0,
        "rate": row["rate"],
        "fresh": row["freshness"],
        "low": low,
        "high": high,
        "age": row["age"],
        "visits": row["visits"],
        "updates": row["updates"],
        "share": row["visits"] / total if total else None,
        "trust": good / (good + bad) if good + bad else None,
        "last_visit": row["last_visit"],
        "health": health(row, now),
    }


def health(row: dict[str, Any], now: float) -> tuple[str, str, str]:
    """Return the health of a site: CSS class, label and reason."""
    failed = row["failed"] / row["visits"] if row["visits"] else 0.0
    if row["robots_held"] > 0:
        return "bad", "on hold", "robots.txt is unavailable"
    if row["held_until"] > now:
        return "warn", "waiting", "the server requested a back-off"
    if failed >= _FAILING:
        return "bad", "failing", f"{failed:.0%} of the last visits failed"
    if failed >= _UNSTABLE:
        return "warn", "unstable", f"{failed:.0%} of the last visits failed"
    if row["last_visit"] is None:
        return "", "new", "not downloaded yet"
    return "good", "good", "responding"
