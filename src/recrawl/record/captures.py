"""The records of the archive files in their order, as replay tools index them: place, URL, time, status, type, digest.

Read from the files, not from the store: redirects, removals, robots.txt and everything else that was archived is among
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from recrawl.record.storage import Storage
from recrawl.record.warc import head_lines

_REPLAYED = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.resource
_LONGEST_HEAD = 200_000
"""Bytes that are searched for the headers of an answer."""
_REVISIT = "warc/revisit"
"""The media type by which CDXJ marks revisits."""


class Capture(NamedTuple):
    """One record and its place in an archive file."""

    file: str
    start: int
    end: int
    at: float
    url: str
    replayed: bool
    """Whether replay tools show it: a response, a revisit or a resource, not a request or a `warcinfo`."""
    status: int | None
    mime: str
    digest: str


def captures(storage: Storage, since: float = float("-inf")) -> Iterator[Capture]:
    """The committed records of all files that are not older than `since`, file by file."""
    lengths = storage.store.warcs.lengths()
    for number, name in sorted(storage.store.warcs.names().items()):
        yield from (capture for capture in _of_file(storage, name, lengths[number]) if capture.at >= since)


def _of_file(storage: Storage, name: str, length: int) -> Iterator[Capture]:
    """The records in the committed part of a file; a record ends where the next one begins."""
    last: Capture | None = None
    with storage.archive.path(name).open("rb") as stream:
        for record in ArchiveIterator(stream, parse_http=False):
            start = record.stream_pos
            if last is not None:
                yield last._replace(end=start)
                last = None
            if start >= length:
                return
            last = _capture(name, record)
    if last is not None:
        yield last._replace(end=length)


def _capture(name: str, record: WarcRecord) -> Capture:
    revisit = record.record_type == WarcRecordType.revisit
    resource = record.record_type == WarcRecordType.resource
    status, content_type = None, record.headers.get("Content-Type") or ""
    if record.is_http:
        status, fields = head_lines(record.reader.read(_LONGEST_HEAD).partition(b"\r\n\r\n")[0])
        content_type = next((value for name, value in fields if name.lower() == "content-type"), "")
    elif not resource:
        content_type = ""
    mime = _REVISIT if revisit else content_type.partition(";")[0].strip().lower()
    return Capture(
        file=name,
        start=record.stream_pos,
        end=record.stream_pos,
        at=record.record_date.timestamp(),
        url=record.headers.get("WARC-Target-URI") or "",
        replayed=bool(record.record_type & _REPLAYED),
        status=status or None,
        mime=mime,
        digest=record.headers.get("WARC-Payload-Digest") or "",
    )
