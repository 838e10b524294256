"""JSON Feed (https://jsonfeed.org): links and dates of its items."""

from __future__ import annotations

import json
from typing import Any

_MAX_BYTES = 8_000_000
"""A larger document is not parsed: the parser builds all of it."""
_VERSION = "jsonfeed.org/version/"


def read_items(body: bytes, limit: int) -> list[tuple[str, str]] | None:
    """Link and date of the first `limit` items; None if this is not a JSON Feed. Never raises.

    >>> read_items(b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "/a"}]}', 10)
    [('/a', '')]
    """
    if not body[:64].lstrip().startswith(b"{") or len(body) > _MAX_BYTES:
        return None
    try:
        feed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(feed, dict) or _VERSION not in _text(feed, "version"):
        return None
    items = feed.get("items")
    found = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [(_link(item), _text(item, "date_modified") or _text(item, "date_published")) for item in found[:limit]]


def _link(item: dict[str, Any]) -> str:
    """The page of an item; without a `url`, its `id` if that is a link."""
    name = _text(item, "id")
    return _text(item, "url") or (name if name.startswith(("http://", "https://")) else "")


def _text(of: dict[str, Any], name: str) -> str:
    value = of.get(name)
    return value if isinstance(value, str) else ""
