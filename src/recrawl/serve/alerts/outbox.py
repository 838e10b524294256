"""What is to be sent, in the store: put in together with the mark up to which visits were looked at, taken out when it
has arrived. So a crash at any point loses nothing, and what is sent twice carries the same key twice."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recrawl.record.questions import ask
from recrawl.record.store import Transaction
from recrawl.repository.times import duration
from recrawl.serve.alerts.rules import Update
from recrawl.settings import Alert

WAITING, SENT, GIVEN_UP, HELD, DROPPED = range(5)
STATES = ("waiting", "sent", "given up", "held", "reverted")
_MARK = "alerts:seen"
_HOLD = 2
"""Visits that a change must last when it is held back."""
_FIRST, _LONGEST, _TRIES = 30.0, 6 * 3600.0, 12
_MOST_ITEMS = 200


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is sent together: one update, or a digest of several."""

    alert: str
    key: str
    """The same for every try, so that a receiver can tell."""
    ids: tuple[int, ...]
    items: tuple[dict[str, Any], ...]
    tries: int


@dataclass(frozen=True, slots=True)
class OutboxStep:
    """One visit that brought an answer: what it found of the page, and what rules have to say about it."""

    page: int
    digest: bytes | None
    """Of the text, when it changed."""
    found: list[tuple[Alert, Update, dict[str, Any]]]


class Outbox:
    """The table `outbox`, over a connection that may write."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def mark(self, newest: int) -> int:
        """The last visit that was looked at; at the very first time, the newest one: nobody wants old news."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (_MARK,)).fetchone()
        if row is None:
            self._set_mark(newest)
            return newest
        return int(row[0])

    def put(self, steps: Iterable[OutboxStep], upto: int, now: float) -> int:
        """Take in what visits found, in their order, and note how far visits were looked at; how much was put in."""
        count = 0
        with Transaction(self._db):
            held = {row[0] for row in self._db.execute("SELECT page FROM outbox WHERE state = ?", (HELD,))}
            for step in steps:
                if step.page in held:
                    self._seen(step.page, step.digest, now)
                for rule, update, body in step.found:
                    count += self._add(rule, update, body, now)
                    held |= {update.page} if rule.hold else set()
            self._set_mark(upto)
        return count

    def _add(self, rule: Alert, update: Update, body: dict[str, Any], now: float) -> int:
        made = self._db.execute(
            """INSERT OR IGNORE INTO outbox (key, alert, page, state, remaining, before, due, created, body)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                f"{rule.name}:{update.visit}",
                rule.name,
                update.page,
                HELD if rule.hold else WAITING,
                _HOLD if rule.hold else 0,
                update.before.digest if update.before else None,
                _due(rule, now),
                now,
                json.dumps(body),
            ),
        )
        return made.rowcount

    def _seen(self, page: int, digest: bytes | None, now: float) -> None:
        """A later visit of a page: what is held back about it is dropped, waits on, or is let go."""
        rows = self._db.execute(
            "SELECT id, remaining, before FROM outbox WHERE page = ? AND state = ?", (page, HELD)
        ).fetchall()
        for number, remaining, before in rows:
            if digest is not None and digest == before:
                self._db.execute("UPDATE outbox SET state = ? WHERE id = ?", (DROPPED, number))
            elif remaining <= 1:
                sql = "UPDATE outbox SET state = ?, remaining = 0, due = max(due, ?) WHERE id = ?"
                self._db.execute(sql, (WAITING, now, number))
            else:
                self._db.execute("UPDATE outbox SET remaining = remaining - 1 WHERE id = ?", (number,))

    def due(self, now: float, digests: frozenset[str]) -> list[Parcel]:
        """What is to be sent now; what belongs to a digest together."""
        rows = ask(
            self._db,
            "SELECT id, key, alert, parcel, tries, body FROM outbox WHERE state = ? AND due <= ? ORDER BY id LIMIT 500",
            (WAITING, now),
        )
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows:
            alone = row["alert"] not in digests and not row["parcel"]
            group = groups.setdefault((row["alert"], row["parcel"] or (row["key"] if alone else "digest")), [])
            if len(group) < _MOST_ITEMS:
                group.append(row)
        return [self._parcel(alert, group) for (alert, _), group in groups.items()]

    def _parcel(self, alert: str, rows: list[dict[str, Any]]) -> Parcel:
        key = rows[0]["parcel"] or (rows[0]["key"] if len(rows) == 1 else f"{rows[0]['key']}-{rows[-1]['key']}")
        ids = tuple(row["id"] for row in rows)
        self._db.executemany("UPDATE outbox SET parcel = ? WHERE id = ?", ((key, number) for number in ids))
        return Parcel(alert, key, ids, tuple(json.loads(row["body"]) for row in rows), rows[0]["tries"])

    def sent(self, parcel: Parcel, now: float) -> None:
        """It has arrived."""
        sql = "UPDATE outbox SET state = ?, sent = ?, error = '' WHERE id = ?"
        with Transaction(self._db):
            self._db.executemany(sql, ((SENT, now, number) for number in parcel.ids))

    def failed(self, parcel: Parcel, error: str, now: float) -> bool:
        """It has not: try later, or give up after many tries. Whether it will be tried again."""
        tries = parcel.tries + 1
        again = tries < _TRIES
        due = now + min(_LONGEST, _FIRST * 2.0 ** (tries - 1))
        sql = "UPDATE outbox SET state = ?, tries = ?, due = ?, error = ? WHERE id = ?"
        state = WAITING if again else GIVEN_UP
        with Transaction(self._db):
            self._db.executemany(sql, ((state, tries, due, error[:500], number) for number in parcel.ids))
        return again

    def next_due(self) -> float | None:
        """When there is something to send, None when nothing waits."""
        row = self._db.execute("SELECT min(due) FROM outbox WHERE state = ?", (WAITING,)).fetchone()
        return None if row[0] is None else float(row[0])

    def tidy(self, before: float) -> None:
        """Forget what was dealt with long ago."""
        self._db.execute(
            "DELETE FROM outbox WHERE state IN (?, ?, ?) AND created < ?", (SENT, GIVEN_UP, DROPPED, before)
        )

    def _set_mark(self, visit: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (_MARK, visit))


def listed(db: sqlite3.Connection, limit: int, before: int = 1 << 62) -> list[dict[str, Any]]:
    """The newest entries, for people and programs."""
    rows = ask(
        db,
        "SELECT id, alert, key, state, tries, due, created, sent, error, body FROM outbox WHERE id < ? "
        "ORDER BY id DESC LIMIT ?",
        (before, limit),
    )
    return [{**row, "state": STATES[row["state"]], "body": json.loads(row["body"])} for row in rows]


def _due(rule: Alert, now: float) -> float:
    """At once, or when the digest's time is full."""
    if not rule.digest:
        return now
    period = duration(rule.digest)
    return (now // period + 1) * period
