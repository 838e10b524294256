"""Visits."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Ints
from recrawl.model import HOLDING, NOT_TRIED, Failure, Outcome, Unvisited
from recrawl.record.rows import Columns, CycleRow, Row
from recrawl.record.store.sql.base import (
    AMONG,
    FAILED_VISIT,
    FRAME_ONLY,
    NEVER,
    OWN_VERSION,
    UPDATES,
    SqlTable,
    Transaction,
    json_list,
    text_list,
)
from recrawl.record.store.tables import VisitTable

HELD = f"CASE WHEN failure IN {text_list(NOT_TRIED)} THEN 1 ELSE 0 END"
"""Whether there was no request."""
_NO_END = 1 << 62


class SqlVisits(SqlTable, VisitTable):
    """The tables `visits` and `reasons`."""

    def reason(self, text: str) -> int:
        self._db.execute("INSERT INTO reasons (text) VALUES (?) ON CONFLICT DO NOTHING", (text,))
        return int(self._value("SELECT id FROM reasons WHERE text = ?", (text,)))

    def of_cycle(self, cycle: CycleRow) -> Columns:
        return self._columns(
            f"""SELECT id, page, CASE WHEN failure IN {text_list(HOLDING)} THEN {Unvisited.HELD:d}
                       WHEN failure = '{Failure.ROBOTS}' THEN {Unvisited.SKIPPED:d} ELSE outcome END, received
                FROM visits WHERE id >= ? AND cycle = ? ORDER BY id""",
            {"id": "i8", "page": "i8", "outcome": "i1", "received": "i8"},
            (cycle.first_visit, cycle.id),
        )

    def received_of_cycle(self, cycle: CycleRow) -> list[tuple[int, int]]:
        sql = """SELECT p.site, sum(v.received) FROM visits v JOIN pages p ON p.id = v.page
                 WHERE v.id >= ? AND v.cycle = ? GROUP BY p.site"""
        return self._db.execute(sql, (cycle.first_visit, cycle.id)).fetchall()

    def latest_by_site(self, visits: int = 20_000) -> list[tuple[int, int, float, int, int]]:
        sql = """SELECT p.site, count(*), sum(v.seconds), sum(v.received), sum(p.size)
                 FROM (SELECT page, seconds, received, status FROM visits ORDER BY id DESC LIMIT ?) v
                 JOIN pages p ON p.id = v.page WHERE v.status = 200 AND v.received > 0 GROUP BY p.site"""
        return self._db.execute(sql, (visits,)).fetchall()

    def between(self, first: int, end: int) -> Columns:
        sql = f"""SELECT id, page, cycle, at, outcome, {HELD}, hints, version FROM visits
                  WHERE id >= ? AND id < ? ORDER BY id"""
        types = {"id": "i8", "page": "i8", "cycle": "i8", "at": "f8", "outcome": "i1", "held": "i1"}
        return self._columns(sql, types | {"hints": "i8", "version": "i8"}, (first, end))

    def pages_since(self, visit: int) -> Ints:
        return self._columns("SELECT DISTINCT page FROM visits WHERE id >= ?", {"page": "i8"}, (visit,))["page"]

    def history(self, pages: Iterable[int], before_visit: int) -> Columns:
        with Transaction(self._db):
            self._db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (page INTEGER PRIMARY KEY)")
            self._db.execute("DELETE FROM wanted")
            self._db.executemany("INSERT INTO wanted VALUES (?)", ((int(page),) for page in pages))
        return self._columns(
            f"SELECT page, at, outcome, {HELD} FROM visits JOIN wanted USING (page) WHERE id < ? ORDER BY id",
            {"page": "i8", "at": "f8", "outcome": "i1", "held": "i1"},
            (before_visit,),
        )

    def end_of_cycle(self, cycle: CycleRow) -> int:
        sql = "SELECT coalesce(max(id) + 1, 0) FROM visits WHERE id >= ? AND cycle = ?"
        return int(self._value(sql, (cycle.first_visit, cycle.id)))

    def with_previous(self, cycle: CycleRow) -> Columns:
        return self._columns(
            f"""SELECT v.page, v.at, v.outcome, v.status, v.received, v.seconds,
                       CASE WHEN {FAILED_VISIT} THEN 1 ELSE 0 END,
                       coalesce((SELECT w.at FROM visits w WHERE w.page = v.page AND w.id < v.id
                               AND w.outcome != {Outcome.FAILED:d} ORDER BY w.id DESC LIMIT 1), {NEVER})
                FROM visits v WHERE v.id >= ? AND v.id < ? AND v.cycle = ? ORDER BY v.id""",
            {
                "page": "i8",
                "at": "f8",
                "outcome": "i1",
                "status": "i4",
                "received": "i8",
                "seconds": "f8",
                "failed": "i1",
                "before": "f8",
            },
            (cycle.first_visit, self._bound(cycle), cycle.id),
        )

    def failures_of_cycle(self, cycle: CycleRow) -> dict[str, int]:
        sql = """SELECT failure, count(*) FROM visits WHERE id >= ? AND id < ? AND cycle = ? AND failure IS NOT NULL
                 GROUP BY 1"""
        return dict(self._db.execute(sql, (cycle.first_visit, self._bound(cycle), cycle.id)))

    def frame_only(self, cycle: CycleRow) -> int:
        sql = f"SELECT count(*) FROM visits v WHERE id >= ? AND id < ? AND cycle = ? AND {FRAME_ONLY}"
        return int(self._value(sql, (cycle.first_visit, self._bound(cycle), cycle.id)))

    def _bound(self, cycle: CycleRow) -> int:
        """A number above all visits of a finished cycle. A crawl may lie between the parts of a cycle that was stopped
        and resumed, but nothing of the cycle comes after its end."""
        sql = "SELECT min(first_visit) FROM cycles WHERE id > ? AND started >= ?"
        first = self._value(sql, (cycle.id, cycle.finished))
        return _NO_END if first is None else int(first)

    def not_modified_by_site(self, first: int, end: int) -> list[tuple[int, int, int]]:
        sql = """SELECT p.site, count(*), count(*) FILTER (WHERE v.status = 304) FROM visits v
                 JOIN pages p ON p.id = v.page WHERE v.id < ? AND v.id >= ? AND v.status > 0 GROUP BY p.site"""
        return self._db.execute(sql, (end, first)).fetchall()

    def answered(self, sites: Iterable[int] | None, limit: int) -> NDArray[np.void]:
        join = "" if sites is None else f"JOIN pages p ON p.id = v.page AND p.site {AMONG}"
        sql = f"""SELECT v.page, v.at, v.outcome IN {UPDATES} FROM visits v {join}
                  WHERE v.outcome != {Outcome.FAILED:d} ORDER BY v.id DESC LIMIT ?"""
        values = (limit,) if sites is None else (json_list(sites), limit)
        return self._table(sql, {"page": "i8", "at": "f8", "changed": "?"}, values)[::-1]

    def of_site(self, site: int, limit: int) -> NDArray[np.void]:
        sql = f"""SELECT v.page, v.cycle, v.at, v.outcome IN {UPDATES} FROM visits v JOIN pages p ON p.id = v.page
                  WHERE p.site = ? AND v.outcome != {Outcome.FAILED:d} ORDER BY v.id DESC LIMIT ?"""
        types = {"page": "i8", "cycle": "i8", "at": "f8", "changed": "?"}
        return self._table(sql, types, (site, limit))[::-1]

    def after(self, visit: int, limit: int) -> list[Row]:
        sql = """SELECT v.id, v.page, v.at, v.outcome, v.version, v.copy, p.url FROM visits v
                 JOIN pages p ON p.id = v.page WHERE v.id > ? ORDER BY v.id LIMIT ?"""
        return self._rows(sql, (visit, limit))

    def tell_once(self, first: int, copies: Iterable[int], others: Iterable[int]) -> None:
        with Transaction(self._db):
            for pages, copy in ((copies, 1), (others, 0)):
                sql = f"UPDATE visits SET copy = {copy} WHERE page {AMONG} AND id >= ? AND copy != {copy}"
                self._db.execute(sql, (json_list(pages), first))

    def before(self, visit: int, count: int) -> int:
        return visit - count

    def of_page(self, page: int, limit: int) -> list[tuple[float, int]]:
        sql = f"""SELECT at, outcome FROM visits WHERE page = ? AND outcome != {Outcome.FAILED:d}
                  ORDER BY id DESC LIMIT ?"""
        return self._db.execute(sql, (page, limit)).fetchall()

    def removals(self, page: int) -> list[float]:
        sql = f"SELECT at FROM visits WHERE page = ? AND outcome = {Outcome.GONE:d} ORDER BY id"
        return [row[0] for row in self._db.execute(sql, (page,))]

    def most_changed(self, site: str, updates: int, limit: int) -> list[int]:
        only = "WHERE p.site = (SELECT id FROM sites WHERE origin = ?)" if site else ""
        sql = f"""SELECT v.page FROM (SELECT page FROM visits WHERE outcome IN {UPDATES} ORDER BY at DESC LIMIT ?) v
                  JOIN pages p ON p.id = v.page {only} GROUP BY v.page HAVING count(*) > 1
                  ORDER BY count(*) DESC, v.page LIMIT ?"""
        return [row[0] for row in self._db.execute(sql, (updates, *([site] if site else []), limit))]

    def pages_updated_since(self, visit: int) -> list[int]:
        # A visit that found only frame changes is no update, but has a version of its own.
        sql = f"SELECT DISTINCT page FROM visits v WHERE id > ? AND (outcome IN {UPDATES} OR {OWN_VERSION})"
        return [row[0] for row in self._db.execute(sql, (visit,))]
