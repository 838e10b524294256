"""Queries for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recrawl.model import Outcome, State
from recrawl.record.rows import NO_LIMIT, NO_NUMBER, Row
from recrawl.record.store.reports import Reports, StreamPlace, UpdateFilter
from recrawl.record.store.sql.base import (
    FAILED_VISIT,
    FRAME_ONLY,
    MISSING_VISIT,
    OUTCOME_NAMES,
    SKIPPED_VISIT,
    STATE_NAMES,
    TOLD,
    UPDATES,
    SqlTable,
    enum_list,
)
from recrawl.record.store.sql.tables.marks import TAGGED, UNREAD

_STATE_NUMBERS = {name: number for number, name in STATE_NAMES.items()}
_PAGE = """SELECT p.id, p.url, p.site, p.state, p.depth, p.visits, p.changes, p.failures, p.found, p.last_visit,
                  p.last_change, p.size, v.title FROM pages p LEFT JOIN versions v ON v.id = p.version"""
_UPDATE = f"""SELECT v.id, v.page, v.at, v.outcome, v.version, p.url, p.site, s.origin,
                    CASE WHEN {UNREAD} THEN 1 ELSE 0 END AS unread,
                    coalesce(r.title, w.title) AS title, r.divergence, r.significant, r.new_links
             FROM visits v JOIN pages p ON p.id = v.page JOIN sites s ON s.id = p.site
             LEFT JOIN versions r ON r.id = v.version LEFT JOIN versions w ON w.id = p.version"""
_OUTCOME_COUNTS = ", ".join(
    f"count(*) FILTER (WHERE v.outcome = {outcome:d}) AS {outcome.name.lower()}"
    for outcome in (Outcome.CHANGED, Outcome.NEW, Outcome.GONE, Outcome.UNCHANGED)
)
_FAILURE_COUNTS = ", ".join(
    f"count(*) FILTER (WHERE {condition}) AS {name}"
    for name, condition in (("failed", FAILED_VISIT), ("skipped", SKIPPED_VISIT), ("missing", MISSING_VISIT))
)


def _named_outcomes(rows: list[Row]) -> list[Row]:
    return [{**row, "outcome": OUTCOME_NAMES[row["outcome"]]} for row in rows]


class SqlReports(SqlTable, Reports):
    """Queries over several tables; nothing is written."""

    def archived(self, since: Sequence[float]) -> list[Row]:
        later = "".join(f", sum(CASE WHEN f.at >= ? THEN f.length ELSE 0 END) AS later_{n}" for n in range(len(since)))
        sums = f"count(*) AS records, sum(f.length) AS bytes{later}"
        found: list[Row] = []
        for kind, table, where in (
            ("versions", "versions", ""),
            ("screenshots", "screenshots", "WHERE f.record = f.id"),
            ("requisites", "requisite_versions", "WHERE f.record = f.id"),
        ):
            by_site = "JOIN pages p ON p.id = f.page JOIN sites s ON s.id = p.site"
            joined, site, group = (by_site, "s.origin", "GROUP BY s.origin") if kind != "requisites" else ("", "''", "")
            rows = self._rows(f"SELECT {site} AS site, {sums} FROM {table} f {joined} {where} {group}", tuple(since))
            for row in rows:
                if row["records"]:
                    times = [int(row.pop(f"later_{n}")) for n in range(len(since))]
                    found.append({"kind": kind, **row, "bytes": int(row["bytes"]), "later": times})
        return found

    def recent(self, since: float) -> Row:
        return self._rows(
            """SELECT coalesce((SELECT 1.0 - min(c.first_visit) * 1.0 / (SELECT max(id) + 1 FROM visits)
                                FROM cycles c WHERE c.started >= ?), 0.0) AS visits,
                      coalesce((SELECT avg(CASE WHEN found >= ? THEN 1.0 ELSE 0.0 END) FROM pages), 0.0) AS pages,
                      (SELECT min(started) FROM cycles) AS first""",
            (since, since),
        )[0]

    def cycles(self, limit: int) -> list[Row]:
        return self._rows(
            f"""SELECT c.id AS cycle, c.kind, c.policy, c.budget, c.started, c.finished, c.first_visit, c.limits,
                       count(v.id) AS visits, {_OUTCOME_COUNTS}, {_FAILURE_COUNTS},
                       count(*) FILTER (WHERE {FRAME_ONLY}) AS frame_only,
                       coalesce(sum(v.received), 0) AS received
                FROM cycles c
                LEFT JOIN visits v ON v.cycle = c.id AND v.id >= c.first_visit
                WHERE c.id IN (SELECT id FROM cycles ORDER BY id DESC LIMIT ?)
                GROUP BY c.id, c.kind, c.policy, c.budget, c.started, c.finished, c.first_visit, c.limits
                ORDER BY c.id DESC""",
            (limit,),
        )

    def spent(self, cycle: int, first_visit: int, site: int = -1) -> Row:
        return self._rows(
            """SELECT count(*) AS visits, count(*) FILTER (WHERE p.site = ?) AS of_site,
                      coalesce(sum(v.received), 0) AS received,
                      min(v.score) AS lowest
               FROM visits v JOIN pages p ON p.id = v.page WHERE v.id >= ? AND v.cycle = ?""",
            (site, first_visit, cycle),
        )[0]

    def spent_by_site(self, cycle: int, first_visit: int, limit: int) -> list[Row]:
        return self._rows(
            f"""SELECT s.origin AS site, count(*) AS visits, count(*) FILTER (WHERE v.outcome IN {UPDATES}) AS updates,
                       count(*) FILTER (WHERE {FAILED_VISIT}) AS failed,
                       count(*) FILTER (WHERE v.status = 304) AS not_modified, sum(v.received) AS received
                FROM visits v JOIN pages p ON p.id = v.page JOIN sites s ON s.id = p.site
                WHERE v.id >= ? AND v.cycle = ? GROUP BY s.id, s.origin ORDER BY visits DESC, s.id LIMIT ?""",
            (first_visit, cycle, limit),
        )

    def pages(self, *, site: str, state: str, limit: int, offset: int = 0) -> list[Row]:
        where: list[str] = []
        values: list[Any] = []
        if site:
            where.append("p.site IN (SELECT id FROM sites WHERE origin = ?)")
            values.append(site)
        if state:
            where.append("p.state = ?")
            values.append(_STATE_NUMBERS[state])
        else:
            where.append(f"p.state != {State.DROPPED:d}")
        rows = self._rows(
            f"""SELECT p.url, p.state, p.depth, p.visits, p.changes, p.failures, p.found, p.last_visit, p.last_change,
                       p.size, v.title FROM pages p LEFT JOIN versions v ON v.id = p.version
                WHERE {" AND ".join(where)} ORDER BY p.id LIMIT ? OFFSET ?""",
            (*values, limit, offset),
        )
        return [{**row, "state": STATE_NAMES[row["state"]]} for row in rows]

    def pages_after(self, page: int, window: int, state: str, limit: int) -> list[Row]:
        only = "AND p.state = ?" if state else f"AND p.state != {State.DROPPED:d}"
        return self._rows(
            f"{_PAGE} WHERE p.id > ? AND p.id <= ? {only} ORDER BY p.id LIMIT ?",
            (page, page + window, *([_STATE_NUMBERS[state]] if state else []), limit),
        )

    def pages_of_site(self, site: int, after: tuple[int, int], state: str, limit: int) -> list[Row]:
        only = "AND p.state = ?" if state else f"AND p.state != {State.DROPPED:d}"
        return self._rows(
            f"{_PAGE} WHERE p.site = ? AND (p.state, p.id) > (?, ?) {only} ORDER BY p.state, p.id LIMIT ?",
            (site, *after, *([_STATE_NUMBERS[state]] if state else []), limit),
        )

    def visits_of_page(self, page: int, limit: int = NO_LIMIT, before: int = NO_NUMBER) -> list[Row]:
        rows = self._rows(
            """SELECT v.id, v.at, v.outcome, v.status, v.failure, v.detail, v.received, v.seconds, v.version, v.cycle,
                      v.score, r.text AS reason, c.policy, c.kind
               FROM visits v LEFT JOIN reasons r ON r.id = v.why LEFT JOIN cycles c ON c.id = v.cycle
               WHERE v.page = ? AND v.id < ? ORDER BY v.id DESC LIMIT ?""",
            (page, before, limit),
        )
        return _named_outcomes(rows)

    def visits_after(self, visit: int, limit: int) -> list[Row]:
        rows = self._rows(
            f"""SELECT v.id, v.at, v.outcome, v.status, v.received, v.seconds, v.failure, v.cycle, v.score, p.url,
                       p.site, r.divergence, r.title
                FROM visits v JOIN pages p ON p.id = v.page LEFT JOIN versions r ON r.id = v.version
                AND v.outcome IN {enum_list(Outcome.CHANGED, Outcome.NEW)} WHERE v.id > ? ORDER BY v.id LIMIT ?""",
            (visit, limit),
        )
        return _named_outcomes(rows)

    def updates(self, *, since: float, site: str, limit: int) -> list[Row]:
        only = "AND p.site IN (SELECT id FROM sites WHERE origin = ?)" if site else ""
        rows = self._rows(
            f"""SELECT p.url, v.at, v.outcome, r.divergence, r.significant, r.new_links, r.title
                FROM visits v JOIN pages p ON p.id = v.page LEFT JOIN versions r ON r.id = v.version
                WHERE {TOLD} AND v.at >= ? {only} ORDER BY v.at DESC, v.id DESC LIMIT ?""",
            (since, *([site] if site else []), limit),
        )
        return _named_outcomes(rows)

    def updates_before(self, place: StreamPlace, since: float, wanted: UpdateFilter, limit: int) -> list[Row]:
        where = [f"{TOLD} AND (v.at, v.id) < (?, ?) AND v.at >= ?"]
        values: list[Any] = [*place, since]
        for text, value in (
            ("p.site = ?", wanted.site),
            ("v.page = ?", wanted.page),
            ("instr(p.url, ?) > 0", wanted.path),
            (f"(v.outcome != {Outcome.CHANGED:d} OR coalesce(r.divergence, 0) >= ?)", wanted.divergence),
            ("v.outcome = ?", wanted.outcome),
            (TAGGED, wanted.tag),
        ):
            if value is not None:
                where.append(text)
                values.append(value)
        if wanted.unread:
            where.append(UNREAD)
        if wanted.significant:
            where.append(f"(v.outcome != {Outcome.CHANGED:d} OR r.significant != 0)")
        sql = f"{_UPDATE} WHERE {' AND '.join(where)} ORDER BY v.at DESC, v.id DESC LIMIT ?"
        return [{**row, "title": row["title"] or ""} for row in _named_outcomes(self._rows(sql, (*values, limit)))]

    def place_before(self, place: StreamPlace, updates: int) -> StreamPlace | None:
        sql = f"""SELECT at, id FROM visits v WHERE {TOLD} AND (v.at, v.id) < (?, ?)
                  ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?"""
        row = self._db.execute(sql, (*place, updates)).fetchone()
        return None if row is None else StreamPlace._make(row)
