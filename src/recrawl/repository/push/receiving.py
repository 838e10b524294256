"""What other servers announce: URLs that have changed, and feeds with new entries."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

from recrawl.crawl.hints import push_sources
from recrawl.crawl.hints.pushes import Accepted, accept
from recrawl.discover.sitemaps import parse
from recrawl.errors import NotKnown
from recrawl.repository.push.websub import active, subscription_problems
from recrawl.repository.reader import Reader

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
    return push_sources.pushers(repo.storage.store)


def problems(repo: Reader) -> list[str]:
    """Describe failed subscriptions and push sources that are mostly wrong, one sentence each."""
    return [*subscription_problems(repo), *push_sources.troubles(repo.storage.store)]


def _valid_signature(secret: str, body: bytes, signature: str) -> bool:
    method, _, digest = signature.partition("=")
    if method not in _HASHES:
        return False
    expected = hmac.new(secret.encode(), body, _HASHES[method]).hexdigest()
    return hmac.compare_digest(expected.encode(), digest.strip().lower().encode("utf-8", "replace"))
