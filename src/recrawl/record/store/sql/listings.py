"""Blocks of tables that grow."""

from __future__ import annotations

from typing import Any

from recrawl.model import State
from recrawl.record.rows import Row, VersionRow
from recrawl.record.store.reports import Listings, StreamPlace
from recrawl.record.store.sql.base import TOLD, SqlTable
from recrawl.record.store.sql.tables.marks import TAGGED, UNREAD

_PAGE = """SELECT p.id, p.url, s.origin AS site, p.state, p.depth, p.visits, p.changes, p.failures, p.found,
                  p.last_visit, p.last_change, p.size, v.title, coalesce(t.url, '') AS moved_to
           FROM pages p JOIN sites s ON s.id = p.site LEFT JOIN versions v ON v.id = p.version
           LEFT JOIN pages t ON t.id = p.target"""
_CHANGE = """SELECT v.id, p.url, s.origin AS site, v.at, v.outcome, r.divergence, r.significant, r.content,
                    r.content_share, r.significance, r.new_links, r.title
             FROM visits v JOIN pages p ON p.id = v.page JOIN sites s ON s.id = p.site
             LEFT JOIN versions r ON r.id = v.version"""
_DELIVERY = _CHANGE.replace("SELECT v.id,", "SELECT v.page, v.version, p.same_as, v.id,", 1)
_VISIT = """SELECT v.id, p.url, v.at, v.outcome, v.status, v.failure, v.detail, v.received, v.seconds, v.version,
                   v.cycle, v.score, r.text AS reason, c.policy, c.kind
            FROM visits v JOIN pages p ON p.id = v.page LEFT JOIN reasons r ON r.id = v.why
            LEFT JOIN cycles c ON c.id = v.cycle"""
_VERSION = f"""SELECT {", ".join(f"v.{name}" for name in VersionRow._fields)}, p.url,
                     (SELECT count(*) FROM versions w WHERE w.page = v.page AND w.id <= v.id) AS number
              FROM versions v JOIN pages p ON p.id = v.page"""


def _of_site(site: str) -> str:
    return "AND p.site IN (SELECT id FROM sites WHERE origin = ?)" if site else ""


def _given(site: str) -> list[Any]:
    return [site] if site else []


class SqlListings(SqlTable, Listings):
    """Blocks of `pages`, `visits` and `versions`; nothing is written."""

    def page(self, key: int) -> Row | None:
        return self._row(f"{_PAGE} WHERE p.key = ?", (key,))

    def pages_after(self, page: int, site: str, state: int | None, limit: int) -> list[Row]:
        only = f"AND p.state != {State.DROPPED:d}" if state is None else "AND p.state = ?"
        return self._rows(
            f"{_PAGE} WHERE p.id > ? {_of_site(site)} {only} ORDER BY p.id LIMIT ?",
            (page, *_given(site), *([] if state is None else [state]), limit),
        )

    def changes_before(
        self, place: StreamPlace, since: float, site: str, limit: int, *, tag: str = "", unread: bool = False
    ) -> list[Row]:
        only = (f" AND {TAGGED}" if tag else "") + (f" AND {UNREAD}" if unread else "")
        return self._rows(
            f"""{_CHANGE} WHERE {TOLD} AND v.at >= ? {_of_site(site)} AND v.at <= ?
                AND (v.at < ? OR v.id < ?){only} ORDER BY v.at DESC, v.id DESC LIMIT ?""",
            (since, *_given(site), place.at, place.at, place.id, *([tag] if tag else []), limit),
        )

    def changes_after(self, visit: int, site: str, limit: int) -> list[Row]:
        return self._rows(
            f"{_CHANGE} WHERE v.id > ? {_of_site(site)} AND {TOLD} ORDER BY v.id LIMIT ?",
            (visit, *_given(site), limit),
        )

    def deliveries_after(self, visit: int, site: str, limit: int) -> list[Row]:
        return self._rows(
            f"{_DELIVERY} WHERE v.id > ? {_of_site(site)} AND {TOLD} ORDER BY v.id LIMIT ?",
            (visit, *_given(site), limit),
        )

    def delivery(self, visit: int) -> Row | None:
        return self._row(f"{_DELIVERY} WHERE v.id = ?", (visit,))

    def deliveries(self, visit: int, site: str) -> int:
        row = self._row(
            f"""SELECT count(*) AS number FROM visits v JOIN pages p ON p.id = v.page
                WHERE v.id > ? {_of_site(site)} AND {TOLD}""",
            (visit, *_given(site)),
        )
        return int(row["number"]) if row else 0

    def visits_after(self, visit: int, since: float, site: str, limit: int) -> list[Row]:
        return self._rows(
            f"{_VISIT} WHERE v.id > ? AND v.at >= ? {_of_site(site)} ORDER BY v.id LIMIT ?",
            (visit, since, *_given(site), limit),
        )

    def visits_before(self, page: int, visit: int, limit: int) -> list[Row]:
        return self._rows(f"{_VISIT} WHERE v.page = ? AND v.id < ? ORDER BY v.id DESC LIMIT ?", (page, visit, limit))

    def versions_after(self, version: int, since: float, site: str, limit: int) -> list[Row]:
        return self._rows(
            f"{_VERSION} WHERE v.id > ? AND v.at >= ? {_of_site(site)} ORDER BY v.id LIMIT ?",
            (version, since, *_given(site), limit),
        )
