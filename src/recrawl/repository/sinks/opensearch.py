"""OpenSearch and Elasticsearch: one document for each page, through the bulk API.

The target is the URL of an index, `https://host:9200/pages`. A document's id follows from the page's URL; its version
is the number of the change (`external_gte`), so that a change that is sent again, or late, never replaces a later one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from recrawl.fetch.fetcher import FetchLimits
from recrawl.repository.outgoing import NotSent, not_accepted, send
from recrawl.repository.sinks.protocol import Event
from recrawl.settings import Settings

_LIMITS = FetchLimits(max_bytes=10_000_000, connect_seconds=10.0, total_seconds=60.0, stall_seconds=60.0)


class OpenSearch:
    """Writes pages to an index."""

    max_events = 100
    newest_only = True

    def __init__(self, target: str, secret: str, settings: Settings, clock: Callable[[], float]) -> None:
        self._target = target.rstrip("/") + "/_bulk"
        self._settings = settings
        self._clock = clock
        self._headers = {"Content-Type": "application/x-ndjson"}
        if secret:
            self._headers["Authorization"] = authorization(secret)

    def deliver(self, events: Sequence[Event]) -> dict[int, NotSent]:
        """Send one bulk request; the answer has a line for each change."""
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for event in events for line in _lines(event))
        body = lines.encode("utf-8", "replace")
        answer = send(self._target, body, self._headers, self._settings, self._clock(), _LIMITS)
        try:
            items = [
                problem
                for item in json.loads(answer)["items"]
                for problem in (_problem(*line) for line in item.items())
            ]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotSent("the answer is not one of the bulk API; check the target") from error
        if len(items) != len(events):
            raise NotSent(f"the answer is about {len(items)} of {len(events)} changes; check the target")
        return {event.id: problem for event, problem in zip(events, items, strict=True) if problem is not None}

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


def _problem(order: str, result: dict[str, Any]) -> NotSent | None:
    """Why one change was not stored; a later change already stored, or nothing to delete, is no reason."""
    status, error = int(result["status"]), result.get("error")
    nothing_to_delete = status == HTTPStatus.NOT_FOUND and order == "delete" and not error
    if 200 <= status < 300 or status == HTTPStatus.CONFLICT or nothing_to_delete:
        return None
    found = not_accepted(status)
    kind = str(error.get("type", "")) if isinstance(error, dict) else ""
    return NotSent(f"{found} {kind}".strip(), permanent=found.permanent, too_large=found.too_large)
