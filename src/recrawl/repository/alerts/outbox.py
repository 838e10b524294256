"""The outbox: updates to deliver, stored in one transaction with the number of the last visit that was matched.

A crash at any point loses nothing, and a repeated delivery carries the same key.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from recrawl.columns import HOUR
from recrawl.record.outbox_rows import OutboxRow, OutboxState
from recrawl.repository.alerts.rules import Update
from recrawl.repository.reader import Reader
from recrawl.settings import Alert
from recrawl.times import duration

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
    """The alerts of a repository that are to be delivered or were."""

    def __init__(self, repo: Reader) -> None:
        self._store = repo.storage.store
        self._table = self._store.outbox

    def matched_up_to(self, newest: int) -> int:
        """Return the last visit that was matched; the first call stores `newest`, so that old visits send no alerts."""
        matched = self._store.meta.get(_LAST_MATCHED, None)
        if matched is None:
            self._store.meta.set(_LAST_MATCHED, newest)
            return newest
        return int(matched)

    def put(self, visits: Iterable[VisitMatches], upto: int, now: float) -> int:
        """Add the matches of visits, in order, and store the last visit matched; return how many were added."""
        count = 0
        with self._store.transaction():
            held = self._table.held_pages()
            for visit in visits:
                if visit.page in held:
                    self._update_held(visit.page, visit.digest, now)
                for rule, update, body in visit.found:
                    count += self._add(rule, update, body, now)
                    held |= {update.page} if rule.hold else set()
            self._store.meta.set(_LAST_MATCHED, upto)
        return count

    def _add(self, rule: Alert, update: Update, body: dict[str, Any], now: float) -> bool:
        return self._table.add(
            OutboxRow(
                key=f"{rule.name}:{update.visit}",
                alert=rule.name,
                page=update.page,
                state=OutboxState.HELD if rule.hold else OutboxState.WAITING,
                remaining=_HOLD if rule.hold else 0,
                before=update.before.digest if update.before else None,
                due=_due(rule, now),
                created=now,
                body=json.dumps(body),
            )
        )

    def _update_held(self, page: int, digest: bytes | None, now: float) -> None:
        """Apply a later visit to the held updates of its page: drop them, keep holding them, or release them."""
        for number, remaining, before in self._table.held(page):
            if digest is not None and digest == before:
                self._table.drop(number)
            elif remaining <= 1:
                self._table.release(number, now)
            else:
                self._table.hold_on(number)

    def due(self, now: float, digests: frozenset[str], without: Collection[str] = ()) -> list[Delivery]:
        """Return the deliveries due now, with the updates of a digest grouped; none of the rules in `without`."""
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in self._table.due(now, 500, without):
            alone = row["alert"] not in digests and not row["parcel"]
            group = groups.setdefault((row["alert"], row["parcel"] or (row["key"] if alone else "digest")), [])
            if len(group) < _MAX_ITEMS:
                group.append(row)
        return [self._delivery(alert, group) for (alert, _), group in groups.items()]

    def _delivery(self, alert: str, rows: list[dict[str, Any]]) -> Delivery:
        key = rows[0]["parcel"] or (rows[0]["key"] if len(rows) == 1 else f"{rows[0]['key']}-{rows[-1]['key']}")
        ids = tuple(row["id"] for row in rows)
        self._table.set_parcel(ids, key)
        return Delivery(alert, key, ids, tuple(json.loads(row["body"]) for row in rows), rows[0]["tries"])

    def mark_sent(self, delivery: Delivery, now: float) -> None:
        """Record a successful delivery."""
        self._table.set_sent(delivery.ids, now)

    def mark_failed(self, delivery: Delivery, error: str, now: float) -> bool:
        """Record a failed attempt; return whether it will be retried (at most 12 attempts)."""
        tries = delivery.tries + 1
        again = tries < _MAX_TRIES
        due = now + min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** (tries - 1))
        state = OutboxState.WAITING if again else OutboxState.GIVEN_UP
        self._table.set_failed(delivery.ids, state, tries, due, error[:500])
        return again

    def newest(self, limit: int, before: int = 1 << 62) -> list[dict[str, Any]]:
        """Return the newest entries with a number below `before`."""
        rows = self._table.newest(limit, before)
        return [{**row, "state": STATES[row["state"]], "body": json.loads(row["body"])} for row in rows]

    def next_due(self) -> float | None:
        """Return when the next delivery is due; None if nothing is waiting."""
        return self._table.next_due()

    def prune(self, before: float) -> None:
        """Delete finished entries created before a time."""
        self._table.remove_done(before)


def _due(rule: Alert, now: float) -> float:
    """Return when an update is sent: now, or at the end of the digest period."""
    if not rule.digest:
        return now
    period = duration(rule.digest)
    return (now // period + 1) * period
