"""Alerts to be sent."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from recrawl.record.outbox_rows import OutboxRow, OutboxState
from recrawl.record.rows import Row
from recrawl.record.store.channels import OutboxTable
from recrawl.record.store.sql.base import SqlTable, Transaction, enum_list, insert

_ADD = insert("outbox", OutboxRow._fields) + " ON CONFLICT DO NOTHING"
_DONE = enum_list(OutboxState.SENT, OutboxState.GIVEN_UP, OutboxState.DROPPED)


class SqlOutbox(SqlTable, OutboxTable):
    """The table `outbox`."""

    def add(self, row: OutboxRow) -> bool:
        return self._db.execute(_ADD, row).rowcount > 0

    def held_pages(self) -> set[int]:
        return {row[0] for row in self._db.execute(f"SELECT page FROM outbox WHERE state = {OutboxState.HELD:d}")}

    def held(self, page: int) -> list[tuple[int, int, bytes | None]]:
        sql = f"SELECT id, remaining, before FROM outbox WHERE page = ? AND state = {OutboxState.HELD:d} ORDER BY id"
        return self._db.execute(sql, (page,)).fetchall()

    def drop(self, entry: int) -> None:
        self._db.execute(f"UPDATE outbox SET state = {OutboxState.DROPPED:d} WHERE id = ?", (entry,))

    def release(self, entry: int, due: float) -> None:
        sql = f"""UPDATE outbox SET state = {OutboxState.WAITING:d}, remaining = 0,
                  due = CASE WHEN due > ? THEN due ELSE ? END WHERE id = ?"""
        self._db.execute(sql, (due, due, entry))

    def hold_on(self, entry: int) -> None:
        self._db.execute("UPDATE outbox SET remaining = remaining - 1 WHERE id = ?", (entry,))

    def due(self, now: float, limit: int, without: Collection[str] = ()) -> list[Row]:
        return self._rows(
            f"""SELECT id, key, alert, parcel, tries, body FROM outbox
                WHERE state = {OutboxState.WAITING:d} AND due <= ? AND alert NOT IN (SELECT j.value FROM json_each(?) j)
                ORDER BY id LIMIT ?""",
            (now, json.dumps(list(without)), limit),
        )

    def set_parcel(self, entries: Iterable[int], parcel: str) -> None:
        self._db.executemany("UPDATE outbox SET parcel = ? WHERE id = ?", ((parcel, entry) for entry in entries))

    def set_sent(self, entries: Iterable[int], at: float) -> None:
        sql = f"UPDATE outbox SET state = {OutboxState.SENT:d}, sent = ?, error = '' WHERE id = ?"
        with Transaction(self._db):
            self._db.executemany(sql, ((at, entry) for entry in entries))

    def set_failed(self, entries: Iterable[int], state: OutboxState, tries: int, due: float, error: str) -> None:
        sql = "UPDATE outbox SET state = ?, tries = ?, due = ?, error = ? WHERE id = ?"
        with Transaction(self._db):
            self._db.executemany(sql, ((int(state), tries, due, error, entry) for entry in entries))

    def next_due(self) -> float | None:
        due = self._value(f"SELECT min(due) FROM outbox WHERE state = {OutboxState.WAITING:d}")
        return None if due is None else float(due)

    def count_waiting(self) -> int:
        return int(self._value(f"SELECT count(*) FROM outbox WHERE state = {OutboxState.WAITING:d}"))

    def remove_done(self, created_before: float) -> None:
        self._db.execute(f"DELETE FROM outbox WHERE state IN {_DONE} AND created < ?", (created_before,))

    def newest(self, limit: int, before: int) -> list[Row]:
        sql = """SELECT id, alert, key, state, tries, due, created, sent, error, body FROM outbox WHERE id < ?
                 ORDER BY id DESC LIMIT ?"""
        return self._rows(sql, (before, limit))
