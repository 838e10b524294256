"""Whether who shows an IndexNow key speaks for the host: the host has the key in a file, as the protocol wants it.

The file is `KEY.txt` at the root of the host, or where the push says (`keyLocation`); then it speaks for what lies in
its folder only. It is asked for once a day: what was found lies in the store. Few files are asked for in an hour, only
of sites that the repository holds, without following redirects, under the rules for inner addresses that crawls of the
site have, and not while the server wants to be left alone.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass

from recrawl.crawl.options import CrawlOptions
from recrawl.discover.urls import canonical, origin
from recrawl.fetch.http import Client, FetchLimits, Request
from recrawl.model import Answer
from recrawl.record.questions import ask
from recrawl.serve.problems import Problem

_GOOD = 86400.0
"""Seconds for which a file that held the key counts."""
_BAD = 3600.0
"""Seconds after which a file that did not is looked at again."""
_SILENT = 300.0
"""The same where there was no answer that says anything."""
_AN_HOUR = 10
"""Files of one host that are asked for in an hour."""
_LARGEST = 4096
_LONGEST = 2048
_LIMITS = FetchLimits(max_bytes=_LARGEST, connect_seconds=5.0, total_seconds=10.0, stall_seconds=5.0)


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """A key that was shown for a host."""

    host: str
    key: str
    urls: list[str]
    location: str = ""
    """Where the file is; at the host's root if not said."""


def check(db: sqlite3.Connection, claim: KeyClaim, options: CrawlOptions, now: float) -> None:
    """Raise a problem unless the host's file holds the key."""
    for place in _places(claim):
        _check(db, claim, place, options, now)


def _check(db: sqlite3.Connection, claim: KeyClaim, place: str, options: CrawlOptions, now: float) -> None:
    where = origin(place)
    site = ask(db, "SELECT held_until FROM sites WHERE origin = ?", (where,))
    if not site:
        return  # nothing of it is kept here, so what it says is of no use and is not taken
    mark = hashlib.sha256(claim.key.encode()).hexdigest()
    kept = ask(db, "SELECT * FROM proofs WHERE host = ? AND key = ? AND location = ?", (claim.host, mark, place))
    if kept and kept[0]["at"] <= now < kept[0]["again"]:
        good, detail = bool(kept[0]["good"]), kept[0]["detail"]
    else:
        _ration(db, claim.host, now)
        if site[0]["held_until"] > now:
            raise Problem(503, "The host asked to be left alone for a while.", headers={"retry-after": "3600"})
        known = options.sites.get(where)
        private = options.allow_private or bool(known and known.allow_private)
        good, detail, lasts = _judged(fetch(place, private, options.agent), claim.key)
        db.execute(
            "INSERT OR REPLACE INTO proofs (host, key, location, at, good, again, detail) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (claim.host, mark, place, now, int(good), now + lasts, detail),
        )
    if not good:
        raise Problem(403, f"The host does not have this key: {detail}.")


def fetch(url: str, allow_private: bool, agent: str) -> Answer:
    """One small file; the answer says why when it could not be had."""
    client = Client(agent=agent, limits=_LIMITS, room=1)
    try:
        client.start(0, Request(url, allow_private=allow_private))
        while True:
            for _, answer in client.wait(1.0):
                return answer
    finally:
        client.close()


def _places(claim: KeyClaim) -> list[str]:
    """Where the files are, one for each server that is spoken of; a problem when they cannot speak for it."""
    urls = [url for url in map(canonical, claim.urls) if url is not None]
    if not claim.location:
        return sorted({f"{origin(url)}/{claim.key}.txt" for url in urls})
    place = canonical(claim.location) if len(claim.location) <= _LONGEST else None
    if place is None or any(origin(url) != origin(place) for url in urls):
        raise Problem(422, "keyLocation is an address on the same host.")
    folder = place.partition("?")[0].rpartition("/")[0] + "/"
    if not all(url.startswith(folder) for url in urls):
        raise Problem(422, "An address is not in the folder that keyLocation speaks for.")
    return [place] if urls else []


def _ration(db: sqlite3.Connection, host: str, now: float) -> None:
    """Only so many files of a host an hour; and what is over is forgotten."""
    db.execute("DELETE FROM proofs WHERE again <= ? AND at <= ?", (now, now - 3600.0))
    sql = "SELECT count(*) FROM proofs WHERE host = ? AND at > ?"
    (asked,) = db.execute(sql, (host, now - 3600.0)).fetchone()
    if asked >= _AN_HOUR:
        raise Problem(429, "Too many key files; come again in an hour.", headers={"retry-after": "3600"})


def _judged(answer: Answer, key: str) -> tuple[bool, str, float]:
    """Whether the file holds the key, what is said of it, and for how long that counts."""
    if answer.failure is not None:
        return False, f"{answer.url} could not be had ({answer.detail})"[:300], _SILENT
    if answer.status != 200:
        lasts = _BAD if answer.status < 500 else _SILENT
        return False, f"{answer.url} was answered with HTTP {answer.status}"[:300], lasts
    if answer.body.decode("utf-8", "replace").strip("\ufeff \t\r\n") != key:
        return False, f"{answer.url} holds something else"[:300], _BAD
    return True, "", _GOOD
