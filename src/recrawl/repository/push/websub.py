"""WebSub subscriptions: hubs notify the service when a feed has new entries.

The callback URL contains a random name, and the hub signs with a random secret; unsigned content is ignored.

A hub grants a subscription for a limited time (the lease). `Renewals` requests a renewal after 70 % of the lease, and
retries with growing pauses if the hub does not confirm. The time of the next request is in the store, so it survives
a restart.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from recrawl.columns import DAY
from recrawl.discover.urls import canonical
from recrawl.errors import NotKnown, UsageError
from recrawl.repository.outgoing import NotSent, post
from recrawl.repository.reader import Reader
from recrawl.settings import Settings
from recrawl.times import remaining, stamp

LEASE = 10 * 86400
"""Requested lease, in seconds."""
RENEW_AFTER = 0.7
"""Share of the lease after which a renewal is requested."""
_LONGEST = 90 * 86400
"""The longest lease that is used: a later end is one of a clock that was wrong."""
_MIN_INTERVAL = 60.0
"""Least seconds between two requests to a hub, however short the lease."""
_FIRST_RETRY = 300.0
_LAST_RETRY = DAY
_MAX_ERROR = 300


def active(row: dict[str, Any], now: float) -> bool:
    """Return whether the hub has confirmed the subscription and its lease has not expired."""
    return bool(row["state"] == "active" and remaining(row["expires"], now, _LONGEST))


def subscriptions(repo: Reader) -> list[dict[str, Any]]:
    """Return all subscriptions without their secrets, by topic."""
    return repo.storage.store.subscriptions.public()


def subscription_problems(repo: Reader) -> list[str]:
    """Describe failed subscriptions, one sentence each."""
    now, found = repo.now(), []
    for row in subscriptions(repo):
        if row["state"] == "denied":
            found.append(f"The hub {row['hub']} denied the subscription to {row['topic']}.")
        elif row["error"]:
            until = f"valid until {stamp(row['expires'])}" if active(row, now) else "expired"
            found.append(
                f"The hub {row['hub']} does not renew the subscription to {row['topic']} ({until}): {row['error']}."
            )
        elif row["state"] == "active" and not active(row, now):
            found.append(f"The subscription to {row['topic']} has expired: subscribe again.")
    return found


def verify_intent(repo: Reader, name: str, query: Mapping[str, str]) -> str:
    """Return the response to a hub that verifies a subscription or reports that it was denied; or raise NotKnown."""
    table = repo.storage.store.subscriptions
    known = table.get(name)
    mode, challenge = query.get("hub.mode", ""), query.get("hub.challenge", "")[:1000]
    if mode == "unsubscribe" and known is None:
        return challenge
    if known is None or query.get("hub.topic", "") != known["topic"]:
        raise NotKnown("there is no such subscription")
    if mode == "denied":
        table.deny(name)
        return ""
    lease = query.get("hub.lease_seconds", "")
    if mode != "subscribe" or not (lease.isascii() and lease.isdigit() and len(lease) < 10):
        raise NotKnown("there is no such subscription")
    confirm(repo, name, int(lease))
    return challenge


def confirm(repo: Reader, name: str, lease: int) -> None:
    """Store that the hub confirmed the subscription for `lease` seconds."""
    now = repo.now()
    lease = min(lease, _LONGEST)
    repo.storage.store.subscriptions.confirm(name, now + lease, now + max(_MIN_INTERVAL, lease * RENEW_AFTER))


def subscribe(repo: Reader, topic: str, hub: str, base: str) -> dict[str, Any]:
    """Request or renew a subscription; the hub confirms it through the callback, a URL beneath `base`."""
    store, now = repo.storage.store, repo.now()
    topic_url, hub_url = canonical(topic), canonical(hub)
    if topic_url is None or hub_url is None:
        raise UsageError("topic and hub must be URLs, as https://example.org/feed.xml")
    before = store.subscriptions.of_topic(topic_url)
    name = before["name"] if before else secrets.token_urlsafe(24)
    secret = before["secret"] if before else secrets.token_urlsafe(32)
    callback = f"{base}websub/{name}"
    granted = {"state": "active", "expires": before["expires"]} if before and active(before, now) else {}
    row = {"name": name, "topic": topic_url, "hub": hub_url, "secret": secret, "callback": callback, "created": now}
    store.subscriptions.put({**row, **granted})
    try:
        _send_to_hub("subscribe", row, repo.settings)
    except NotSent:
        store.subscriptions.remove(name)
        if before:
            store.subscriptions.put(before)
        raise
    # The hub may have confirmed before its response arrived; otherwise retry later.
    store.subscriptions.set_first_due(name, now + _FIRST_RETRY)
    return {"name": name, "topic": topic_url, "hub": hub_url, "state": "asked", "callback": callback}


def unsubscribe(repo: Reader, name: str, base: str) -> dict[str, Any]:
    """Delete a subscription, then tell the hub; its content is refused from now on, whatever the hub does."""
    store = repo.storage.store
    row = store.subscriptions.get(name)
    if row is None:
        raise NotKnown(f"there is no subscription '{name}'")
    store.subscriptions.remove(name)
    _send_to_hub("unsubscribe", {**row, "callback": row["callback"] or f"{base}websub/{name}"}, repo.settings)
    return {"removed": row["topic"]}


def due_renewals(repo: Reader) -> list[dict[str, Any]]:
    """Return the subscriptions whose renewal is due; pass each to `begin_renewal`, then to `request_renewal`."""
    return repo.storage.store.subscriptions.due(repo.now(), _LONGEST)


def begin_renewal(repo: Reader, row: dict[str, Any]) -> None:
    """Store when to try again, before the request: the hub may confirm at once, and a crash must not repeat it."""
    tries = row["tries"] + 1
    pause = min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(tries - 1, 20))
    error = "it has not confirmed the last request" if row["tries"] else row["error"]
    repo.storage.store.subscriptions.set_attempt(row["name"], repo.now() + pause, tries, error)


def request_renewal(row: dict[str, Any], settings: Settings) -> str:
    """Ask the hub for a renewal, and return what went wrong; needs no repository, so that it can run in a thread."""
    try:
        _send_to_hub("subscribe", row, settings)
    except NotSent as error:
        return str(error).rstrip(".")
    return ""


def renewal_failed(repo: Reader, name: str, error: str) -> None:
    """Store why a renewal failed."""
    repo.storage.store.subscriptions.set_error(name, error[:_MAX_ERROR])


def _send_to_hub(mode: str, row: dict[str, Any], settings: Settings) -> None:
    fields = {name: row[name] for name in ("topic", "callback", "secret")} | {"mode": mode, "lease_seconds": LEASE}
    body = urlencode({f"hub.{name}": value for name, value in fields.items()}).encode()
    try:
        status = post(row["hub"], body, {"Content-Type": "application/x-www-form-urlencoded"}, settings)
    except NotSent as error:
        raise NotSent(f"The hub is unreachable: {error}.") from error
    if not 200 <= status < 300:
        raise NotSent(f"The hub returned HTTP {status}.")
