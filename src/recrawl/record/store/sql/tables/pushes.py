"""Pushes and their senders."""

from __future__ import annotations

from collections.abc import Iterable

from recrawl.model import Outcome
from recrawl.record.rows import PushRow, Row
from recrawl.record.store.channels import PushTable
from recrawl.record.store.sql.base import SqlTable, insert

_PUT = insert("pushes", PushRow._fields) + " ON CONFLICT DO NOTHING"


class SqlPushes(SqlTable, PushTable):
    """The tables `pushes`, `pushers` (counts of this hour), `pushed` (awaiting a visit) and `push_sources`."""

    def put(self, row: PushRow) -> bool:
        return self._db.execute(_PUT, row).rowcount > 0

    def waiting(self) -> int:
        return int(self._value("SELECT count(*) FROM pushes"))

    def oldest(self, limit: int) -> list[PushRow]:
        sql = "SELECT key, kind, source, at, url FROM pushes ORDER BY at, key, kind, source LIMIT ?"
        return [PushRow._make(row) for row in self._db.execute(sql, (limit,))]

    def remove(self, rows: Iterable[PushRow]) -> None:
        sql = "DELETE FROM pushes WHERE key = ? AND kind = ? AND source = ?"
        self._db.executemany(sql, (row[:3] for row in rows))

    def start_hour(self, hour: int) -> None:
        self._db.execute("DELETE FROM pushers WHERE hour != ?", (hour,))

    def count_other_senders(self, source: str) -> int:
        return int(self._value("SELECT count(*) FROM pushers WHERE source != ?", (source,)))

    def taken_in_hour(self, source: str, hour: int) -> int:
        sql = "INSERT INTO pushers (source, hour, taken, refused) VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING"
        self._db.execute(sql, (source, hour))
        return int(self._value("SELECT taken FROM pushers WHERE source = ?", (source,)))

    def add_to_hour(self, source: str, taken: int, refused: int) -> None:
        sql = "UPDATE pushers SET taken = taken + ?, refused = refused + ? WHERE source = ?"
        self._db.execute(sql, (taken, refused, source))

    def count_awaited(self) -> int:
        return int(self._value("SELECT count(*) FROM pushed"))

    def await_visit(self, page: int, source: str, at: float) -> bool:
        sql = "INSERT INTO pushed (page, source, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        return self._db.execute(sql, (page, source, at)).rowcount > 0

    def awaited(self, within: float) -> list[tuple[int, str, int | None]]:
        sql = """SELECT q.page, q.source, (SELECT v.outcome FROM visits v WHERE v.page = q.page AND v.at >= q.at
                     AND v.at <= q.at + ? AND v.outcome != ? ORDER BY v.id LIMIT 1) FROM pushed q"""
        return self._db.execute(sql, (within, int(Outcome.FAILED))).fetchall()

    def remove_awaited(self, claims: Iterable[tuple[int, str]]) -> None:
        self._db.executemany("DELETE FROM pushed WHERE page = ? AND source = ?", claims)

    def remove_awaited_before(self, at: float) -> None:
        self._db.execute("DELETE FROM pushed WHERE at < ?", (at,))

    def count_claim(self, source: str, kind: str, at: float) -> None:
        self._db.execute(
            """INSERT INTO push_sources AS p (source, kind, heard, "right", wrong, last, trusted)
               VALUES (?, ?, 1, 0, 0, ?, 1) ON CONFLICT (source) DO UPDATE SET heard = p.heard + 1,
               last = CASE WHEN excluded.last > p.last THEN excluded.last ELSE p.last END""",
            (source, kind, at),
        )

    def keep_sources(self, limit: int) -> None:
        sql = """DELETE FROM push_sources WHERE source NOT IN
                 (SELECT source FROM push_sources ORDER BY trusted, last DESC LIMIT ?)"""
        self._db.execute(sql, (limit,))

    def untrusted(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT source FROM push_sources WHERE trusted = 0")}

    def sources(self) -> list[Row]:
        return self._rows("SELECT * FROM push_sources ORDER BY trusted, source")

    def score(self, source: str) -> tuple[float, float, bool] | None:
        sql = 'SELECT "right", wrong, trusted FROM push_sources WHERE source = ?'
        row = self._db.execute(sql, (source,)).fetchone()
        return None if row is None else (row[0], row[1], bool(row[2]))

    def set_score(self, source: str, right: float, wrong: float, *, trusted: bool) -> None:
        sql = 'UPDATE push_sources SET "right" = ?, wrong = ?, trusted = ? WHERE source = ?'
        self._db.execute(sql, (right, wrong, int(trusted), source))
