"""Single WARC records: the HTTP response in a block, and files that hold no pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fastwarc.warc import WarcRecord, WarcRecordType


class HttpAnswer(NamedTuple):
    """An HTTP response in a WARC record."""

    status: int | None
    """None if it is no HTTP."""
    kind: str
    """Its content type in lower case; guessed from the body if there is none."""
    head: bytes
    """Status line and headers as they are stored."""
    body: bytes | None
    """Decoded, at most one byte over the limit; None if it cannot be decoded."""


def derived_kind(record: WarcRecord) -> str:
    """What kind of file without pages has such a record, as Common Crawl publishes them; empty for any other."""
    kind = (record.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    if record.record_type == WarcRecordType.conversion and kind == "text/plain":
        return "a WET file (plain text alone)"
    if record.record_type == WarcRecordType.metadata and kind == "application/json":
        return "a WAT file (metadata alone)"
    return ""


def read_http(block: bytes, limit: int) -> HttpAnswer:
    """Read an HTTP response.

    Some archives store decoded bodies with the headers of the encoded ones: a body that cannot be decoded is taken as
    it is if it looks like HTML.
    """
    head = block[: _body_start(block)]
    for how in ("all", "transfer", "none"):
        record = _http(block)
        try:
            record.parse_http(auto_decode=how)
            body: bytes = record.reader.read(limit + 1)
        except OSError:
            continue
        status = getattr(record.http_headers, "status_code", None)
        looks = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"
        kind = (record.http_content_type or ("text/html" if looks else "")).lower()
        return HttpAnswer(status, kind, head, body if looks or how == "all" else None)
    return HttpAnswer(None, "", head, None)


def payloads(block: bytes, limit: int) -> Iterator[bytes]:
    """What programs have taken for the payload of a response: the body as it was sent, without its chunks, decoded."""
    yield block[_body_start(block) :]
    for how in ("transfer", "all"):
        record = _http(block)
        try:
            record.parse_http(auto_decode=how)
            yield record.reader.read(limit + 1)
        except OSError:
            continue


def _http(block: bytes) -> WarcRecord:
    record = WarcRecord()
    record.init_headers(WarcRecordType.response)
    record.is_http = True
    record.set_bytes_content(block)
    return record


def _body_start(block: bytes) -> int:
    """Where the headers have ended."""
    ends = [place + len(end) for end in (b"\r\n\r\n", b"\n\n") if (place := block.find(end)) >= 0]
    return min(ends, default=len(block))
