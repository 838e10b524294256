"""Verification of IndexNow keys: the host must publish the key in a file, as the protocol requires.

The file is `KEY.txt` at the root of the host, or at `keyLocation`, where it covers only URLs in its own folder. Results
are stored and valid for a day. At most 10 files per host and hour are fetched, only from sites in the repository,
without redirects, under the site's rules for private addresses, and not while the server asked to back off.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from recrawl.columns import DAY, HOUR
from recrawl.discover.urls import canonical, origin
from recrawl.errors import RecrawlError
from recrawl.fetch.fetcher import FetchLimits, Request
from recrawl.fetch.http import fetch_one
from recrawl.fetch.lanes import MAX_RETRY_AFTER
from recrawl.model import Answer
from recrawl.record.store import Store
from recrawl.repository.reader import Reader
from recrawl.times import elapsed, remaining

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
