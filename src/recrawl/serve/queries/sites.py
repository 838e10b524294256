"""Sites: how each stands, what it costs, and whether it is well."""

from __future__ import annotations

from typing import Any

from recrawl.discover.urls import key
from recrawl.record.store import Store
from recrawl.serve.queries.overview import band

LATELY = 10
"""Cycles and crawls over which a site's share of the visits is counted."""
_MOST = 500
_MANY_FAIL = 0.5
_SOME_FAIL = 0.1


def names(store: Store) -> list[tuple[int, str]]:
    """Number and origin of the sites, by name; of very many the first."""
    return store.sites.names(_MOST)


def sites(store: Store, now: float, only: int | None = None) -> list[dict[str, Any]]:
    """All sites, or one, each with its figures; those that no cycle has seen yet have few."""
    total, rows = store.summaries.recent(LATELY, only)
    return [_told(row, total, now) for row in rows]


def page_number(store: Store, url: str) -> int | None:
    """The number of a page that is known."""
    return store.pages.number(key(url))


def _told(row: dict[str, Any], total: int, now: float) -> dict[str, Any]:
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
    """How a site is: the class of a colour, a word, and why."""
    failed = row["failed"] / row["visits"] if row["visits"] else 0.0
    if row["robots_held"] > 0:
        return "bad", "held off", "its robots.txt could not be had"
    if row["held_until"] > now:
        return "warn", "waiting", "it asked us to wait"
    if failed >= _MANY_FAIL:
        return "bad", "failing", f"{failed:.0%} of the last visits failed"
    if failed >= _SOME_FAIL:
        return "warn", "shaky", f"{failed:.0%} of the last visits failed"
    if row["last_visit"] is None:
        return "", "new", "nothing of it was downloaded yet"
    return "good", "well", "it answers"
