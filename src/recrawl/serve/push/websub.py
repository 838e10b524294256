"""WebSub subscriptions: hubs notify the service when a feed has new entries.

The callback URL contains a random name, and the hub signs with a random secret; unsigned content is ignored.

A hub grants a subscription for a limited time (the lease). `Renewals` requests a renewal after 70 % of the lease, and
retries with growing pauses if the hub does not confirm. The time of the next request is in the store, so it survives
a restart.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from recrawl.columns import DAY
from recrawl.crawl.hints import push_sources
from recrawl.discover.urls import canonical
from recrawl.errors import NotKnown, RecrawlError, UsageError
from recrawl.record.storage import Storage
from recrawl.record.store import TEMPORARY_ERRORS, Store
from recrawl.repository.opening import load
from recrawl.repository.outgoing import NotSent, post
from recrawl.serve.senders import Senders
from recrawl.settings import Settings
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
_LAST_SECONDS, _STOP_SECONDS = 3.0, 8.0
"""How long the thread waits at the end for requests under way, and how long its owner waits for the thread."""


def active(row: dict[str, Any], now: float) -> bool:
    """Return whether the hub has confirmed the subscription and its lease has not expired."""
    return bool(row["state"] == "active" and row["expires"] > now)


def subscription_problems(store: Store, now: float) -> list[str]:
    """Describe failed subscriptions, one sentence each."""
    found = []
    for row in store.subscriptions.public():
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


def push_problems(store: Store, now: float) -> list[str]:
    """Describe failed subscriptions and push sources that are mostly wrong, one sentence each."""
    return [*subscription_problems(store, now), *push_sources.troubles(store)]


def confirm(store: Store, name: str, now: float, lease: int) -> None:
    """Store that the hub confirmed the subscription."""
    store.subscriptions.confirm(name, now + lease, now + max(_MIN_INTERVAL, lease * RENEW_AFTER))


def subscribe(store: Store, settings: Settings, topic: str, hub: str, base: str, now: float) -> dict[str, Any]:
    """Request or renew a subscription; the hub confirms it through the callback."""
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
        _send_to_hub("subscribe", row, settings)
    except NotSent:
        store.subscriptions.remove(name)
        if before:
            store.subscriptions.put(before)
        raise
    # The hub may have confirmed before its response arrived; otherwise retry later.
    store.subscriptions.set_first_due(name, now + _FIRST_RETRY)
    return {"name": name, "topic": topic_url, "hub": hub_url, "state": "asked", "callback": callback}


def unsubscribe(store: Store, settings: Settings, name: str, base: str) -> dict[str, Any]:
    """Delete a subscription, then tell the hub; its content is refused from now on, whatever the hub does."""
    row = store.subscriptions.get(name)
    if row is None:
        raise NotKnown(f"there is no subscription '{name}'")
    store.subscriptions.remove(name)
    _send_to_hub("unsubscribe", {**row, "callback": row["callback"] or f"{base}websub/{name}"}, settings)
    return {"removed": row["topic"]}


Renewing = Senders[tuple[str, str]]
"""Threads that request renewals; a result is the name of a subscription and the error, if any."""


def renew(store: Store, settings: Settings, now: float, senders: Renewing) -> int:
    """Start to request the renewals that are due, all hubs in parallel; return how many."""
    started = 0
    for row in store.subscriptions.due(now):
        if not senders.free(row["hub"]):
            continue  # it stays due
        tries = row["tries"] + 1
        pause = min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(tries - 1, 20))
        # Stored before the request: the hub may confirm immediately, and a crash must not repeat the request at once.
        error = "it has not confirmed the last request" if row["tries"] else row["error"]
        store.subscriptions.set_attempt(row["name"], now + pause, tries, error)
        senders.start(row["hub"], partial(_request_renewal, row, settings))
        started += 1
    return started


def settle_renewals(store: Store, senders: Renewing, seconds: float = 0.0) -> None:
    """Record the errors of the requests that have ended; wait up to `seconds` for those under way."""
    for name, error in senders.collect(seconds):
        if error:
            store.subscriptions.set_error(name, error[:_MAX_ERROR])


def _request_renewal(row: dict[str, Any], settings: Settings) -> tuple[str, str]:
    try:
        _send_to_hub("subscribe", row, settings)
    except NotSent as error:
        return row["name"], str(error).rstrip(".")
    return row["name"], ""


class Renewals:
    """Thread that renews subscriptions."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._wake = threading.Event()
        self._ending = False
        self._senders: Renewing = Senders(self._wake.set)
        self._thread = threading.Thread(target=self._loop, name="renewals", daemon=True)

    def start(self) -> None:
        """Start the thread; overdue renewals are requested immediately."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; requests under way have a few seconds to end."""
        self._ending = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _loop(self) -> None:
        with Storage(self._folder) as repository:
            while True:
                with contextlib.suppress(*TEMPORARY_ERRORS, RecrawlError):  # busy, or invalid settings: retried in 15 s
                    renew(repository.store, load(self._folder), self._clock(), self._senders)
                    settle_renewals(repository.store, self._senders, _LAST_SECONDS if self._ending else 0.0)
                if self._ending:
                    return
                self._wake.wait(_CHECK_INTERVAL)
                self._wake.clear()


def _send_to_hub(mode: str, row: dict[str, Any], settings: Settings) -> None:
    fields = {name: row[name] for name in ("topic", "callback", "secret")} | {"mode": mode, "lease_seconds": LEASE}
    body = urlencode({f"hub.{name}": value for name, value in fields.items()}).encode()
    try:
        status = post(row["hub"], body, {"Content-Type": "application/x-www-form-urlencoded"}, settings)
    except NotSent as error:
        raise NotSent(f"The hub is unreachable: {error}.") from error
    if not 200 <= status < 300:
        raise NotSent(f"The hub returned HTTP {status}.")
