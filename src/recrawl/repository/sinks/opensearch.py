"""OpenSearch and Elasticsearch: one document for each page, through the bulk API.

The target is the URL of an index, `https://host:9200/pages`. A document's id follows from the page's URL; its version
is the number of the change (`external_gte`), so that a change that is sent again, or late, never replaces a later one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from recrawl.fetch.fetcher import FetchLimits
from recrawl.repository.outgoing import NotSent, exchange
from recrawl.repository.sinks.protocol import Event
from recrawl.settings import Settings

_LIMITS = FetchLimits(max_bytes=10_000_000, connect_seconds=10.0, total_seconds=60.0, stall_seconds=60.0)
_CONFLICT, _NOT_FOUND = 409, 404


class OpenSearch:
    """Writes pages to an index."""

    max_events = 100

    def __init__(self, target: str, secret: str, settings: Settings) -> None:
        self._target = target.rstrip("/") + "/_bulk"
        self._settings = settings
        self._headers = {"Content-Type": "application/x-ndjson"}
        if secret:
            self._headers["Authorization"] = authorization(secret)

    def deliver(self, events: Sequence[Event]) -> None:
        """Send one bulk request; every line of the answer must be a success."""
        body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for event in events for line in _lines(event))
        status, answer = exchange(self._target, body.encode("utf-8", "replace"), self._headers, self._settings, _LIMITS)
        if status != 200:
            raise NotSent(f"the server returned HTTP {status}")
        try:
            items = json.loads(answer)["items"]
            bad = [problem for item in items for problem in map(_problem, item.values()) if problem]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotSent("the answer is not one of the bulk API; check the target") from error
        if bad or len(items) != len(events):
            raise NotSent(f"{len(bad)} of {len(events)} changes were not stored: {(bad or ['no answer'])[0]}")

    def close(self) -> None:
        """Nothing is open between requests."""


def authorization(secret: str) -> str:
    """The header of a secret: `user:password`, an API key, or a whole header such as `Bearer x`.

    >>> authorization("user:password"), authorization("a2V5"), authorization("Bearer x")
    ('Basic dXNlcjpwYXNzd29yZA==', 'ApiKey a2V5', 'Bearer x')
    """
    if " " in secret:
        return secret
    return f"Basic {base64.b64encode(secret.encode()).decode()}" if ":" in secret else f"ApiKey {secret}"


def document_id(url: str) -> str:
    """The id of a page's document."""
    return hashlib.blake2b(url.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _lines(event: Event) -> list[dict[str, Any]]:
    order = {"_id": document_id(event.url), "version": event.id, "version_type": "external_gte"}
    return [{"delete": order}] if event.removed else [{"index": order}, event.as_dict()]


def _problem(result: dict[str, Any]) -> str:
    """Why one change was not stored; a later change already stored, or nothing to delete, is none."""
    status = int(result["status"])
    if 200 <= status < 300 or status in (_CONFLICT, _NOT_FOUND):
        return ""
    error = result.get("error")
    return f"HTTP {status} {error.get('type', '') if isinstance(error, dict) else ''}".strip()
