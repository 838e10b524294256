"""Summaries."""

from __future__ import annotations

import json
from collections.abc import Sequence

from recrawl.model import Outcome
from recrawl.record.rows import Row
from recrawl.record.store.reports import SummaryTable
from recrawl.record.store.sql.base import SqlTable, Transaction, upsert

_CYCLE = """SELECT c.id, c.kind, c.policy, c.budget, c.started, c.finished, s.visits, s.unchanged, s.changed, s.new,
                   s.gone, s.failed, s.skipped, s.missing,
                   s.frame_only, s.not_modified, s.received, s.seconds, s.expected, s.expected_sd,
                   s.failures, s.pages, s.freshness, s.freshness_sd, s.age, s.ages
            FROM cycles c LEFT JOIN cycle_summaries s ON s.cycle = c.id"""


COUNTED = (*(outcome.name.lower() for outcome in Outcome), "skipped", "missing")
"""Columns that add up to the visits of a cycle."""


class SqlSummaries(SqlTable, SummaryTable):
    """The tables `cycle_summaries`, `site_cycles` and `site_summaries`."""

    def write(self, cycle: Row, by_site: Sequence[Row], sites: Sequence[Row] | None = None) -> None:
        with Transaction(self._db):
            self._replace("cycle_summaries", ("cycle",), [cycle])
            self._replace("site_cycles", ("site", "cycle"), by_site)
            if sites is not None:
                self._replace_sites(sites)

    def write_sites(self, sites: Sequence[Row]) -> None:
        with Transaction(self._db):
            self._replace_sites(sites)

    def _replace_sites(self, sites: Sequence[Row]) -> None:
        self._db.execute("DELETE FROM site_summaries")
        self._replace("site_summaries", ("site",), sites)

    def site_rows(self) -> list[Row]:
        return self._rows("SELECT * FROM site_summaries ORDER BY site")

    def _replace(self, table: str, key: Sequence[str], rows: Sequence[Row]) -> None:
        if rows:
            names = list(rows[0])
            sql = upsert(table, names, key)
            self._db.executemany(sql, ([row[name] for name in names] for row in rows))

    def latest(self) -> Row | None:
        return self._row(
            """SELECT s.*, c.budget, c.finished - c.started AS took, coalesce(c.finished, c.started) AS at
               FROM cycle_summaries s JOIN cycles c ON c.id = s.cycle
               WHERE s.freshness IS NOT NULL ORDER BY s.cycle DESC LIMIT 1"""
        )

    def latest_cycle(self) -> Row | None:
        return self._row(f"{_CYCLE} WHERE s.freshness IS NOT NULL ORDER BY c.id DESC LIMIT 1")

    def cycles(self, before: int, limit: int) -> list[Row]:
        return self._rows(f"{_CYCLE} WHERE c.id < ? ORDER BY c.id DESC LIMIT ?", (before, limit))

    def refreshes(self, limit: int, since: float, until: float) -> list[Row]:
        sql = """SELECT s.*, c.policy, c.started FROM cycle_summaries s JOIN cycles c ON c.id = s.cycle
                 WHERE c.kind = 'cycle' AND c.started BETWEEN ? AND ? ORDER BY s.cycle DESC LIMIT ?"""
        return self._rows(sql, (since, until, limit))

    def busiest_sites(self, limit: int) -> list[Row]:
        return self._rows(
            """SELECT x.site AS id, s.origin, x.visits, x.updates AS found, x.received,
                      1.0 * x.visits
                          / coalesce((SELECT nullif(visits, 0) FROM cycle_summaries WHERE cycle = x.cycle), 1) AS share
               FROM site_cycles x JOIN sites s ON s.id = x.site
               WHERE x.cycle = (SELECT max(s.cycle) FROM cycle_summaries s JOIN cycles c ON c.id = s.cycle
                                WHERE c.kind = 'cycle')
               ORDER BY x.visits DESC, s.origin LIMIT ?""",
            (limit,),
        )

    def totals(self) -> Row:
        sql = "SELECT coalesce(sum(changes), 0) AS changes, coalesce(sum(failing), 0) AS failing FROM site_summaries"
        return self._rows(sql)[0]

    def visit_totals(self) -> Row:
        names = ("received", "not_modified", "frame_only", "seconds", *COUNTED)
        sums = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in names)
        return self._rows(f"SELECT {sums} FROM cycle_summaries")[0]

    def failures(self, cycles: int) -> list[dict[str, int]]:
        rows = self._db.execute("SELECT failures FROM cycle_summaries ORDER BY cycle DESC LIMIT ?", (cycles,))
        return [json.loads(row[0]) for row in rows]

    def sites(self, after: int, limit: int) -> list[Row]:
        return self._rows(
            """SELECT s.id, s.origin AS url, s.robots_status, s.robots_at, s.sitemap_at, s.held_until, t.*
               FROM sites s LEFT JOIN site_summaries t ON t.site = s.id WHERE s.id > ? ORDER BY s.id LIMIT ?""",
            (after, limit),
        )

    def site(self, site: int) -> Row | None:
        return self._row(
            """SELECT s.id, s.origin AS url, s.robots_status, s.robots_at, s.sitemap_at, s.held_until, s.lm_good,
                      s.lm_bad, s.etag_good, s.etag_bad, t.*
               FROM sites s LEFT JOIN site_summaries t ON t.site = s.id WHERE s.id = ?""",
            (site,),
        )

    def site_cycles(self, site: int, limit: int) -> list[Row]:
        return self._rows("SELECT * FROM site_cycles WHERE site = ? ORDER BY cycle DESC LIMIT ?", (site, limit))

    def recent(self, cycles: int, site: int | None) -> tuple[int, list[Row]]:
        first = self._value("SELECT coalesce(max(cycle), 0) - ? FROM cycle_summaries", (cycles - 1,))
        visits = self._value("SELECT coalesce(sum(visits), 0) FROM cycle_summaries WHERE cycle >= ?", (first,))
        rows = self._rows(
            """SELECT s.*, m.pages, m.live, m.gone, m.missing, m.visits AS all_visits, m.changes, m.failing, m.bytes,
                      m.last_visit, m.rate, m.freshness, m.freshness_sd, m.age,
                      coalesce(x.visits, 0) AS visits, coalesce(x.updates, 0) AS updates,
                      coalesce(x.failed, 0) AS failed
               FROM sites s LEFT JOIN site_summaries m ON m.site = s.id LEFT JOIN (
                    SELECT site, sum(visits) AS visits, sum(updates) AS updates, sum(failed) AS failed
                    FROM site_cycles WHERE cycle >= ? GROUP BY site) x ON x.site = s.id
               WHERE CAST(? AS BIGINT) IS NULL OR s.id = ? ORDER BY s.origin""",
            (first, site, site),
        )
        return visits, rows
