"""Visits as WARC records: built as bytes, one gzip member each, ready to be appended to a file.

A page that a browser has rendered has a `conversion` too: the page after its scripts have run. A screenshot is a
`resource`.

A changed page gives a `response` and its `request`, and so does every redirect, 404, 410 and robots.txt. An unchanged
page gives a `revisit` (ISO 28500:2017 §6.7) that names the response it repeats by URL, date, digest and record id, so
that any replay tool finds the body:

- the server sent the same bytes again: profile *identical-payload-digest*, with the headers it sent;
- the server said 304: profile *server-not-modified*. Its block is empty, because replay tools would show a block with a
  status or headers instead of the page; so the headers of the 304 are fields of the record, `X-HTTP-304-NAME`. (In a
  `metadata` record beside it they would cost as much again as the revisit.)

Bodies are stored decompressed; `Content-Encoding` and `Transfer-Encoding` are renamed, as in other archives, because
they no longer describe the body. Record ids are hashes of the contents: the same visit gives the same bytes.

This module formats records itself and reads them with FastWARC: the record is most of the cost of an unchanged visit,
and building it with a library costs four times as much. No value contains a line break: URLs are canonical, the other
values are our own.
"""

from __future__ import annotations

import functools
import hashlib
import io
import math
import operator
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from isal import igzip_lib, isal_zlib

if TYPE_CHECKING:
    from fastwarc.warc import WarcRecord

IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

RENDERED = "text/html; charset=utf-8"
"""The media type of pages after their scripts have run."""
_LEVEL = 1  # igzip's level 1 compresses HTML as well as zlib's 6, at a fifth of the cost
_SMALL = 2000  # bytes; below this, level 0 costs a fifth of level 1 and is hardly larger
_ORIGINAL = "X-Archive-Orig-"
_RENAMED = {"content-encoding", "transfer-encoding", "content-length"}
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_RESPONSE = "application/http; msgtype=response"
_REQUEST = "application/http; msgtype=request"
_GZIP = b"\x1f\x8b"
_FOLDED = re.compile(rb"\r?\n[ \t]+")
_NO_RESPONSE = "no response record in these bytes"
_TRUNCATED = "WARC-Truncated: length\r\n"
_SCREENSHOT = "urn:fullPage:"
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" + bytes(224)
_STANDARD = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
Headers = tuple[tuple[str, str], ...]
WarcInfo = tuple[tuple[str, str], ...]
"""Fields of the record `warcinfo`: software, operator, robots policy and so on."""


def response(
    url: str,
    at: float,
    ip: str,
    status: int,
    headers: Headers,
    body: bytes,
    digest: bytes,
    request: bytes,
    *,
    truncated: bool = False,
) -> bytes:
    """A response and its request; the response comes first, so that its offset is the offset of the blob.

    Without a request there is no record of it: imported versions have none.
    """
    identity, date = record_id(url, at, "response"), warc_date(at)
    target = _record(
        "response",
        identity,
        date,
        f"WARC-Target-URI: {url}\r\n{_address(ip)}{_TRUNCATED if truncated else ''}"
        f"WARC-Payload-Digest: {sha1_text(digest)}\r\nContent-Type: {_RESPONSE}\r\n",
        b"".join((_http_head(status, headers, len(body)), body)),
    )
    if not request:
        return target
    asked = _record(
        "request",
        record_id(url, at, "request"),
        date,
        f"WARC-Target-URI: {url}\r\nWARC-Concurrent-To: <urn:uuid:{identity}>\r\nContent-Type: {_REQUEST}\r\n",
        request,
    )
    return target + asked


def conversion(url: str, at: float, rendered: bytes) -> bytes:
    """The page of a response after its scripts have run, as HTML in UTF-8."""
    fields = (
        f"WARC-Target-URI: {url}\r\nWARC-Refers-To: <urn:uuid:{record_id(url, at, 'response')}>\r\n"
        f"Content-Type: {RENDERED}\r\n"
    )
    return _record("conversion", record_id(url, at, "conversion"), warc_date(at), fields, rendered)


def screenshot(url: str, at: float, beside: str, picture: bytes, digest: bytes) -> bytes:
    """A screenshot as PNG, under the name that other crawlers give it; `beside` is the type of the visit's record."""
    fields = (
        f"WARC-Target-URI: {_SCREENSHOT}{url}\r\nWARC-Concurrent-To: <urn:uuid:{record_id(url, at, beside)}>\r\n"
        f"WARC-Payload-Digest: {sha1_text(digest)}\r\nContent-Type: image/png\r\n"
    )
    return _record("resource", record_id(url, at, "screenshot"), warc_date(at), fields, picture)


class Original(NamedTuple):
    """The response that a revisit repeats."""

    url: str
    at: float
    payload: bytes
    """SHA-1 of its body."""


def revisit(url: str, at: float, ip: str, original: Original, status: int, headers: Headers) -> bytes:
    """The page is as it was in `original`: the server has sent the same bytes again, or 304."""
    identity, date = record_id(url, at, "revisit"), warc_date(at)
    not_modified = status == 304
    fields = (
        f"WARC-Target-URI: {url}\r\n{_address(ip)}"
        f"WARC-Profile: {NOT_MODIFIED if not_modified else IDENTICAL}\r\n"
        f"WARC-Payload-Digest: {sha1_text(original.payload)}\r\n"
        f"WARC-Refers-To: <urn:uuid:{record_id(original.url, original.at, 'response')}>\r\n"
        f"WARC-Refers-To-Target-URI: {original.url}\r\n"
        f"WARC-Refers-To-Date: {warc_date(original.at)}\r\n"
        f"Content-Type: {_RESPONSE}\r\n"
    )
    if not_modified:
        received = "".join(
            [f"X-HTTP-304-{name}: {value}\r\n" for name, value in headers if (name + value).isprintable()]
        )
        return _record("revisit", identity, date, fields + received, b"", _NO_BLOCK_DIGEST)
    return _record("revisit", identity, date, fields, _http_head(status, headers, None))


def warcinfo(name: str, at: float, info: WarcInfo) -> bytes:
    """The first record of every file; `info` says how it was made."""
    fixed = (("format", "WARC File Format 1.1"), ("conformsTo", _STANDARD))
    block = "".join(f"{field}: {value}\r\n" for field, value in (*info, *fixed)).encode()
    fields = f"WARC-Filename: {name}\r\nContent-Type: application/warc-fields\r\n"
    return _record("warcinfo", record_id(name, at, "warcinfo"), warc_date(at), fields, block)


def fields_of(record: bytes) -> dict[str, str]:
    """The fields of a decompressed record."""
    head = record.partition(b"\r\n\r\n")[0].decode("utf-8", "surrogatepass")
    return dict(line.partition(": ")[::2] for line in head.split("\r\n")[1:])


def with_fields(record: bytes, fields: Mapping[str, str | None]) -> bytes:
    """A decompressed record with other values of these fields, compressed; None leaves a field out.

    >>> record = b"WARC/1.1\\r\\nA: 1\\r\\nB: 2\\r\\n\\r\\nblock\\r\\n\\r\\n"
    >>> _unpacked(with_fields(record, {"A": "3", "B": None}))
    b'WARC/1.1\\r\\nA: 3\\r\\n\\r\\nblock\\r\\n\\r\\n'
    """
    head, _, rest = record.partition(b"\r\n\r\n")
    lines = []
    for line in head.decode("utf-8", "surrogatepass").split("\r\n"):
        name = line.partition(": ")[0]
        value = fields.get(name, "")
        if name not in fields:
            lines.append(line)
        elif value is not None:
            lines.append(f"{name}: {value}")
    made = "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass") + rest
    return gzip_member(made, small=len(made) <= _SMALL)


def read_body(blob: bytes) -> tuple[int, Headers, bytes]:
    """Status, headers and body of the first response in these bytes."""
    for record in _records(blob, "response"):
        return _answer(record)
    raise ValueError(_NO_RESPONSE)


def read_shown(blob: bytes) -> tuple[int, Headers, bytes]:
    """As `read_body`, but the page after its scripts have run, if these bytes have it."""
    answer: tuple[int, Headers, bytes] | None = None
    for record in _records(blob, "response", "conversion"):
        if record.headers["WARC-Type"] == "response":
            answer = answer or _answer(record)
        elif answer is not None:
            kept = tuple((name, value) for name, value in answer[1] if name.lower() != "content-type")
            return answer[0], (*kept, ("Content-Type", RENDERED)), record.reader.read()
    if answer is None:
        raise ValueError(_NO_RESPONSE)
    return answer


def read_resource(blob: bytes) -> bytes:
    """The contents of the first resource in these bytes."""
    for record in _records(blob, "resource"):
        contents: bytes = record.reader.read()
        return contents
    raise ValueError("no resource record in these bytes")


def _answer(record: WarcRecord) -> tuple[int, Headers, bytes]:
    head, _, body = record.reader.read().partition(b"\r\n\r\n")
    if not head:
        raise ValueError(_NO_RESPONSE)
    return *head_lines(head), body


def _records(blob: bytes, *kinds: str) -> Iterator[WarcRecord]:
    from fastwarc.warc import ArchiveIterator, WarcRecordType  # lazy: many commands read no record

    wanted = functools.reduce(operator.or_, [getattr(WarcRecordType, kind) for kind in kinds])
    yield from ArchiveIterator(io.BytesIO(_unpacked(blob)), record_types=wanted, parse_http=False)


def _unpacked(blob: bytes) -> bytes:
    """Records without their compression, in half the time that FastWARC takes; damaged ones are left to it."""
    records, rest = [], blob
    while rest.startswith(_GZIP):
        member = isal_zlib.decompressobj(wbits=31)
        try:
            records.append(member.decompress(rest))
        except isal_zlib.error:  # type: ignore[misc]  # its stub declares an instance
            return blob
        rest = member.unused_data
    return blob if rest or not records or not member.eof else b"".join(records)


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


@functools.lru_cache(maxsize=1024)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def _record(kind: str, identity: str, date: str, fields: str, block: bytes, digest: str = "") -> bytes:
    """A record; `digest` is that of the block where it is known."""
    length = len(block)
    digest = digest or _block_digest(block)
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Date: {date}\r\nWARC-Record-ID: <urn:uuid:{identity}>\r\n"
        f"Content-Length: {length}\r\nWARC-Block-Digest: {digest}\r\n{fields}\r\n"
    )
    return gzip_member(b"".join((head.encode("utf-8", "surrogatepass"), block, b"\r\n\r\n")), small=length <= _SMALL)


def gzip_member(record: bytes, *, small: bool = False) -> bytes:
    """A record, compressed."""
    packed: bytes = igzip_lib.compress(record, 0 if small else _LEVEL, flag=igzip_lib.COMP_GZIP)
    return packed


def _http_head(status: int, headers: Headers, length: int | None) -> bytes:
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}"]
    for name, value in headers:
        lines.append(f"{_ORIGINAL if name.lower() in _RENAMED else ''}{name}: {value}")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def read_head(head: bytes, length: int) -> tuple[int, Headers]:
    """Status and headers of a stored response with a body of this length: the inverse of what `response` writes.

    >>> read_head(b"HTTP/1.1 200 OK\\r\\nX-Archive-Orig-Content-Encoding: br\\r\\nContent-Length: 9\\r\\n\\r\\n", 9)
    (200, (('Content-Encoding', 'br'),))
    """
    status, lines = head_lines(head)
    headers = []
    for name, value in lines:
        sent = name.removeprefix(_ORIGINAL)
        headers.append((sent if sent.lower() in _RENAMED else name, value))
    if headers and headers[-1][0].lower() == "content-length" and headers[-1][1] == str(length):
        headers.pop()  # `response` states the length of the stored body last
    return status, tuple(headers)


def head_lines(head: bytes) -> tuple[int, Headers]:
    """Status and header lines of an HTTP answer, however long; FastWARC refuses more than 32 KB.

    >>> head_lines(b"HTTP/1.1 404 Not Found\\r\\nX-A: a,\\r\\n b\\r\\n")
    (404, (('X-A', 'a, b'),))
    """
    first, *lines = _FOLDED.sub(b" ", head.rstrip()).split(b"\n")
    status = first.split(None, 2)[1:2]
    parts = [line.decode("latin-1").partition(":") for line in lines]
    headers = tuple([(name.strip(), value.strip()) for name, colon, value in parts if colon])
    return int(status[0]) if status and status[0].isdigit() else 0, headers


def _address(ip: str) -> str:
    return f"WARC-IP-Address: {ip}\r\n" if ip else ""


def _block_digest(block: bytes) -> str:
    return sha1_text(hashlib.sha1(block, usedforsecurity=False).digest())


def sha1_text(digest: bytes) -> str:
    """A SHA-1 in base 32, in less than half the time of `base64.b32encode`.

    >>> sha1_text(bytes(20))
    'sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    number = int.from_bytes(digest, "big")
    for first, second, shift in _SPREADS:
        number = (number & first) << shift | number & second
    return "sha1:" + number.to_bytes(32, "big").translate(_BASE32).decode()


def _spreads() -> list[tuple[int, int, int]]:
    """Steps that spread the 32 groups of 5 bits over 32 bytes: each halves all groups and moves the first halves."""
    steps, groups = [], 1
    while groups < 32:
        bits, room = 80 // groups, 256 // groups
        second = sum(((1 << bits) - 1) << group * room for group in range(groups))
        steps.append((second << bits, second, room // 2 - bits))
        groups *= 2
    return steps


_SPREADS = _spreads()


_NO_BLOCK_DIGEST = _block_digest(b"")
