"""Changes of pages without a visit: their states, and the end of their back-off.

Whoever keeps columns of pages reads again those that were visited since, which visits tell, and those changed here.
These are listed in the metadata once `begin_touched` has begun a list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from recrawl.columns import DAY
from recrawl.model import Outcome, State
from recrawl.record.rows import CycleRow
from recrawl.record.store.site_tables import MetaTable
from recrawl.record.store.sql.base import AMONG, VISITABLE, Connection, SqlTable, Transaction, enum_list, json_list
from recrawl.times import SKEW

ABSENT = enum_list(State.GONE, State.MOVED)
OF_SITES = "site IN (SELECT id FROM sites)"
"""True of all pages; with a condition on a rare state, the index by site and state saves a scan of all pages."""
_RECALL = f"""UPDATE pages SET misses = 0, missing_since = 0,
                     state = CASE WHEN state = {State.MOVED:d} AND version < 0
                                  THEN {State.FOUND:d} ELSE {State.MISSING:d} END
              WHERE state IN {ABSENT} AND id {AMONG}"""
_TOGETHER = 7 * DAY
"""Seconds between two disappearances that may have the same cause."""
TOUCHED = "touched_pages"
"""The value with the number of the list, 0 without one, and its pages."""
_MAX_TOUCHED = 20_000
"""Pages of a list; when there are more, it ends, which makes columns that were kept useless."""


class SqlPageStates(SqlTable):
    """Updates of the table `pages` without a visit."""

    _check_now = f"failures = 0, last_try = NULL WHERE (state IN {ABSENT} OR state = {State.FOUND:d})"

    def __init__(self, db: Connection, meta: MetaTable) -> None:
        super().__init__(db)
        self._meta = meta

    def touched(self) -> tuple[int, list[int]]:
        number, pages = json.loads(self._meta.get(TOUCHED, "[0, []]"))
        return number, pages

    def begin_touched(self, number: int) -> None:
        self._meta.set(TOUCHED, json.dumps([number, []]))

    def set_states(self, state: int, pages: Iterable[int]) -> None:
        pages = list(pages)
        with Transaction(self._db):
            self._db.executemany("UPDATE pages SET state = ? WHERE id = ?", ((state, page) for page in pages))
            self._touch(pages)

    def revive(self, moved_before: float, now: float = math.inf) -> None:
        with Transaction(self._db):
            # Sitemaps that list redirects do so for ever: a page that was never there is checked at the slow pace only.
            listed = f"{OF_SITES} AND state IN {ABSENT} AND listed = 1 AND (state = {State.GONE:d} OR version >= 0)"
            long_ago = f"{OF_SITES} AND state = {State.MOVED:d} AND (last_try < ? OR last_try > ?)"
            self._recall([*self._where(listed), *self._where(long_ago, (moved_before, now + SKEW))])

    def check_now(self, pages: Iterable[int]) -> None:
        pages = list(pages)
        with Transaction(self._db):
            self._db.execute(f"UPDATE pages SET {self._check_now} AND id {AMONG}", (json_list(pages),))
            self._touch(pages)

    def recall(self, pages: Iterable[int]) -> None:
        with Transaction(self._db):
            self._recall(list(pages))

    def revive_with(self, cycle: CycleRow) -> None:
        back = f"""SELECT p.site, min(w.at) - {_TOGETHER}, max(w.at) + {_TOGETHER}
                   FROM visits v JOIN pages p ON p.id = v.page JOIN visits w ON w.id =
                       (SELECT max(u.id) FROM visits u WHERE u.page = v.page AND u.id < v.id
                        AND u.outcome != {Outcome.FAILED:d})
                   WHERE v.id >= ? AND v.cycle = ? AND v.outcome = {Outcome.CHANGED:d} AND w.outcome = {Outcome.GONE:d}
                   GROUP BY p.site"""
        rows = self._db.execute(back, (cycle.first_visit, cycle.id)).fetchall()
        with_it = f"state IN {ABSENT} AND site = ? AND last_change BETWEEN ? AND ?"
        if rows:
            with Transaction(self._db):
                self._recall([page for row in rows for page in self._where(with_it, row)])

    def forgive(self, cycle: CycleRow) -> None:
        answered = f"""SELECT DISTINCT p.site, w.failure FROM visits v JOIN pages p ON p.id = v.page
                       JOIN visits w ON w.id = (SELECT max(u.id) FROM visits u WHERE u.page = v.page AND u.id < v.id)
                       WHERE v.id >= ? AND v.cycle = ? AND v.outcome != {Outcome.FAILED:d} AND w.failure IS NOT NULL"""
        many = f"""SELECT count(*) FILTER (WHERE failures > 0) >= 5
                          AND 5 * count(*) FILTER (WHERE failures > 0) > count(*) FROM pages
                   WHERE site = ? AND state IN {VISITABLE}"""
        rows = self._db.execute(answered, (cycle.first_visit, cycle.id)).fetchall()
        rows = [row for row in rows if self._value(many, row[:1])]
        failing = f"""site = ? AND state IN {VISITABLE} AND failures > 0 AND
                      (SELECT failure FROM visits v WHERE v.page = pages.id ORDER BY v.id DESC LIMIT 1) = ?"""
        if rows:
            with Transaction(self._db):
                pages = [page for row in rows for page in self._where(failing, row)]
                self._db.execute(f"UPDATE pages SET failures = 0 WHERE id {AMONG}", (json_list(pages),))
                self._touch(pages)

    def _recall(self, pages: list[int]) -> None:
        self._db.execute(_RECALL, (json_list(pages),))
        self._touch(pages)

    def _where(self, condition: str, values: Sequence[Any] = ()) -> list[int]:
        return [row[0] for row in self._db.execute(f"SELECT id FROM pages WHERE {condition}", values)]

    def _touch(self, pages: list[int]) -> None:
        """Add pages to the list; within the transaction that changes them."""
        number, before = self.touched()
        if not number or not pages:
            return
        together = sorted({*before, *pages})
        self._meta.set(TOUCHED, json.dumps([number, together] if len(together) <= _MAX_TOUCHED else [0, []]))
