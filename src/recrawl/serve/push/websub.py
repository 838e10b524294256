"""WebSub subscriptions: hubs notify the service when a feed has new entries.

The callback URL contains a random name, and the hub signs with a random secret; unsigned content is ignored.

A hub grants a subscription for a limited time (the lease). `Renewals` requests a renewal after 70 % of the lease, and
retries with growing pauses if the hub does not confirm. The time of the next request is in the store, so it survives
a restart.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from recrawl.columns import DAY
from recrawl.discover.urls import canonical
from recrawl.errors import NotKnown, UsageError
from recrawl.record.questions import ask
from recrawl.record.storage import Storage
from recrawl.serve.problems import Problem
from recrawl.serve.push.webhooks import NoAnswer, post
from recrawl.times import stamp

LEASE = 10 * 86400
"""Requested lease, in seconds."""
RENEW_AFTER = 0.7
"""Share of the lease after which a renewal is requested."""
_MIN_INTERVAL = 60.0
"""Least seconds between two requests to a hub, however short the lease."""
_FIRST_RETRY = 300.0
_LAST_RETRY = DAY
_CHECK_INTERVAL = 15.0
_MAX_ERROR = 300
_PUBLIC_COLUMNS = "name, topic, hub, state, created, expires, due, tries, error"


def find(db: sqlite3.Connection, name: str) -> dict[str, Any] | None:
    """Return the subscription with this callback name."""
    rows = ask(db, "SELECT * FROM subscriptions WHERE name = ?", (name,))
    return rows[0] if rows else None


def subscriptions(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return all subscriptions, without their secrets."""
    return ask(db, f"SELECT {_PUBLIC_COLUMNS} FROM subscriptions ORDER BY topic")  # noqa: S608


def active(row: dict[str, Any], now: float) -> bool:
    """Return whether the hub has confirmed the subscription and its lease has not expired."""
    return bool(row["state"] == "active" and row["expires"] > now)


def subscription_problems(db: sqlite3.Connection, now: float) -> list[str]:
    """Describe failed subscriptions, one sentence each."""
    found = []
    for row in subscriptions(db):
        if row["state"] == "denied":
            found.append(f"The hub {row['hub']} denied the subscription to {row['topic']}.")
        elif row["error"]:
            until = f"valid until {stamp(row['expires'])}" if active(row, now) else "expired"
            found.append(
                f"The hub {row['hub']} does not renew the subscription to {row['topic']} ({until}): {row['error']}."
            )
        elif row["state"] == "active" and row["expires"] <= now:
            found.append(f"The subscription to {row['topic']} has expired: subscribe again.")
    return found


def confirm(db: sqlite3.Connection, name: str, now: float, lease: int) -> None:
    """Store that the hub confirmed the subscription."""
    db.execute(
        "UPDATE subscriptions SET state = 'active', expires = ?, due = ?, tries = 0, error = '' WHERE name = ?",
        (now + lease, now + max(_MIN_INTERVAL, lease * RENEW_AFTER), name),
    )


def mark_denied(db: sqlite3.Connection, name: str) -> None:
    """Store that the hub denied the subscription; it is not retried."""
    db.execute("UPDATE subscriptions SET state = 'denied', due = 0 WHERE name = ?", (name,))


def subscribe(db: sqlite3.Connection, topic: str, hub: str, base: str, now: float) -> dict[str, Any]:
    """Request or renew a subscription; the hub confirms it through the callback."""
    topic_url, hub_url = canonical(topic), canonical(hub)
    if topic_url is None or hub_url is None:
        raise UsageError("topic and hub must be URLs, as https://example.org/feed.xml")
    rows = ask(db, "SELECT * FROM subscriptions WHERE topic = ?", (topic_url,))
    name = rows[0]["name"] if rows else secrets.token_urlsafe(24)
    secret = rows[0]["secret"] if rows else secrets.token_urlsafe(32)
    callback = f"{base}websub/{name}"
    granted = {"state": "active", "expires": rows[0]["expires"]} if rows and active(rows[0], now) else {}
    row = {"name": name, "topic": topic_url, "hub": hub_url, "secret": secret, "callback": callback, "created": now}
    _put(db, {**row, **granted})
    try:
        _send_to_hub(hub_url, "subscribe", topic_url, callback, secret)
    except Problem:
        db.execute("DELETE FROM subscriptions WHERE name = ?", (name,))
        if rows:
            _put(db, rows[0])
        raise
    # The hub may have confirmed before its response arrived; otherwise retry later.
    db.execute("UPDATE subscriptions SET due = ? WHERE name = ? AND due = 0", (now + _FIRST_RETRY, name))
    return {"name": name, "topic": topic_url, "hub": hub_url, "state": "asked", "callback": callback}


def unsubscribe(db: sqlite3.Connection, name: str, base: str) -> dict[str, Any]:
    """Delete a subscription, then tell the hub; its content is refused from now on, whatever the hub does."""
    row = find(db, name)
    if row is None:
        raise NotKnown(f"there is no subscription '{name}'")
    db.execute("DELETE FROM subscriptions WHERE name = ?", (name,))
    _send_to_hub(row["hub"], "unsubscribe", row["topic"], row["callback"] or f"{base}websub/{name}", row["secret"])
    return {"removed": row["topic"]}


def renew(db: sqlite3.Connection, now: float) -> int:
    """Request the renewals that are due; return how many."""
    rows = ask(db, "SELECT * FROM subscriptions WHERE state != 'denied' AND callback != '' AND due <= ?", (now,))
    for row in rows:
        tries = row["tries"] + 1
        pause = min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(tries - 1, 20))
        # Stored before the request: the hub may confirm immediately, and a crash must not repeat the request at once.
        error = "it has not confirmed the last request" if row["tries"] else row["error"]
        db.execute(
            "UPDATE subscriptions SET due = ?, tries = ?, error = ? WHERE name = ?",
            (now + pause, tries, error, row["name"]),
        )
        try:
            _send_to_hub(row["hub"], "subscribe", row["topic"], row["callback"], row["secret"])
        except Problem as problem:
            sql = "UPDATE subscriptions SET error = ? WHERE name = ?"
            db.execute(sql, (problem.detail.rstrip(".")[:_MAX_ERROR], row["name"]))
    return len(rows)


class Renewals:
    """Thread that renews subscriptions."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="renewals", daemon=True)

    def start(self) -> None:
        """Start the thread; overdue renewals are requested immediately."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, after a request that is under way."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _loop(self) -> None:
        with Storage(self._folder) as repository:
            while True:
                with contextlib.suppress(sqlite3.OperationalError):  # database busy: retried in 15 s
                    renew(repository.store.db, self._clock())
                if self._ending.wait(_CHECK_INTERVAL):
                    return


def _put(db: sqlite3.Connection, row: dict[str, Any]) -> None:
    whole = {"state": "asked", "expires": 0, "due": 0, "tries": 0, "error": "", **row}
    names, marks = ", ".join(whole), ", ".join("?" for _ in whole)
    db.execute(f"INSERT OR REPLACE INTO subscriptions ({names}) VALUES ({marks})", (*whole.values(),))  # noqa: S608


def _send_to_hub(hub: str, mode: str, topic: str, callback: str, secret: str) -> None:
    fields = {"hub.mode": mode, "hub.topic": topic, "hub.callback": callback, "hub.secret": secret}
    body = urlencode({**fields, "hub.lease_seconds": str(LEASE)}).encode()
    try:
        status = post(hub, body, {"Content-Type": "application/x-www-form-urlencoded"})
    except NoAnswer as error:
        raise Problem(502, f"The hub is unreachable: {error}.") from error
    if not 200 <= status < 300:
        raise Problem(502, f"The hub returned HTTP {status}.")
