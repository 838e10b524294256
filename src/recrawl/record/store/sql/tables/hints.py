"""Hints, their sources and feeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from recrawl.columns import Ints
from recrawl.model import PUSHES
from recrawl.record.rows import Columns, FeedRow
from recrawl.record.store.channels import HintTable, SourceReport
from recrawl.record.store.sql.base import AMONG, NEVER, SqlTable, json_list
from recrawl.times import SKEW

_TYPES = {"page": "i8", "kind": "i8", "seen": "f8", "value": "f8", "signals": "i8", "read": "f8", "last": "f8"}


class SqlHints(SqlTable, HintTable):
    """The tables `hints`, `sources` and `feeds`."""

    def columns(self, kinds: Sequence[str], pages: Iterable[int] | None = None) -> Columns:
        number = " ".join(f"WHEN '{kind}' THEN {place}" for place, kind in enumerate(kinds))
        where = "" if pages is None else f"WHERE h.page {AMONG}"
        sql = f"""SELECT h.page, CASE h.kind {number} ELSE -1 END, h.seen, h.value, h.signals, coalesce(s.seen, 0),
                         coalesce(p.last_visit, {NEVER})
                  FROM hints h JOIN pages p ON p.id = h.page
                  LEFT JOIN sources s ON s.site = p.site AND s.kind = h.kind {where}"""
        return self._columns(sql, _TYPES, () if pages is None else (json_list(pages),))

    def claims(self, kind: str, pages: Iterable[int]) -> Columns:
        return self._columns(
            f"""SELECT p.id, coalesce(p.last_visit, {NEVER}), coalesce(h.value, -1) FROM pages p
                LEFT JOIN hints h ON h.page = p.id AND h.kind = ? WHERE p.id {AMONG}""",
            {"page": "i8", "last": "f8", "before": "f8"},
            (kind, json_list(pages)),
        )

    def values(self, kind: str, pages: Iterable[int]) -> dict[int, float]:
        sql = f"SELECT page, value FROM hints WHERE kind = ? AND page {AMONG}"
        return dict(self._db.execute(sql, (kind, json_list(pages))))

    def pushed_pages(self, now: float = math.inf) -> Ints:
        sql = f"""SELECT DISTINCT h.page FROM hints h JOIN pages p ON p.id = h.page
                  WHERE h.kind IN ({", ".join("?" * len(PUSHES))})
                  AND (h.seen > coalesce(p.last_visit, {NEVER}) OR p.last_visit > ?)"""
        return self._columns(sql, {"page": "i8"}, (*PUSHES, now + SKEW))["page"]

    def sources(self) -> list[SourceReport]:
        sql = """SELECT s.id, s.origin, h.kind, h.seen, h.signals, h.ignored, h.problem
                 FROM sources h JOIN sites s ON s.id = h.site ORDER BY s.id, h.kind"""
        return [SourceReport._make(row) for row in self._db.execute(sql)]

    def feeds(self, site: int) -> list[FeedRow]:
        sql = "SELECT site, url, seen, etag, modified FROM feeds WHERE site = ? ORDER BY url"
        return [FeedRow._make(row) for row in self._db.execute(sql, (site,))]
