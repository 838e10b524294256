"""Sites: how each stands, what it costs, and whether it is well."""

from __future__ import annotations

import sqlite3
from typing import Any

from recrawl.discover.urls import key
from recrawl.record.questions import ask
from recrawl.record.rows import SiteRow
from recrawl.serve.queries.overview import band

LATELY = 10
"""Cycles and crawls over which a site's share of the visits is counted."""
_MOST = 500
_MANY_FAIL = 0.5
_SOME_FAIL = 0.1


def names(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Number and origin of the sites, by name; of very many the first."""
    return [tuple(row) for row in db.execute("SELECT id, origin FROM sites ORDER BY origin LIMIT ?", (_MOST,))]


def sites(db: sqlite3.Connection, now: float, only: int | None = None) -> list[dict[str, Any]]:
    """All sites, or one, each with its figures; those that no cycle has seen yet have few."""
    first = db.execute("SELECT ifnull(max(cycle), 0) - ? FROM cycle_summaries", (LATELY - 1,)).fetchone()[0]
    total = db.execute("SELECT ifnull(sum(visits), 0) FROM cycle_summaries WHERE cycle >= ?", (first,)).fetchone()[0]
    rows = ask(
        db,
        """SELECT s.*, m.pages, m.live, m.gone, m.visits AS all_visits, m.changes, m.failing, m.bytes, m.last_visit,
                  m.rate, m.freshness, m.freshness_sd, m.age,
                  ifnull(x.visits, 0) AS visits, ifnull(x.updates, 0) AS updates, ifnull(x.failed, 0) AS failed
           FROM sites s LEFT JOIN site_summaries m ON m.site = s.id LEFT JOIN (
                SELECT site, sum(visits) AS visits, sum(updates) AS updates, sum(failed) AS failed
                FROM site_cycles WHERE cycle >= ? GROUP BY site) x ON x.site = s.id
           WHERE ? IS NULL OR s.id = ? ORDER BY s.origin""",
        (first, only, only),
    )
    return [_told(row, total, now) for row in rows]


def stored(db: sqlite3.Connection, number: int) -> SiteRow:
    """A site as it is stored."""
    return SiteRow._make(db.execute("SELECT * FROM sites WHERE id = ?", (number,)).fetchone())


def page_number(db: sqlite3.Connection, url: str) -> int | None:
    """The number of a page that is known."""
    row = db.execute("SELECT id FROM pages WHERE key = ?", (key(url),)).fetchone()
    return None if row is None else int(row[0])


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
