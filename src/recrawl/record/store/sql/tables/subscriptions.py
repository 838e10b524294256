"""WebSub subscriptions and verified IndexNow keys."""

from __future__ import annotations

import math

from recrawl.record.rows import Row
from recrawl.record.store.channels import KeyProofTable, SubscriptionTable
from recrawl.record.store.sql.base import SqlTable, upsert
from recrawl.times import SKEW

_PUBLIC = "name, topic, hub, state, created, expires, due, tries, error"
_INITIAL: Row = {"state": "asked", "expires": 0, "due": 0, "tries": 0, "error": "", "callback": ""}


class SqlSubscriptions(SqlTable, SubscriptionTable):
    """The table `subscriptions`."""

    def get(self, name: str) -> Row | None:
        return self._row("SELECT * FROM subscriptions WHERE name = ?", (name,))

    def of_topic(self, topic: str) -> Row | None:
        return self._row("SELECT * FROM subscriptions WHERE topic = ?", (topic,))

    def public(self) -> list[Row]:
        return self._rows(f"SELECT {_PUBLIC} FROM subscriptions ORDER BY topic")

    def due(self, now: float, longest: float = math.inf) -> list[Row]:
        sql = """SELECT * FROM subscriptions WHERE state != 'denied' AND callback != '' AND (due <= ? OR due > ?)
                 ORDER BY name"""
        return self._rows(sql, (now, now + longest + SKEW))

    def put(self, row: Row) -> None:
        whole = {**_INITIAL, **row}
        self._db.execute(upsert("subscriptions", list(whole), ("name",)), (*whole.values(),))

    def remove(self, name: str) -> None:
        self._db.execute("DELETE FROM subscriptions WHERE name = ?", (name,))

    def confirm(self, name: str, expires: float, due: float) -> None:
        sql = "UPDATE subscriptions SET state = 'active', expires = ?, due = ?, tries = 0, error = '' WHERE name = ?"
        self._db.execute(sql, (expires, due, name))

    def deny(self, name: str) -> None:
        self._db.execute("UPDATE subscriptions SET state = 'denied', due = 0 WHERE name = ?", (name,))

    def set_first_due(self, name: str, due: float) -> None:
        self._db.execute("UPDATE subscriptions SET due = ? WHERE name = ? AND due = 0", (due, name))

    def set_attempt(self, name: str, due: float, tries: int, error: str) -> None:
        sql = "UPDATE subscriptions SET due = ?, tries = ?, error = ? WHERE name = ?"
        self._db.execute(sql, (due, tries, error, name))

    def set_error(self, name: str, error: str) -> None:
        self._db.execute("UPDATE subscriptions SET error = ? WHERE name = ?", (error, name))


class SqlKeyProofs(SqlTable, KeyProofTable):
    """The table `proofs`."""

    def get(self, host: str, key: str, location: str) -> Row | None:
        return self._row("SELECT * FROM proofs WHERE host = ? AND key = ? AND location = ?", (host, key, location))

    def put(self, row: Row) -> None:
        self._db.execute(upsert("proofs", list(row), ("host", "key", "location")), (*row.values(),))

    def remove_expired(self, now: float, before: float) -> None:
        self._db.execute("DELETE FROM proofs WHERE again <= ? AND at <= ?", (now, before))

    def count_since(self, host: str, since: float) -> int:
        return int(self._value("SELECT count(*) FROM proofs WHERE host = ? AND at > ?", (host, since)))
