"""WebSub subscriptions: feeds whose hubs tell us when there is something new.

The name in the address of the callback is drawn at random, and so is the secret that the hub signs with: only who was
told can send, and only what was signed is believed.

A hub grants a subscription for a while, and forgets it then. So it is asked again when most of that time is over, and
again after longer and longer pauses if it does not confirm; what was granted counts until its end. `Renewals` does
that. When to ask next lies in the store, so a restart changes nothing.
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

from recrawl.discover.urls import canonical
from recrawl.errors import NotKnown, UsageError
from recrawl.record.questions import ask
from recrawl.record.storage import Storage
from recrawl.repository.times import stamp
from recrawl.serve.problems import Problem
from recrawl.serve.push.webhooks import NoAnswer, post

LEASE = 10 * 86400
"""Seconds for which a subscription is asked."""
PART = 0.7
"""The share of the granted time after which it is asked for again."""
_SOONEST = 60.0
"""Seconds between two questions to a hub, however short the time that it grants."""
_FIRST_RETRY = 300.0
_LAST_RETRY = 86400.0
_LOOK = 15.0
_ERROR = 300
_LISTED = "name, topic, hub, state, created, expires, due, tries, error"


def find(db: sqlite3.Connection, name: str) -> dict[str, Any] | None:
    """A subscription by the name of its callback."""
    rows = ask(db, "SELECT * FROM subscriptions WHERE name = ?", (name,))
    return rows[0] if rows else None


def listed(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """All of them, without their secrets."""
    return ask(db, f"SELECT {_LISTED} FROM subscriptions ORDER BY topic")  # noqa: S608


def active(row: dict[str, Any], now: float) -> bool:
    """Whether the hub has confirmed it, and it is not over."""
    return bool(row["state"] == "active" and row["expires"] > now)


def troubles(db: sqlite3.Connection, now: float) -> list[str]:
    """What is wrong with subscriptions, in sentences for people."""
    told = []
    for row in listed(db):
        if row["state"] == "denied":
            told.append(f"The hub {row['hub']} has refused the subscription to {row['topic']}.")
        elif row["error"]:
            until = f"it counts until {stamp(row['expires'])}" if active(row, now) else "nothing comes from it any more"
            told.append(
                f"The hub {row['hub']} does not renew the subscription to {row['topic']}: {row['error']}; {until}."
            )
        elif row["state"] == "active" and row["expires"] <= now:
            told.append(f"The subscription to {row['topic']} is over: subscribe again.")
    return told


def confirm(db: sqlite3.Connection, name: str, now: float, lease: int) -> None:
    """The hub asked, and we said yes."""
    db.execute(
        "UPDATE subscriptions SET state = 'active', expires = ?, due = ?, tries = 0, error = '' WHERE name = ?",
        (now + lease, now + max(_SOONEST, lease * PART), name),
    )


def denied(db: sqlite3.Connection, name: str) -> None:
    """The hub said no; it is not asked again by itself."""
    db.execute("UPDATE subscriptions SET state = 'denied', due = 0 WHERE name = ?", (name,))


def subscribe(db: sqlite3.Connection, topic: str, hub: str, base: str, now: float) -> dict[str, Any]:
    """Ask a hub; again for one that there is, which renews it. The hub confirms through the callback."""
    clean, where = canonical(topic), canonical(hub)
    if clean is None or where is None:
        raise UsageError("topic and hub are addresses: https://example.org/feed.xml")
    rows = ask(db, "SELECT * FROM subscriptions WHERE topic = ?", (clean,))
    name = rows[0]["name"] if rows else secrets.token_urlsafe(24)
    secret = rows[0]["secret"] if rows else secrets.token_urlsafe(32)
    callback = f"{base}websub/{name}"
    granted = {"state": "active", "expires": rows[0]["expires"]} if rows and active(rows[0], now) else {}
    row = {"name": name, "topic": clean, "hub": where, "secret": secret, "callback": callback, "created": now}
    _put(db, {**row, **granted})
    try:
        _ask_hub(where, "subscribe", clean, callback, secret)
    except Problem:
        db.execute("DELETE FROM subscriptions WHERE name = ?", (name,))  # nothing half done
        if rows:
            _put(db, rows[0])
        raise
    # A hub may have confirmed already, while we were asking it; else it is asked again in a while.
    db.execute("UPDATE subscriptions SET due = ? WHERE name = ? AND due = 0", (now + _FIRST_RETRY, name))
    return {"name": name, "topic": clean, "hub": where, "state": "asked", "callback": callback}


def unsubscribe(db: sqlite3.Connection, name: str, base: str) -> dict[str, Any]:
    """Forget it here first: from now on nothing of it is believed, whatever the hub does."""
    row = find(db, name)
    if row is None:
        raise NotKnown("there is no such subscription")
    db.execute("DELETE FROM subscriptions WHERE name = ?", (name,))
    _ask_hub(row["hub"], "unsubscribe", row["topic"], row["callback"] or f"{base}websub/{name}", row["secret"])
    return {"removed": row["topic"]}


def renew(db: sqlite3.Connection, now: float) -> int:
    """Ask the hubs again whose time it is; how many were asked."""
    rows = ask(db, "SELECT * FROM subscriptions WHERE state != 'denied' AND callback != '' AND due <= ?", (now,))
    for row in rows:
        tries = row["tries"] + 1
        pause = min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(tries - 1, 20))
        # Before the hub is asked: it may confirm at once, and must not be asked again at once if we crash.
        error = "it has not confirmed it" if row["tries"] else row["error"]
        db.execute(
            "UPDATE subscriptions SET due = ?, tries = ?, error = ? WHERE name = ?",
            (now + pause, tries, error, row["name"]),
        )
        try:
            _ask_hub(row["hub"], "subscribe", row["topic"], row["callback"], row["secret"])
        except Problem as problem:
            sql = "UPDATE subscriptions SET error = ? WHERE name = ?"
            db.execute(sql, (problem.detail.rstrip(".")[:_ERROR], row["name"]))
    return len(rows)


class Renewals:
    """Renews subscriptions, in a thread of its own."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="renewals", daemon=True)

    def start(self) -> None:
        """Begin; what came due while nobody was there is asked for at once."""
        self._thread.start()

    def stop(self) -> None:
        """End; a question on its way is waited for."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _loop(self) -> None:
        with Storage(self._folder) as repository:
            while True:
                with contextlib.suppress(sqlite3.OperationalError):  # busy: the next round does it
                    renew(repository.store.db, self._clock())
                if self._ending.wait(_LOOK):
                    return


def _put(db: sqlite3.Connection, row: dict[str, Any]) -> None:
    whole = {"state": "asked", "expires": 0, "due": 0, "tries": 0, "error": "", **row}
    names, marks = ", ".join(whole), ", ".join("?" for _ in whole)
    db.execute(f"INSERT OR REPLACE INTO subscriptions ({names}) VALUES ({marks})", (*whole.values(),))  # noqa: S608


def _ask_hub(hub: str, mode: str, topic: str, callback: str, secret: str) -> None:
    fields = {"hub.mode": mode, "hub.topic": topic, "hub.callback": callback, "hub.secret": secret}
    body = urlencode({**fields, "hub.lease_seconds": str(LEASE)}).encode()
    try:
        status = post(hub, body, {"Content-Type": "application/x-www-form-urlencoded"})
    except NoAnswer as error:
        raise Problem(502, f"The hub could not be asked: {error}.") from error
    if not 200 <= status < 300:
        raise Problem(502, f"The hub answered with HTTP {status}.")
