"""Sites, cycles and single values."""

from __future__ import annotations

from typing import Any

from recrawl.record.rows import NO_LIMIT, CycleRow, SiteRow
from recrawl.record.store.site_tables import CycleTable, MetaTable, SiteTable
from recrawl.record.store.sql.base import SqlTable, insert, upsert

_SET_VALUE = upsert("meta", ("name", "value"), ("name",))


class SqlSites(SqlTable, SiteTable):
    """The table `sites`."""

    def all(self) -> list[SiteRow]:
        return [SiteRow._make(row) for row in self._db.execute("SELECT * FROM sites ORDER BY id")]

    def get(self, site: int) -> SiteRow:
        return SiteRow._make(self._db.execute("SELECT * FROM sites WHERE id = ?", (site,)).fetchone())

    def origins(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT origin FROM sites")}

    def number(self, origin: str) -> int | None:
        site = self._value("SELECT id FROM sites WHERE origin = ?", (origin,))
        return None if site is None else int(site)

    def names(self, limit: int) -> list[tuple[int, str]]:
        return self._db.execute("SELECT id, origin FROM sites ORDER BY origin LIMIT ?", (limit,)).fetchall()

    def frame(self, site: int) -> bytes | None:
        data = self._value("SELECT data FROM frames WHERE site = ?", (site,))
        return None if data is None else bytes(data)

    def held_until(self, origin: str) -> float | None:
        until = self._value("SELECT held_until FROM sites WHERE origin = ?", (origin,))
        return None if until is None else float(until)


class SqlCycles(SqlTable, CycleTable):
    """The table `cycles`."""

    def newest(self, limit: int = NO_LIMIT) -> list[CycleRow]:
        sql = "SELECT * FROM cycles ORDER BY id DESC LIMIT ?"
        return [CycleRow._make(row) for row in self._db.execute(sql, (limit,))]

    def begin(self, row: CycleRow) -> None:
        self._db.execute(insert("cycles", CycleRow._fields), row)

    def set_limits(self, cycle: int, limits: str) -> None:
        self._db.execute("UPDATE cycles SET limits = ? WHERE id = ?", (limits, cycle))

    def finish(self, cycle: int, at: float) -> None:
        self._db.execute("UPDATE cycles SET finished = ? WHERE id = ?", (at, cycle))

    def reopen(self, cycle: int) -> None:
        self._db.execute("UPDATE cycles SET finished = NULL WHERE id = ?", (cycle,))

    def without_summary(self) -> list[CycleRow]:
        sql = """SELECT c.* FROM cycles c LEFT JOIN cycle_summaries s ON s.cycle = c.id
                 WHERE s.cycle IS NULL AND c.finished IS NOT NULL ORDER BY c.id"""
        return [CycleRow._make(row) for row in self._db.execute(sql)]


class SqlMeta(SqlTable, MetaTable):
    """The table `meta`."""

    def get(self, name: str, default: Any) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return default if row is None else row[0]

    def set(self, name: str, value: float | str) -> None:
        self._db.execute(_SET_VALUE, (name, value))
