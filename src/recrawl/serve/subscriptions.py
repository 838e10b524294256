"""WebSub subscriptions: feeds whose hubs tell us when there is something new.

The name in the address of the callback is drawn at random, and so is the secret that the hub signs with: only who was
told can send, and only what was signed is believed.
"""

from __future__ import annotations

import secrets
import sqlite3
from typing import Any
from urllib.parse import urlencode

from recrawl.discover.urls import canonical
from recrawl.errors import NotKnown, UsageError
from recrawl.record.questions import ask
from recrawl.serve.posting import NoAnswer, post
from recrawl.serve.problems import Problem

LEASE = 10 * 86400
"""Seconds for which a subscription is asked."""


def find(db: sqlite3.Connection, name: str) -> dict[str, Any] | None:
    """A subscription by the name of its callback."""
    rows = ask(db, "SELECT * FROM subscriptions WHERE name = ?", (name,))
    return rows[0] if rows else None


def listed(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """All of them, without their secrets."""
    return ask(db, "SELECT name, topic, hub, state, created, expires FROM subscriptions ORDER BY topic")


def active(row: dict[str, Any], now: float) -> bool:
    """Whether the hub has confirmed it, and it is not over."""
    return bool(row["state"] == "active" and row["expires"] > now)


def confirm(db: sqlite3.Connection, name: str, expires: float) -> None:
    """The hub asked, and we said yes."""
    db.execute("UPDATE subscriptions SET state = 'active', expires = ? WHERE name = ?", (expires, name))


def denied(db: sqlite3.Connection, name: str) -> None:
    """The hub said no."""
    db.execute("UPDATE subscriptions SET state = 'denied' WHERE name = ?", (name,))


def subscribe(db: sqlite3.Connection, topic: str, hub: str, base: str, now: float) -> dict[str, Any]:
    """Ask a hub; again for one that there is, which renews it. The hub confirms through the callback."""
    clean, where = canonical(topic), canonical(hub)
    if clean is None or where is None:
        raise UsageError("topic and hub are addresses: https://example.org/feed.xml")
    rows = ask(db, "SELECT * FROM subscriptions WHERE topic = ?", (clean,))
    name = rows[0]["name"] if rows else secrets.token_urlsafe(24)
    secret = rows[0]["secret"] if rows else secrets.token_urlsafe(32)
    db.execute(
        "INSERT OR REPLACE INTO subscriptions (name, topic, hub, secret, state, created, expires) "
        "VALUES (?, ?, ?, ?, 'asked', ?, 0)",
        (name, clean, where, secret, now),
    )
    _ask_hub(where, "subscribe", clean, f"{base}websub/{name}", secret)
    return {"name": name, "topic": clean, "hub": where, "state": "asked", "callback": f"{base}websub/{name}"}


def unsubscribe(db: sqlite3.Connection, name: str, base: str) -> dict[str, Any]:
    """Forget it here first: from now on nothing of it is believed, whatever the hub does."""
    row = find(db, name)
    if row is None:
        raise NotKnown("there is no such subscription")
    db.execute("DELETE FROM subscriptions WHERE name = ?", (name,))
    _ask_hub(row["hub"], "unsubscribe", row["topic"], f"{base}websub/{name}", row["secret"])
    return {"removed": row["topic"]}


def _ask_hub(hub: str, mode: str, topic: str, callback: str, secret: str) -> None:
    fields = {"hub.mode": mode, "hub.topic": topic, "hub.callback": callback, "hub.secret": secret}
    body = urlencode({**fields, "hub.lease_seconds": str(LEASE)}).encode()
    try:
        status = post(hub, body, {"Content-Type": "application/x-www-form-urlencoded"})
    except NoAnswer as error:
        raise Problem(502, f"The hub could not be asked: {error}.") from error
    if not 200 <= status < 300:
        raise Problem(502, f"The hub answered with HTTP {status}.")
