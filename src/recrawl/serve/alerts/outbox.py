"""The outbox: updates to deliver, stored in one transaction with the number of the last visit that was matched.

A crash at any point loses nothing, and a repeated delivery carries the same key.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recrawl.columns import HOUR
from recrawl.record.questions import ask
from recrawl.record.store import Transaction
from recrawl.serve.alerts.rules import Update
from recrawl.settings import Alert
from recrawl.times import duration

WAITING, SENT, GIVEN_UP, HELD, DROPPED = range(5)
STATES = ("waiting", "sent", "given up", "held", "reverted")
_LAST_MATCHED = "alerts:seen"
_HOLD = 2
"""Visits that a held change must last before it is sent."""
_FIRST_RETRY, _LAST_RETRY, _MAX_TRIES = 30.0, 6 * HOUR, 12
_MAX_ITEMS = 200


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message: a single update, or a digest of several."""

    alert: str
    key: str
    """The same for every attempt, so that receivers can detect repeats."""
    ids: tuple[int, ...]
    items: tuple[dict[str, Any], ...]
    tries: int


@dataclass(frozen=True, slots=True)
class VisitMatches:
    """A visit that got an answer, with the alert rules that match it."""

    page: int
    digest: bytes | None
    """Digest of the text if it changed."""
    found: list[tuple[Alert, Update, dict[str, Any]]]


class Outbox:
    """The table `outbox`; needs a writable connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def matched_up_to(self, newest: int) -> int:
        """Return the last visit that was matched; the first call stores `newest`, so that old visits send no alerts."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (_LAST_MATCHED,)).fetchone()
        if row is None:
            self._set_matched(newest)
            return newest
        return int(row[0])

    def put(self, visits: Iterable[VisitMatches], upto: int, now: float) -> int:
        """Add the matches of visits, in order, and store the last visit matched; return how many were added."""
        count = 0
        with Transaction(self._db):
            held = {row[0] for row in self._db.execute("SELECT page FROM outbox WHERE state = ?", (HELD,))}
            for visit in visits:
                if visit.page in held:
                    self._update_held(visit.page, visit.digest, now)
                for rule, update, body in visit.found:
                    count += self._add(rule, update, body, now)
                    held |= {update.page} if rule.hold else set()
            self._set_matched(upto)
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

    def _update_held(self, page: int, digest: bytes | None, now: float) -> None:
        """Apply a later visit to the held updates of its page: drop them, keep holding them, or release them."""
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

    def due(self, now: float, digests: frozenset[str]) -> list[Delivery]:
        """Return the deliveries due now, with the updates of a digest grouped."""
        rows = ask(
            self._db,
            "SELECT id, key, alert, parcel, tries, body FROM outbox WHERE state = ? AND due <= ? ORDER BY id LIMIT 500",
            (WAITING, now),
        )
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows:
            alone = row["alert"] not in digests and not row["parcel"]
            group = groups.setdefault((row["alert"], row["parcel"] or (row["key"] if alone else "digest")), [])
            if len(group) < _MAX_ITEMS:
                group.append(row)
        return [self._delivery(alert, group) for (alert, _), group in groups.items()]

    def _delivery(self, alert: str, rows: list[dict[str, Any]]) -> Delivery:
        key = rows[0]["parcel"] or (rows[0]["key"] if len(rows) == 1 else f"{rows[0]['key']}-{rows[-1]['key']}")
        ids = tuple(row["id"] for row in rows)
        self._db.executemany("UPDATE outbox SET parcel = ? WHERE id = ?", ((key, number) for number in ids))
        return Delivery(alert, key, ids, tuple(json.loads(row["body"]) for row in rows), rows[0]["tries"])

    def mark_sent(self, delivery: Delivery, now: float) -> None:
        """Record a successful delivery."""
        sql = "UPDATE outbox SET state = ?, sent = ?, error = '' WHERE id = ?"
        with Transaction(self._db):
            self._db.executemany(sql, ((SENT, now, number) for number in delivery.ids))

    def mark_failed(self, delivery: Delivery, error: str, now: float) -> bool:
        """Record a failed attempt; return whether it will be retried (at most 12 attempts)."""
        tries = delivery.tries + 1
        again = tries < _MAX_TRIES
        due = now + min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** (tries - 1))
        sql = "UPDATE outbox SET state = ?, tries = ?, due = ?, error = ? WHERE id = ?"
        state = WAITING if again else GIVEN_UP
        with Transaction(self._db):
            self._db.executemany(sql, ((state, tries, due, error[:500], number) for number in delivery.ids))
        return again

    def next_due(self) -> float | None:
        """Return when the next delivery is due; None if nothing is waiting."""
        row = self._db.execute("SELECT min(due) FROM outbox WHERE state = ?", (WAITING,)).fetchone()
        return None if row[0] is None else float(row[0])

    def prune(self, before: float) -> None:
        """Delete finished entries created before a time."""
        self._db.execute(
            "DELETE FROM outbox WHERE state IN (?, ?, ?) AND created < ?", (SENT, GIVEN_UP, DROPPED, before)
        )

    def _set_matched(self, visit: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (_LAST_MATCHED, visit))


def newest_entries(db: sqlite3.Connection, limit: int, before: int = 1 << 62) -> list[dict[str, Any]]:
    """Return the newest entries with a number below `before`."""
    rows = ask(
        db,
        "SELECT id, alert, key, state, tries, due, created, sent, error, body FROM outbox WHERE id < ? "
        "ORDER BY id DESC LIMIT ?",
        (before, limit),
    )
    return [{**row, "state": STATES[row["state"]], "body": json.loads(row["body"])} for row in rows]


def _due(rule: Alert, now: float) -> float:
    """Return when an update is sent: now, or at the end of the digest period."""
    if not rule.digest:
        return now
    period = duration(rule.digest)
    return (now // period + 1) * period
