"""Alerts in the outbox: added in one transaction with the number of the last visit that was matched, held, listed.

`repository.delivery` delivers them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recrawl.record.rows import OutboxRow, OutboxState
from recrawl.repository.alerts.rules import Update
from recrawl.repository.delivery.parked import shown_name
from recrawl.repository.reader import Reader
from recrawl.settings import Alert
from recrawl.times import duration, next_allowed

STATES = ("waiting", "sent", "parked", "held", "reverted", "dropped")
_LAST_MATCHED = "alerts:seen"
_HOLD = 2
"""Visits that a held change must last before it is sent."""


@dataclass(frozen=True, slots=True)
class VisitMatches:
    """A visit that got an answer, with the alert rules that match it."""

    page: int
    digest: bytes | None
    """Digest of the text if it changed."""
    found: list[tuple[Alert, Update, dict[str, Any]]]
    error: str = ""
    """Why the rules could not be applied: what they may have found is parked."""


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

    def skip_to(self, newest: int) -> None:
        """Take the visits up to this one as matched."""
        self._store.meta.set(_LAST_MATCHED, max(newest, self.matched_up_to(newest)))

    def put(self, visits: Iterable[VisitMatches], upto: int, now: float) -> int:
        """Add the matches of visits, in order, and store the last visit matched; return how many were added."""
        count = 0
        with self._store.transaction():
            held = self._table.held_pages()
            for visit in visits:
                if visit.page in held:
                    self._update_held(visit.page, visit.digest, now)
                for rule, update, body in visit.found:
                    count += self._add(rule, update, body, now, visit.error)
                    held |= {update.page} if rule.hold else set()
            self._store.meta.set(_LAST_MATCHED, upto)
        return count

    def _add(self, rule: Alert, update: Update, body: dict[str, Any], now: float, error: str) -> bool:
        state = OutboxState.HELD if rule.hold else OutboxState.WAITING
        return self._table.add(
            OutboxRow(
                key=f"{rule.name}:{update.visit}",
                alert=rule.name,
                page=update.page,
                state=OutboxState.PARKED if error else state,
                remaining=_HOLD if rule.hold else 0,
                before=update.before.digest if update.before else None,
                due=_due(rule, now),
                created=now,
                body=json.dumps(body),
                error=error,
            )
        )

    def _update_held(self, page: int, digest: bytes | None, now: float) -> None:
        """Apply a later visit to the held updates of its page: drop them, keep holding them, or release them."""
        for number, remaining, before in self._table.held(page):
            if digest is not None and digest == before:
                self._table.revert(number)
            elif remaining <= 1:
                self._table.release(number, now)
            else:
                self._table.hold_on(number)

    def newest(self, limit: int, before: int = 1 << 62) -> list[dict[str, Any]]:
        """Return the newest entries with a number below `before`."""
        rows = self._table.newest(limit, before)
        return [{**row, "state": STATES[row["state"]], "body": json.loads(row["body"])} for row in rows]

    def drop_others(self, rules: Iterable[Alert]) -> None:
        """Drop what waits for other rules than these: they were deleted."""
        known = [rule.name for rule in rules]
        waiting = (name for name, state, _ in self._table.counts() if state == OutboxState.WAITING)
        if any(name not in known and shown_name(name)[0] == "alert" for name in waiting):
            self._table.drop_waiting(known)

    def next_due(self) -> float | None:
        """Return when the next delivery is due; None if nothing is waiting."""
        return self._table.next_due()

    def prune(self, before: float) -> None:
        """Delete finished entries created before a time."""
        self._table.remove_done(before)


def _due(rule: Alert, now: float) -> float:
    """Return when an update is sent: now, or at the end of the digest period, and not in quiet hours."""
    period = duration(rule.digest) if rule.digest else 0.0
    due = (now // period + 1) * period if period else now
    return next_allowed(due, rule.quiet, ()) if rule.quiet else due
