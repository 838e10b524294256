"""Servers that announce changes: WebSub subscriptions, keys of IndexNow, and what is received from both."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from recrawl.columns import DAY, HOUR
from recrawl.crawl import hints
from recrawl.crawl.hints import Accepted, accept
from recrawl.discover.sitemaps import parse
from recrawl.discover.urls import canonical, origin
from recrawl.errors import NotKnown, RecrawlError, UsageError
from recrawl.fetch.fetcher import FetchLimits, Request
from recrawl.fetch.http import fetch_one
from recrawl.fetch.lanes import MAX_RETRY_AFTER
from recrawl.model import Answer
from recrawl.record.store import Store
from recrawl.repository.outgoing import NotSent, post
from recrawl.repository.reader import Reader
from recrawl.settings import Settings
from recrawl.times import elapsed, remaining, stamp

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


_VALID_SECONDS = DAY


"""How long a file that holds the key is trusted."""


_INVALID_SECONDS = HOUR


"""After how long a file that does not hold the key is fetched again."""


_NO_ANSWER_SECONDS = 300.0


"""The same after a failed fetch or a server error."""


_FILES_PER_HOUR = 10


"""Key files fetched per host and hour."""


_MAX_URL = 2048


_LIMITS = FetchLimits(max_bytes=4096, connect_seconds=5.0, total_seconds=10.0, stall_seconds=5.0)


class KeyRefused(RecrawlError):
    """A push is refused: `reason` is unconfirmed, location (of the key file), rate (of requests for it) or held."""

    def __init__(self, reason: Literal["unconfirmed", "location", "rate", "held"], text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """An IndexNow push: URLs of a host, and the key that proves it comes from the host."""

    host: str
    key: str
    urls: list[str]
    location: str = ""
    """URL of the key file; empty: at the host's root."""


def verify_key(repo: Reader, claim: KeyClaim) -> None:
    """Raise KeyRefused unless the host's key file holds the key."""
    for url in _key_urls(claim):
        _verify_file(repo, claim, url)


def _verify_file(repo: Reader, claim: KeyClaim, place: str) -> None:
    store, now, options = repo.storage.store, repo.now(), repo.options()
    site_origin = origin(place)
    held_until = store.sites.held_until(site_origin)
    if held_until is None:
        return  # the repository has no page of this site, so its URLs are not accepted anyway
    mark = hashlib.sha256(claim.key.encode()).hexdigest()
    kept = store.key_proofs.get(claim.host, mark, place)
    if kept and 0.0 <= elapsed(kept["at"], now) < kept["again"] - kept["at"]:
        good, detail = bool(kept["good"]), kept["detail"]
    else:
        _check_rate(store, claim.host, now)
        if remaining(held_until, now, MAX_RETRY_AFTER):
            raise KeyRefused("held", "The host asked us to back off; try again later.")
        private = options.of_site(site_origin).private
        answer = fetch_one(Request(place, private=private), agent=options.agent, limits=_LIMITS)
        good, detail, lasts = _verdict(answer, claim.key)
        proof = {"host": claim.host, "key": mark, "location": place, "at": now}
        store.key_proofs.put({**proof, "good": int(good), "again": now + lasts, "detail": detail})
    if not good:
        raise KeyRefused("unconfirmed", f"Key not confirmed by the host: {detail}.")


def _key_urls(claim: KeyClaim) -> list[str]:
    """Return the key file of each server in the claim; raise KeyRefused if `keyLocation` does not cover the URLs."""
    urls = [url for url in map(canonical, claim.urls) if url is not None]
    if not claim.location:
        return sorted({f"{origin(url)}/{claim.key}.txt" for url in urls})
    place = canonical(claim.location) if len(claim.location) <= _MAX_URL else None
    if place is None or any(origin(url) != origin(place) for url in urls):
        raise KeyRefused("location", "keyLocation must be a URL on the same host.")
    folder = place.partition("?")[0].rpartition("/")[0] + "/"
    if not all(url.startswith(folder) for url in urls):
        raise KeyRefused("location", "A URL is outside the folder of keyLocation.")
    return [place] if urls else []


def _check_rate(store: Store, host: str, now: float) -> None:
    """Raise KeyRefused if too many key files of a host were fetched in the last hour; delete expired results."""
    store.key_proofs.remove_expired(now, now - HOUR)
    if store.key_proofs.count_since(host, now - HOUR) >= _FILES_PER_HOUR:
        raise KeyRefused("rate", "Too many key files for this host; try again in an hour.")


def _verdict(answer: Answer, key: str) -> tuple[bool, str, float]:
    """Return whether the file holds the key, why not, and how many seconds that is valid."""
    if answer.failure is not None:
        return False, f"{answer.url} could not be fetched ({answer.detail})"[:300], _NO_ANSWER_SECONDS
    if answer.status != 200:
        lasts = _INVALID_SECONDS if answer.status < 500 else _NO_ANSWER_SECONDS
        return False, f"{answer.url} returned HTTP {answer.status}"[:300], lasts
    if answer.body.decode("utf-8", "replace").strip("\ufeff \t\r\n") != key:
        return False, f"{answer.url} does not contain the key"[:300], _INVALID_SECONDS
    return True, "", _VALID_SECONDS


__all__ = ["Accepted", "accept_feed", "announce", "problems", "sources"]


_MAX_ENTRIES = 1000


_HASHES = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


def announce(repo: Reader, urls: Iterable[str], kind: str, source: str) -> Accepted:
    """Queue URLs that `source` reports as changed, for the next cycle; `kind` is indexnow or websub."""
    return accept(repo.storage, urls, kind, source, repo.now())


def accept_feed(repo: Reader, name: str, body: bytes, signature: str) -> None:
    """Accept the URLs of a feed that a hub sent; ignore a wrong signature silently, as WebSub recommends."""
    known = repo.storage.store.subscriptions.get(name)
    if known is None or not active(known, repo.now()):
        raise NotKnown("there is no such subscription")
    if not _valid_signature(known["secret"], body, signature):
        return
    feed = parse(body, known["topic"], max_bytes=len(body), max_entries=_MAX_ENTRIES)
    announce(repo, dict.fromkeys(entry.url for entry in feed.entries), "websub", f"websub {name[:12]}")


def sources(repo: Reader) -> list[dict[str, Any]]:
    """Return all sources of pushes with their precision; untrusted ones first."""
    return hints.pushers(repo.storage.store)


def problems(repo: Reader) -> list[str]:
    """Describe failed subscriptions and push sources that are mostly wrong, one sentence each."""
    return [*subscription_problems(repo), *hints.troubles(repo.storage.store)]


def _valid_signature(secret: str, body: bytes, signature: str) -> bool:
    method, _, digest = signature.partition("=")
    if method not in _HASHES:
        return False
    expected = hmac.new(secret.encode(), body, _HASHES[method]).hexdigest()
    return hmac.compare_digest(expected.encode(), digest.strip().lower().encode("utf-8", "replace"))
