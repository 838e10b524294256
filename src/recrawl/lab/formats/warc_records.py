"""Single WARC records: the HTTP response in a block, payload digests, files that hold no pages."""

from __future__ import annotations

import base64

from fastwarc.warc import WarcRecord, WarcRecordType


def derived_kind(record: WarcRecord) -> str:
    """What kind of file without pages has such a record, as Common Crawl publishes them; empty for any other."""
    kind = (record.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    if record.record_type == WarcRecordType.conversion and kind == "text/plain":
        return "a WET file (plain text alone)"
    if record.record_type == WarcRecordType.metadata and kind == "application/json":
        return "a WAT file (metadata alone)"
    return ""


def read_http(block: bytes, limit: int) -> tuple[int | None, str, bytes | None]:
    """Return status, content type and body (at most one byte over the limit) of an HTTP response.

    Some archives store decoded bodies with the headers of the encoded ones: a body that cannot be decoded is taken as
    it is if it looks like HTML.
    """
    for how in ("all", "transfer", "none"):
        record = WarcRecord()
        record.init_headers(WarcRecordType.response)
        record.is_http = True
        record.set_bytes_content(block)
        try:
            record.parse_http(auto_decode=how)
            body: bytes = record.reader.read(limit + 1)
        except OSError:
            continue
        status = getattr(record.http_headers, "status_code", None)
        looks = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"
        kind = (record.http_content_type or ("text/html" if looks else "")).lower()
        return status, kind, body if looks or how == "all" else None
    return None, "", None


def payload_digest(text: str) -> bytes:
    """Normalise a digest: `sha1:` in base 32 or base 16 to its bytes, others to lower-case text.

    >>> payload_digest("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").hex()
    'da39a3ee5e6b4b0d3255bfef95601890afd80709'
    >>> payload_digest("SHA1:da39a3ee5e6b4b0d3255bfef95601890afd80709").hex()
    'da39a3ee5e6b4b0d3255bfef95601890afd80709'
    """
    name, _, value = text.strip().rpartition(":")
    if name.lower() in ("", "sha1"):
        try:
            return base64.b32decode(value.upper()) if len(value) == 32 else bytes.fromhex(value)
        except ValueError:
            pass
    return text.strip().lower().encode("utf-8", "replace")
