"""The changes that sinks get, made from what is recorded when they are sent."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from recrawl.errors import DamagedRecord, Unreadable
from recrawl.model import Outcome
from recrawl.record.rows import Row, VersionRow
from recrawl.repository.reader import Reader
from recrawl.repository.results.values import at
from recrawl.repository.sinks.protocol import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENVELOPE = 512
"""Bytes of a request beside the URL and the fields of a change."""


def event_of(repo: Reader, source: str, row: Row, base: Row | None) -> Event:
    """The change of a row of `listings`; `base` is the row of the earliest change before it that was not delivered."""
    versions = repo.storage.store.versions.of_page(row["page"])
    gone = row["outcome"] == Outcome.GONE
    version = next((one for one in versions if one.id == row["version"]), None) if not gone else None
    before = _before(versions, row if base is None else base)
    removals = repo.storage.store.visits.removals(row["page"]) if before is not None and version is not None else []
    return Event(
        id=row["id"],
        source=source,
        url=row["url"],
        site=row["site"],
        time=at(row["at"]),
        outcome=Outcome(row["outcome"]).name.lower(),
        title=(row["title"] or "") if version else "",
        text=_text(repo, row["url"], version) if version else "",
        digest=version.digest.hex() if version else "",
        divergence=row["divergence"],
        content=None if row["content"] is None else bool(row["content"]),
        version=version,
        before=before,
        returned=before is not None
        and (
            row["same_as"] is not None  # it was a copy, of which nothing was told
            or any(before.at < removed <= row["at"] for removed in removals)
        ),
    )


def without_text(event: Event) -> Event | None:
    """The change without its text, which its URL leads to; None if there is none."""
    return replace(event, text="", text_omitted=True) if event.text else None


def within(event: Event, limit: float) -> Event:
    """The change, without its text if its request would be larger than this; 0 is no limit."""
    largest = 6 * len(event.text)  # a character takes at most six bytes of JSON
    if not limit or largest + 6 * (len(event.title) + 2 * len(event.url)) + 2 * _ENVELOPE <= limit:
        return event
    body = json.dumps(event.as_dict(), ensure_ascii=False).encode("utf-8", "replace")
    size = len(body) + len(event.url.encode("utf-8", "replace")) + _ENVELOPE
    return (without_text(event) or event) if size > limit else event


def _before(versions: Sequence[VersionRow], row: Row) -> VersionRow | None:
    """The version before a change."""
    made = row["outcome"] != Outcome.GONE and any(one.id == row["version"] for one in versions)
    earlier = [one for one in versions if (one.id < row["version"] if made else one.at <= row["at"])]
    return earlier[-1] if earlier else None


def _text(repo: Reader, url: str, version: VersionRow) -> str:
    from recrawl.repository.results.pages import Version  # lazy: loads the parser

    try:
        return Version.of(repo, version, url, 0).text
    except (DamagedRecord, Unreadable):
        return ""
