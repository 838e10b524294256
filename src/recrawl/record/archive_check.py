"""Read an archive file from its beginning, record by record, and tell the sound ones from the damaged ones.

Every record is a gzip member or Zstandard frame with a checksum of its own. After a damaged one, the next one that
begins with `WARC/` is searched for.
"""

from __future__ import annotations

import hashlib
import mmap
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from recrawl.extras import zstd
from recrawl.record.packing import FRAME, SUFFIX, decompressor, dictionary
from recrawl.record.warc import sha1_text

_GZIP = rb"\x1f\x8b\x08"
_STEP = 1 << 18
_LONGEST = 1 << 28
"""Bytes of a record, decompressed; more is damage."""


class Member(NamedTuple):
    """A stretch of an archive file: a record, or bytes that are none."""

    start: int
    end: int
    problem: str
    kind: str = ""
    """The WARC type."""
    payload: bytes = b""
    """SHA-1 of the body of a response, or of a resource."""
    url: str = ""
    """What the record is about."""


class _Packing(NamedTuple):
    """How the records of a file are compressed."""

    magic: bytes
    """A regular expression of the first bytes of a record."""
    decompressor: Callable[[], Any]
    error: type[Exception]
    begin: int = 0
    """Where the records begin."""


def members(path: Path, length: int, known: Iterable[tuple[int, int]] = ()) -> Iterator[Member]:
    """The records in the first `length` bytes of a file, in order, but for those at places that are `known`.

    Such a place is a start and a length; they come in order.
    """
    if not length:
        return
    packing = _packing(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
        place, skipped = packing.begin, iter((*known, (length, 0)))
        start, size = next(skipped)
        while place < length:
            while start < place:  # a damaged record reached beyond it
                start, size = next(skipped)
            if start == place:
                place += size
                start, size = next(skipped, (length, 0))
                continue
            record, end = _unpacked(data, place, packing)
            if record is None:
                end = _next_record(data, place + 1, packing)
                yield Member(place, end, "cannot be decompressed")
            else:
                yield _member(place, end, record)
            place = end


def raw_records(path: Path, length: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Start, end and bytes of every record in the first `length` bytes of a file; None for what is no record."""
    if not length:
        return
    packing = _packing(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as data:
        place = packing.begin
        while place < length:
            record, end = _unpacked(data, place, packing)
            if record is None:
                end = _next_record(data, place + 1, packing)
            yield place, end, record
            place = end


def _packing(path: Path) -> _Packing:
    if not path.name.endswith(SUFFIX):
        return _Packing(_GZIP, lambda: zlib.decompressobj(wbits=31), zlib.error)
    return _Packing(re.escape(FRAME), partial(decompressor, path), zstd.ZstdError, dictionary(path)[1])


def _unpacked(data: mmap.mmap, start: int, packing: _Packing) -> tuple[bytes | None, int]:
    """A record and its end; None if there is none at this place."""
    unpack = packing.decompressor()
    parts, place, size = [], start, 0
    try:
        while not unpack.eof and place < len(data) and size < _LONGEST:
            parts.append(unpack.decompress(data[place : place + _STEP], _LONGEST))
            place, size = place + _STEP, size + len(parts[-1])
    except packing.error:
        return None, start
    if not unpack.eof or not parts or not parts[0].startswith(b"WARC/"):
        return None, start
    return b"".join(parts), min(place, len(data)) - len(unpack.unused_data)


def _next_record(data: mmap.mmap, start: int, packing: _Packing) -> int:
    """Where the next record begins; the end of the file if there is none."""
    for found in re.compile(packing.magic).finditer(data, start):
        if _unpacked(data, found.start(), packing)[0] is not None:
            return found.start()
    return len(data)


def _member(start: int, end: int, record: bytes) -> Member:
    head, _, rest = record.partition(b"\r\n\r\n")
    fields = dict(line.partition(b": ")[::2] for line in head.split(b"\r\n")[1:])
    kind = fields.get(b"WARC-Type", b"").decode("latin-1")
    size = fields.get(b"Content-Length", b"")
    block = rest[: int(size)] if size.isdigit() else b""
    if not size.isdigit() or rest[int(size) :] != b"\r\n\r\n":
        return Member(start, end, "has a wrong length", kind)
    url = fields.get(b"WARC-Target-URI", b"").decode("utf-8", "surrogatepass")
    digest = fields.get(b"WARC-Block-Digest")
    if digest is not None and digest.decode("latin-1") != sha1_text(_sha1(block)):
        return Member(start, end, "has a wrong digest", kind, b"", url)
    body = block.partition(b"\r\n\r\n")[2] if kind == "response" else block
    return Member(start, end, "", kind, _sha1(body) if kind in ("response", "resource") else b"", url)


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
