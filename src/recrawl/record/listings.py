"""Tables that grow (pages, visits, versions, changes), read in blocks.

Each function is a generator of rows as dicts. A block is fetched whole before its first row is yielded, and the next
one starts after the last row read: no cursor stays open while the caller works, writes or closes the store.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from recrawl.record.questions import Row, ask
from recrawl.record.storage import Storage

_BLOCK = 1000
_PAGE = """SELECT p.id, p.url, s.origin AS site, p.state, p.depth, p.visits, p.changes, p.failures, p.found,
                  p.last_visit, p.last_change, p.size, v.title, ifnull(t.url, '') AS moved_to
           FROM pages p JOIN sites s ON s.id = p.site LEFT JOIN versions v ON v.id = p.version
           LEFT JOIN pages t ON t.id = p.target"""
_CHANGE = """SELECT v.id, p.url, s.origin AS site, v.at, v.outcome, r.divergence, r.significant, r.new_links, r.title
             FROM visits v JOIN pages p ON p.id = v.page JOIN sites s ON s.id = p.site
             LEFT JOIN versions r ON r.id = v.version"""
_VISIT = """SELECT v.id, p.url, v.at, v.outcome, v.status, v.failure, v.detail, v.received, v.seconds, v.version,
                   v.cycle, v.score, r.text AS reason, c.policy, c.kind
            FROM visits v JOIN pages p ON p.id = v.page LEFT JOIN reasons r ON r.id = v.why
            LEFT JOIN cycles c ON c.id = v.cycle"""
_VERSION = """SELECT v.*, p.url,
                     (SELECT count(*) FROM versions w WHERE w.page = v.page AND w.id <= v.id) AS number
              FROM versions v JOIN pages p ON p.id = v.page"""
_OF_SITE = "p.site IN (SELECT id FROM sites WHERE origin = ?)"

Open = Callable[[], Storage]
"""Gives the open storage; asked before every block, since a writing call reopens it."""


def page_row(storage: Storage, key: int) -> Row | None:
    """The page with this key; None when there is none."""
    rows = ask(storage.store.db, f"{_PAGE} WHERE p.key = ?", (key,))
    return rows[0] if rows else None


def page_rows(opened: Open, *, site: str = "", state: int | None = None, limit: int = -1) -> Iterator[Row]:
    """Pages, in the order in which they were found."""
    where, values = ["p.id > ?"], list[Any]()
    if site:
        where.append(_OF_SITE)
        values.append(site)
    if state is not None:
        where.append("p.state = ?")
        values.append(state)
    yield from _by_number(opened, f"{_PAGE} WHERE {' AND '.join(where)} ORDER BY p.id LIMIT ?", values, limit)


def change_rows(opened: Open, *, since: float, until: float, site: str = "", limit: int = -1) -> Iterator[Row]:
    """Updates (pages created, changed, removed), newest first."""
    only = f"AND {_OF_SITE}" if site else ""
    sql = f"""{_CHANGE} WHERE v.outcome IN (1, 2, 3) AND v.at >= ? {only} AND v.at <= ? AND (v.at < ? OR v.id < ?)
              ORDER BY v.at DESC, v.id DESC LIMIT ?"""
    bounds = [since, *([site] if site else [])]
    at, number, left = until, 1 << 62, math.inf if limit < 0 else limit
    while left > 0:
        size = int(min(_BLOCK, left))
        rows = ask(opened().store.db, sql, (*bounds, at, at, number, size))
        yield from rows
        if len(rows) < size:
            return
        left -= len(rows)
        at, number = rows[-1]["at"], rows[-1]["id"]


def changes_after(opened: Open, after: int, *, site: str = "", limit: int = -1) -> Iterator[Row]:
    """Updates recorded after a visit, in the order of their recording."""
    only = f"AND {_OF_SITE}" if site else ""
    sql = f"{_CHANGE} WHERE v.id > ? {only} AND v.outcome IN (1, 2, 3) ORDER BY v.id LIMIT ?"
    yield from _by_number(opened, sql, [site] if site else [], limit, after)


def visit_rows(opened: Open, *, since: float, site: str = "", limit: int = -1) -> Iterator[Row]:
    """Visits to all pages, in the order of their recording."""
    only = f"AND {_OF_SITE}" if site else ""
    sql = f"{_VISIT} WHERE v.id > ? AND v.at >= ? {only} ORDER BY v.id LIMIT ?"
    yield from _by_number(opened, sql, [since, *([site] if site else [])], limit)


def visits_of_page(opened: Open, page: int) -> Iterator[Row]:
    """The visits of a page, newest first."""
    sql, last = f"{_VISIT} WHERE v.page = ? AND v.id < ? ORDER BY v.id DESC LIMIT ?", 1 << 62
    while rows := ask(opened().store.db, sql, (page, last, _BLOCK)):
        yield from rows
        last = rows[-1]["id"]


def version_rows(opened: Open, *, since: float, site: str = "", limit: int = -1) -> Iterator[Row]:
    """Versions of all pages with `url` and `number` (1 is the page's oldest), in the order of their recording."""
    only = f"AND {_OF_SITE}" if site else ""
    sql = f"{_VERSION} WHERE v.id > ? AND v.at >= ? {only} ORDER BY v.id LIMIT ?"
    yield from _by_number(opened, sql, [since, *([site] if site else [])], limit)


def listed_urls(opened: Open) -> Iterator[str]:
    """The URLs of the pages that are visited (found, live, missing), sorted."""
    sql = "SELECT url FROM pages WHERE state IN (0, 1, 2) ORDER BY url"
    yield from [row[0] for row in opened().store.db.execute(sql)]


def _by_number(opened: Open, sql: str, values: list[Any], limit: int, after: int = -1) -> Iterator[Row]:
    """Rows of a query whose first parameter is the number to start after, and whose last one is the block's size."""
    left = math.inf if limit < 0 else limit
    while left > 0:
        size = int(min(_BLOCK, left))
        rows = ask(opened().store.db, sql, (after, *values, size))
        yield from rows
        if len(rows) < size:
            return
        left -= len(rows)
        after = rows[-1]["id"]
