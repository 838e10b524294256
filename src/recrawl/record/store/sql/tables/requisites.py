"""Requisites, their versions and hosts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from recrawl.record.rows import HostRow, RequisiteRow, RequisiteVersion
from recrawl.record.store.requisites import RequisiteTable
from recrawl.record.store.sql.base import AMONG, SqlTable, json_list
from recrawl.times import SKEW


class SqlRequisites(SqlTable, RequisiteTable):
    """The tables `requisites`, `requisite_versions`, `page_requisites` and `requisite_hosts`."""

    def known(self, keys: Iterable[int]) -> list[tuple[int, int, int]]:
        sql = f"SELECT key, id, level FROM requisites WHERE key {AMONG}"
        return self._db.execute(sql, (json_list(keys),)).fetchall()

    def get_many(self, requisites: Iterable[int]) -> list[RequisiteRow]:
        rows = self._db.execute(f"SELECT * FROM requisites WHERE id {AMONG} ORDER BY id", (json_list(requisites),))
        return [RequisiteRow._make(row) for row in rows]

    def find(self, key: int) -> RequisiteRow | None:
        # In a cluster, shards that need it know it too: the one that has requested it comes first.
        sql = "SELECT * FROM requisites WHERE key = ? ORDER BY version DESC, target DESC LIMIT 1"
        row = self._db.execute(sql, (key,)).fetchone()
        return None if row is None else RequisiteRow._make(row)

    def waiting(self, limit: int) -> list[RequisiteRow]:
        sql = "SELECT * FROM requisites WHERE checked IS NULL ORDER BY style DESC, id LIMIT ?"
        rows = self._db.execute(sql, (limit,))
        return [RequisiteRow._make(row) for row in rows]

    def due(
        self, requisites: Iterable[int], checked_before: float, failed_before: float, now: float = math.inf
    ) -> list[int]:
        sql = f"""SELECT id FROM requisites WHERE id {AMONG}
                  AND (checked < CASE WHEN failures > 0 THEN ? ELSE ? END OR checked > ?)"""
        values = (json_list(requisites), failed_before, checked_before, now + SKEW)
        return [row[0] for row in self._db.execute(sql, values)]

    def of_pages(self, pages: Iterable[int]) -> dict[int, tuple[int, bytes]]:
        sql = f"SELECT page, level, requisites FROM page_requisites WHERE page {AMONG}"
        return {page: (level, needed) for page, level, needed in self._db.execute(sql, (json_list(pages),))}

    def version(self, version: int) -> RequisiteVersion | None:
        return self._version("SELECT * FROM requisite_versions WHERE id = ?", version)

    def with_payload(self, payload: bytes) -> RequisiteVersion | None:
        sql = "SELECT * FROM requisite_versions WHERE payload = ? AND record = id AND length > 0 ORDER BY id LIMIT 1"
        return self._version(sql, payload)

    def closest(self, requisite: int, at: float) -> RequisiteVersion | None:
        sql = """SELECT * FROM requisite_versions WHERE requisite = ? AND length > 0
                 ORDER BY abs(at - ?), id DESC LIMIT 1"""
        return self._version(sql, requisite, at)

    def host(self, origin: str) -> HostRow | None:
        row = self._db.execute("SELECT * FROM requisite_hosts WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else HostRow._make(row)

    def _version(self, sql: str, *values: float | bytes) -> RequisiteVersion | None:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else RequisiteVersion._make(row)
