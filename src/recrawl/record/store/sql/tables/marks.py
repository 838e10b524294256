"""Requests, tags, read marks and saved filters."""

from __future__ import annotations

import math
from collections.abc import Iterable

from recrawl.model import State
from recrawl.record.store.marks import WHOLE_SITE, MarkTable
from recrawl.record.store.site_tables import MetaTable
from recrawl.record.store.sql.base import (
    AMONG,
    NEVER,
    VISITABLE,
    Connection,
    SqlTable,
    Transaction,
    enum_list,
    json_list,
    upsert,
)
from recrawl.times import SKEW

READ_UP_TO = "changes:read"
"""Name in `meta` of the newest visit that `mark_all_read` covered."""
READ_MARK = f"(SELECT value FROM meta WHERE name = '{READ_UP_TO}')"
UNREAD = f"""(coalesce((SELECT 1 - m.read FROM change_marks m WHERE m.visit = v.id), CASE WHEN v.id >
    coalesce(CAST({READ_MARK} AS BIGINT), -1) THEN 1 ELSE 0 END) = 1)"""
"""Whether the change found by visit `v` is unread."""
TAGGED = f"""EXISTS (SELECT 1 FROM tags t WHERE t.name = ? AND t.site = p.site AND t.page IN ({WHOLE_SITE}, p.id))"""
"""Whether page `p` or its site has a tag."""
_REQUEST = "INSERT INTO requests (page, at) VALUES (?, ?) ON CONFLICT DO NOTHING"
_RECHECKABLE = enum_list(State.FOUND, State.LIVE, State.MISSING, State.GONE, State.MOVED)


class SqlMarks(SqlTable, MarkTable):
    """The tables `requests`, `tags`, `change_marks` and `saved_filters`."""

    def __init__(self, db: Connection, meta: MetaTable) -> None:
        super().__init__(db)
        self._meta = meta

    def request(self, pages: Iterable[int], at: float) -> None:
        with Transaction(self._db):
            self._db.executemany(_REQUEST, ((page, at) for page in pages))

    def requested(self) -> list[int]:
        return [row[0] for row in self._db.execute("SELECT page FROM requests ORDER BY at, page")]

    def fulfil(self, pages: Iterable[int]) -> None:
        with Transaction(self._db):
            self._db.execute(f"DELETE FROM requests WHERE page {AMONG}", (json_list(pages),))

    def pages_not_tried_since(self, site: int, page: int | None, at: float, now: float = math.inf) -> list[int]:
        sql = f"""SELECT id FROM pages WHERE site = ? AND state IN {VISITABLE} AND version >= 0
                  AND (CAST(? AS BIGINT) IS NULL OR id = ?) AND (coalesce(last_try, {NEVER}) <= ? OR last_try > ?)
                  ORDER BY last_try NULLS FIRST, id"""
        return [row[0] for row in self._db.execute(sql, (site, page, page, at, now + SKEW))]

    def pages_to_recheck(self, site: int) -> list[int]:
        sql = f"SELECT id FROM pages WHERE site = ? AND state IN {_RECHECKABLE} ORDER BY id"
        return [row[0] for row in self._db.execute(sql, (site,))]

    def tag(self, name: str, site: int, page: int) -> None:
        with Transaction(self._db):
            self._db.execute(
                "INSERT INTO tags (name, site, page) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (name, site, page)
            )

    def untag(self, name: str, site: int, page: int) -> bool:
        with Transaction(self._db):
            sql = "DELETE FROM tags WHERE name = ? AND site = ? AND page = ?"
            return self._db.execute(sql, (name, site, page)).rowcount > 0

    def tags(self) -> list[tuple[str, int, int]]:
        sql = f"""SELECT name, count(*) FILTER (WHERE page = {WHOLE_SITE}),
                         count(*) FILTER (WHERE page != {WHOLE_SITE}) FROM tags GROUP BY name ORDER BY name"""
        return self._db.execute(sql).fetchall()

    def tags_of(self, site: int, page: int) -> list[str]:
        sql = "SELECT name FROM tags WHERE site = ? AND page = ? ORDER BY name"
        return [row[0] for row in self._db.execute(sql, (site, page))]

    def mark_all_read(self) -> int:
        with Transaction(self._db):
            newest = int(self._value("SELECT coalesce(max(id), -1) FROM visits"))
            self._meta.set(READ_UP_TO, newest)
            self._db.execute("DELETE FROM change_marks")
        return newest

    def mark_read(self, visits: Iterable[int], *, read: bool) -> None:
        with Transaction(self._db):
            sql = upsert("change_marks", ("visit", "read"), ("visit",))
            self._db.executemany(sql, ((visit, int(read)) for visit in visits))

    def saved_filters(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT name, query FROM saved_filters ORDER BY name"))

    def save_filter(self, name: str, query: str) -> None:
        with Transaction(self._db):
            self._db.execute(upsert("saved_filters", ("name", "query"), ("name",)), (name, query))

    def remove_filter(self, name: str) -> bool:
        with Transaction(self._db):
            return self._db.execute("DELETE FROM saved_filters WHERE name = ?", (name,)).rowcount > 0
