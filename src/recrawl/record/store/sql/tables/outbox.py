"""What is to be delivered: alerts, and changes for sinks."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from recrawl.columns import DAY
from recrawl.record.rows import OutboxRow, OutboxState, Row
from recrawl.record.store.channels import OutboxTable
from recrawl.record.store.sql.base import AMONG, SqlTable, enum_list, insert, json_list

_ADD = insert("outbox", OutboxRow._fields) + " ON CONFLICT DO NOTHING"
_DONE = enum_list(OutboxState.SENT, OutboxState.PARKED, OutboxState.REVERTED, OutboxState.DROPPED)
_SKIPPED = enum_list(OutboxState.PARKED, OutboxState.DROPPED)
_OF_ALERTS = "substr(alert, 1, 5) != 'sink:'"
_DUE = "(due <= ? OR due > ?)"
"""An entry is due, or so late that its time is of a clock that was wrong."""
_LATEST = 2 * DAY
_ENTRY = "SELECT id, key, alert, page, parcel, tries, body FROM outbox"


class SqlOutbox(SqlTable, OutboxTable):
    """The table `outbox`."""

    def add(self, row: OutboxRow) -> bool:
        return self._db.execute(_ADD, row).rowcount > 0

    def held_pages(self) -> set[int]:
        return {row[0] for row in self._db.execute(f"SELECT page FROM outbox WHERE state = {OutboxState.HELD:d}")}

    def held(self, page: int) -> list[tuple[int, int, bytes | None]]:
        sql = f"SELECT id, remaining, before FROM outbox WHERE page = ? AND state = {OutboxState.HELD:d} ORDER BY id"
        return self._db.execute(sql, (page,)).fetchall()

    def revert(self, entry: int) -> None:
        self._db.execute(f"UPDATE outbox SET state = {OutboxState.REVERTED:d} WHERE id = ?", (entry,))

    def release(self, entry: int, due: float) -> None:
        sql = f"""UPDATE outbox SET state = {OutboxState.WAITING:d}, remaining = 0,
                  due = CASE WHEN due > ? THEN due ELSE ? END WHERE id = ?"""
        self._db.execute(sql, (due, due, entry))

    def hold_on(self, entry: int) -> None:
        self._db.execute("UPDATE outbox SET remaining = remaining - 1 WHERE id = ?", (entry,))

    def claim(self, receiver: str) -> bool:
        del receiver
        return True  # the file is on one machine, where a lock in its folder is enough

    def unclaim(self, receiver: str) -> None:
        """Nothing to give back."""

    def first_of_pages(self, receiver: str, now: float, limit: int, *, fewest_tries: bool = False) -> list[Row]:
        order = "tries, id" if fewest_tries else "id"
        first = f"SELECT min(id) FROM outbox WHERE alert = ? AND state = {OutboxState.WAITING:d} GROUP BY page"
        sql = f"{_ENTRY} WHERE id IN ({first}) AND {_DUE} ORDER BY {order} LIMIT ?"
        return self._rows(sql, (receiver, now, now + _LATEST, limit))

    def due(self, receiver: str, now: float, limit: int, latest: float) -> list[Row]:
        sql = f"{_ENTRY} WHERE alert = ? AND state = {OutboxState.WAITING:d} AND {_DUE} ORDER BY id LIMIT ?"
        return self._rows(sql, (receiver, now, now + latest, limit))

    def hurry(self, receiver: str, now: float) -> None:
        sql = f"UPDATE outbox SET due = ? WHERE alert = ? AND state = {OutboxState.WAITING:d} AND due > ?"
        self._db.execute(sql, (now, receiver, now))

    def set_parcel(self, entries: Iterable[int], parcel: str) -> None:
        self._db.executemany("UPDATE outbox SET parcel = ? WHERE id = ?", ((parcel, entry) for entry in entries))

    def set_sent(self, entries: Iterable[int], at: float) -> None:
        sql = f"UPDATE outbox SET state = {OutboxState.SENT:d}, sent = ?, error = '' WHERE id = ?"
        self._db.executemany(sql, ((at, entry) for entry in entries))

    def set_failed(self, entry: int, state: OutboxState, tries: int, due: float, error: str) -> None:
        sql = "UPDATE outbox SET state = ?, tries = ?, due = ?, error = ? WHERE id = ?"
        self._db.execute(sql, (int(state), tries, due, error, entry))

    def remove(self, entries: Collection[int]) -> None:
        self._db.execute(f"DELETE FROM outbox WHERE id {AMONG}", (json_list(entries),))

    def remove_skipped(self, receiver: str, page: int, before: int, *, parked: bool) -> None:
        states = _SKIPPED if parked else enum_list(OutboxState.DROPPED)
        sql = f"DELETE FROM outbox WHERE alert = ? AND page = ? AND id < ? AND state IN {states}"
        self._db.execute(sql, (receiver, page, before))

    def first_skipped(self, receiver: str, page: int, before: int) -> Row | None:
        sql = f"""{_ENTRY} WHERE alert = ? AND page = ? AND id < ? AND state IN {_SKIPPED} ORDER BY id LIMIT 1"""
        return self._row(sql, (receiver, page, before))

    def remove_receiver(self, receiver: str) -> None:
        self._db.execute("DELETE FROM outbox WHERE alert = ?", (receiver,))

    def drop_waiting(self, receivers: Collection[str]) -> None:
        self._db.execute(
            f"""UPDATE outbox SET state = {OutboxState.DROPPED:d} WHERE state = {OutboxState.WAITING:d}
                AND {_OF_ALERTS} AND alert NOT IN (SELECT j.value FROM json_each(?) j)""",
            (json.dumps(sorted(receivers)),),
        )

    def parked(self, receivers: Collection[str], limit: int, after: int = -1) -> list[Row]:
        among = "AND alert IN (SELECT j.value FROM json_each(?) j)" if receivers else ""
        sql = f"""SELECT id, alert, key, page, tries, due, created, error, body FROM outbox
                  WHERE state = {OutboxState.PARKED:d} AND id > ? {among} ORDER BY id LIMIT ?"""
        return self._rows(sql, (after, *([json.dumps(sorted(receivers))] if receivers else []), limit))

    def unpark(self, entries: Collection[int], state: OutboxState, due: float) -> int:
        sql = f"""UPDATE outbox SET state = ?, due = ?, tries = 0, parcel = ''
                  WHERE state = {OutboxState.PARKED:d} AND id {AMONG}"""
        return self._db.execute(sql, (int(state), due, json_list(entries))).rowcount

    def next_due(self) -> float | None:
        due = self._value(f"SELECT min(due) FROM outbox WHERE state = {OutboxState.WAITING:d}")
        return None if due is None else float(due)

    def counts(self) -> list[tuple[str, int, int]]:
        found = self._db.execute(
            f"""SELECT alert, state, count(*) FROM outbox
                WHERE state IN {enum_list(OutboxState.WAITING, OutboxState.PARKED)}
                GROUP BY alert, state ORDER BY alert, state"""
        )
        return [(row[0], row[1], row[2]) for row in found]

    def oldest_waiting(self, receiver: str) -> Row | None:
        sql = f"{_ENTRY} WHERE alert = ? AND state = {OutboxState.WAITING:d} ORDER BY id LIMIT 1"
        return self._row(sql, (receiver,))

    def last_error(self, receiver: str) -> str:
        sql = f"""SELECT error FROM outbox WHERE alert = ? AND state = {OutboxState.WAITING:d} AND error != ''
                  ORDER BY id LIMIT 1"""
        return str(self._value(sql, (receiver,)) or "")

    def remove_done(self, created_before: float) -> None:
        self._db.execute(
            f"DELETE FROM outbox WHERE state IN {_DONE} AND {_OF_ALERTS} AND created < ?", (created_before,)
        )

    def newest(self, limit: int, before: int) -> list[Row]:
        sql = f"""SELECT id, alert, key, state, tries, due, created, sent, error, body FROM outbox
                  WHERE id < ? AND {_OF_ALERTS} ORDER BY id DESC LIMIT ?"""
        return self._rows(sql, (before, limit))
