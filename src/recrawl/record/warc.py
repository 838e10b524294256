"""Visits as WARC records: built as bytes, one gzip member each, ready to be appended to a file.

A changed page gives a `request` and a `response`; an unchanged one a `revisit` (ISO 28500:2017 §6.7) that names
the response it repeats by URL, date, digest and record id, so that any replay tool finds the body:

- the server sent the same bytes again: profile *identical-payload-digest*, with the headers it sent;
- the server said 304: profile *server-not-modified* with an empty block, since replay tools take the headers of a
  revisit for the page's own when there are any.

Bodies are stored decompressed; `Content-Encoding` and `Transfer-Encoding` are renamed, as in other archives, because
they no longer describe the body. Record ids are hashes of the contents: the same visit gives the same bytes.

This module formats records itself and reads them with FastWARC: the record is most of the cost of an unchanged visit,
and building it with a library costs four times as much. No value contains a line break: URLs are canonical, the other
values are our own.
"""

from __future__ import annotations

import hashlib
import io
import math
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus

from fastwarc.warc import ArchiveIterator, WarcRecordType
from isal import igzip_lib

IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

_LEVEL = 1  # igzip's level 1 compresses HTML as well as zlib's 6, at a fifth of the cost
_SMALL = 2000  # bytes; below this, level 0 costs a fifth of level 1 and is hardly larger
_RENAMED = {"content-encoding", "transfer-encoding", "content-length"}
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_RESPONSE = "application/http; msgtype=response"
_REQUEST = "application/http; msgtype=request"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [first + second for first in _BASE32 for second in _BASE32]
_PLACES = range(150, -1, -10)
_STANDARD = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
Headers = tuple[tuple[str, str], ...]
WarcInfo = tuple[tuple[str, str], ...]
"""Fields of the record `warcinfo`: software, operator, robots policy and so on."""


def response(
    url: str, at: float, ip: str, status: int, headers: Headers, body: bytes, digest: bytes, request: bytes
) -> bytes:
    """A response and its request; the response comes first, so that its offset is the offset of the blob."""
    identity, date = record_id(url, at, "response"), warc_date(at)
    target = _record(
        "response",
        identity,
        date,
        f"WARC-Target-URI: {url}\r\n{_address(ip)}"
        f"WARC-Payload-Digest: {sha1_text(digest)}\r\nContent-Type: {_RESPONSE}\r\n",
        _http_head(status, headers, len(body)),
        body,
    )
    asked = _record(
        "request",
        record_id(url, at, "request"),
        date,
        f"WARC-Target-URI: {url}\r\nWARC-Concurrent-To: <urn:uuid:{identity}>\r\nContent-Type: {_REQUEST}\r\n",
        request,
    )
    return target + asked


def revisit(
    url: str, at: float, ip: str, digest: bytes, original_at: float, same_bytes: tuple[int, Headers] | None
) -> bytes:
    """The page is unchanged since `original_at`; `same_bytes` is status and headers, None for a 304."""
    fields = (
        f"WARC-Target-URI: {url}\r\n{_address(ip)}"
        f"WARC-Profile: {IDENTICAL if same_bytes else NOT_MODIFIED}\r\n"
        f"WARC-Payload-Digest: {sha1_text(digest)}\r\n"
        f"WARC-Refers-To: <urn:uuid:{record_id(url, original_at, 'response')}>\r\n"
        f"WARC-Refers-To-Target-URI: {url}\r\n"
        f"WARC-Refers-To-Date: {warc_date(original_at)}\r\n"
        f"Content-Type: {_RESPONSE}\r\n"
    )
    block = _http_head(*same_bytes, None) if same_bytes else b""
    return _record("revisit", record_id(url, at, "revisit"), warc_date(at), fields, block)


def warcinfo(name: str, at: float, info: WarcInfo) -> bytes:
    """The first record of every file; `info` says how it was made."""
    fixed = (("format", "WARC File Format 1.1"), ("conformsTo", _STANDARD))
    block = "".join(f"{field}: {value}\r\n" for field, value in (*info, *fixed)).encode()
    fields = f"WARC-Filename: {name}\r\nContent-Type: application/warc-fields\r\n"
    return _record("warcinfo", record_id(name, at, "warcinfo"), warc_date(at), fields, block)


def read_body(blob: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and body of the first response in these bytes."""
    for record in ArchiveIterator(io.BytesIO(blob), record_types=WarcRecordType.response, parse_http=True):
        status = int(record.http_headers.status_code or 0)
        headers = tuple((str(k), str(v)) for k, v in record.http_headers.astuples())
        return status, headers, record.reader.read()
    raise ValueError("no response record in these bytes")


def record_id(url: str, at: float, kind: str) -> str:
    """A record's id, derived from its contents."""
    name = hashlib.blake2b(f"{kind} {at:.6f} {url}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    text = name.hex()  # as a random UUID would look: version 4, variant 8
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"


def warc_date(at: float) -> str:
    """
    >>> warc_date(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    second = math.floor(at)
    return f"{_second(second)}.{min(int((at - second) * 1e6), 999_999):06d}Z"


@lru_cache(maxsize=1024)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def _record(kind: str, identity: str, date: str, fields: str, *block: bytes) -> bytes:
    length = sum(map(len, block))
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Date: {date}\r\nWARC-Record-ID: <urn:uuid:{identity}>\r\n"
        f"Content-Length: {length}\r\n{fields}\r\n"
    )
    plain = b"".join((head.encode("utf-8", "surrogatepass"), *block, b"\r\n\r\n"))
    packed: bytes = igzip_lib.compress(plain, _LEVEL if length > _SMALL else 0, flag=igzip_lib.COMP_GZIP)
    return packed


def _http_head(status: int, headers: Headers, length: int | None) -> bytes:
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}"]
    for name, value in headers:
        lines.append(f"{f'X-Archive-Orig-{name}' if name.lower() in _RENAMED else name}: {value}")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _address(ip: str) -> str:
    return f"WARC-IP-Address: {ip}\r\n" if ip else ""


def sha1_text(digest: bytes) -> str:
    """A SHA-1 in base 32, two letters at a time: five times as fast as `base64.b32encode`.

    >>> sha1_text(bytes(20))
    'sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    number = int.from_bytes(digest, "big")
    return "sha1:" + "".join([_PAIRS[number >> place & 1023] for place in _PLACES])
