"""What people ask of the store. Read only; every answer is a plain dict or a list of them."""

from __future__ import annotations

import sqlite3
from typing import Any

from recrawl.errors import NotKnown
from recrawl.model import Outcome, State
from recrawl.record.rows import VersionRow

Row = dict[str, Any]

_OUTCOMES = {int(outcome): outcome.name.lower() for outcome in Outcome}
_STATES = {int(state): state.name.lower() for state in State}


def ask(db: sqlite3.Connection, sql: str, values: tuple[Any, ...] = ()) -> list[Row]:
    """Rows as dicts."""
    cursor = db.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def totals(db: sqlite3.Connection) -> Row:
    """How much is there."""
    states = {_STATES[state]: count for state, count in db.execute("SELECT state, count(*) FROM pages GROUP BY state")}
    numbers = ask(
        db,
        """SELECT (SELECT count(*) FROM sites) AS sites,
                  (SELECT count(*) FROM visits) AS visits,
                  (SELECT count(*) FROM versions) AS versions,
                  (SELECT ifnull(sum(length), 0) FROM warcs) AS archive_bytes,
                  (SELECT max(at) FROM visits) AS last_visit""",
    )[0]
    return {"pages": sum(states.values()), "states": states, **numbers}


def ages(db: sqlite3.Connection, now: float) -> list[float]:
    """Seconds since each live page was last known to be as stored, sorted."""
    rows = db.execute("SELECT ? - last_visit FROM pages WHERE state IN (1, 2) AND last_visit NOT NULL", (now,))
    return sorted(max(0.0, row[0]) for row in rows)


def cycles(db: sqlite3.Connection, limit: int) -> list[Row]:
    """The newest cycles with what they found."""
    return ask(
        db,
        """SELECT c.id AS cycle, c.kind, c.policy, c.budget, c.started, c.finished, c.first_visit, c.limits,
                  count(v.id) AS visits,
                  ifnull(sum(v.outcome = 1), 0) AS changed, ifnull(sum(v.outcome = 2), 0) AS new,
                  ifnull(sum(v.outcome = 3), 0) AS gone, ifnull(sum(v.outcome = 0), 0) AS unchanged,
                  ifnull(sum(v.outcome = 4), 0) AS failed, ifnull(sum(v.received), 0) AS received
           FROM (SELECT * FROM cycles ORDER BY id DESC LIMIT ?) c
           LEFT JOIN visits v ON v.cycle = c.id AND v.id >= c.first_visit
           GROUP BY c.id ORDER BY c.id DESC""",
        (limit,),
    )


def spent(db: sqlite3.Connection, cycle: int, first_visit: int, site: int = -1) -> Row:
    """What a cycle has spent: visits, those to one site, bytes, and the lowest score that led to a visit."""
    return ask(
        db,
        """SELECT count(*) AS visits, ifnull(sum(p.site = ?), 0) AS of_site, ifnull(sum(v.received), 0) AS received,
                  min(v.score) AS lowest
           FROM visits v JOIN pages p ON p.id = v.page WHERE v.id >= ? AND v.cycle = ?""",
        (site, first_visit, cycle),
    )[0]


def spent_by_site(db: sqlite3.Connection, cycle: int, first_visit: int, limit: int) -> list[Row]:
    """Where a cycle's visits and bytes went: the sites that got most of them first."""
    return ask(
        db,
        """SELECT s.origin AS site, count(*) AS visits, sum(v.outcome IN (1, 2, 3)) AS updates,
                  sum(v.outcome = 4) AS failed, sum(v.status = 304) AS not_modified, sum(v.received) AS received
           FROM visits v JOIN pages p ON p.id = v.page JOIN sites s ON s.id = p.site
           WHERE v.id >= ? AND v.cycle = ? GROUP BY s.id ORDER BY visits DESC, s.id LIMIT ?""",
        (first_visit, cycle, limit),
    )


def held_until(db: sqlite3.Connection, site: int) -> float:
    """Until when a server wants to be left alone."""
    return float(db.execute("SELECT held_until FROM sites WHERE id = ?", (site,)).fetchone()[0])


def sites(db: sqlite3.Connection) -> list[Row]:
    """Every site with its numbers."""
    return ask(
        db,
        """SELECT s.origin AS url, count(p.id) AS pages,
                  ifnull(sum(p.state = 1), 0) AS live, ifnull(sum(p.state = 0), 0) AS found,
                  ifnull(sum(p.state = 3), 0) AS gone, ifnull(sum(p.visits), 0) AS visits,
                  ifnull(sum(p.changes), 0) AS changes, max(p.last_visit) AS last_visit,
                  s.robots_status, s.robots_at, s.sitemap_at
           FROM sites s LEFT JOIN pages p ON p.site = s.id GROUP BY s.id ORDER BY s.origin""",
    )


def pages(db: sqlite3.Connection, *, site: str, state: str, limit: int, offset: int = 0) -> list[Row]:
    """Pages, in the order in which they were found."""
    where: list[str] = ["1"]
    values: list[Any] = []
    if site:
        where.append("p.site IN (SELECT id FROM sites WHERE origin = ?)")
        values.append(site)
    if state:
        where.append("p.state = ?")
        values.append({name: number for number, name in _STATES.items()}[state])
    rows = ask(
        db,
        f"""SELECT p.url, p.state, p.depth, p.visits, p.changes, p.failures, p.found, p.last_visit, p.last_change,
                   p.size, v.title FROM pages p LEFT JOIN versions v ON v.id = p.version
            WHERE {" AND ".join(where)} ORDER BY p.id LIMIT ? OFFSET ?""",  # noqa: S608
        (*values, limit, offset),
    )
    return [{**row, "state": _STATES[row["state"]]} for row in rows]


def changes(db: sqlite3.Connection, *, since: float, site: str, limit: int) -> list[Row]:
    """Updates seen: pages created, changed and removed; newest first."""
    only = "AND p.site IN (SELECT id FROM sites WHERE origin = ?)" if site else ""
    rows = ask(
        db,
        f"""SELECT p.url, v.at, v.outcome, r.divergence, r.significant, r.new_links, r.title
            FROM visits v JOIN pages p ON p.id = v.page LEFT JOIN versions r ON r.id = v.version
            WHERE v.outcome IN (1, 2, 3) AND v.at >= ? {only} ORDER BY v.at DESC, v.id DESC LIMIT ?""",  # noqa: S608
        (since, *([site] if site else []), limit),
    )
    return [{**row, "outcome": _OUTCOMES[row["outcome"]]} for row in rows]


def knows(db: sqlite3.Connection, key: int) -> bool:
    """Whether there is a page with this key."""
    return db.execute("SELECT 1 FROM pages WHERE key = ?", (key,)).fetchone() is not None


def find_page(db: sqlite3.Connection, key: int, url: str) -> Row:
    """A page by its address."""
    rows = ask(db, "SELECT * FROM pages WHERE key = ?", (key,))
    if not rows:
        raise NotKnown(f"{url} is not known here; 'recrawl pages' lists what is")
    return {**rows[0], "state": _STATES[rows[0]["state"]]}


def visits(db: sqlite3.Connection, page: int, limit: int = -1) -> list[Row]:
    """The visits of a page, newest first."""
    rows = ask(
        db,
        """SELECT v.at, v.outcome, v.status, v.failure, v.detail, v.received, v.seconds, v.version, v.cycle, v.score,
                  r.text AS reason, c.policy, c.kind
           FROM visits v LEFT JOIN reasons r ON r.id = v.why LEFT JOIN cycles c ON c.id = v.cycle
           WHERE v.page = ? ORDER BY v.id DESC LIMIT ?""",
        (page, limit),
    )
    return [{**row, "outcome": _OUTCOMES[row["outcome"]]} for row in rows]


def versions(db: sqlite3.Connection, page: int) -> list[VersionRow]:
    """The versions of a page, oldest first."""
    return [VersionRow._make(row) for row in db.execute("SELECT * FROM versions WHERE page = ? ORDER BY id", (page,))]
