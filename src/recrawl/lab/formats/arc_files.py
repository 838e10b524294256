"""ARC files, the predecessor of WARC: read with warcio, as the WARC records that they would be today."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import IO

from fastwarc.warc import WarcRecord, WarcRecordType

from recrawl.extras import warcio

_FIRST = b"filedesc:"


class DamagedArc(Exception):
    """An ARC file cannot be read further."""


def is_arc(stream: IO[bytes]) -> bool:
    """Whether a file begins as ARC files do, compressed or not; it stands at its beginning again then."""
    start = stream.read(4096)
    stream.seek(0)
    if start.startswith(b"\x1f\x8b"):
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, len(_FIRST))
        except zlib.error:
            return False
    return start.startswith(_FIRST)


def arc_records(stream: IO[bytes]) -> Iterator[WarcRecord]:
    """The records of an ARC file; `DamagedArc` where it cannot be read further."""
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    plain = gzip.GzipFile(fileobj=stream) if packed else stream  # packed by record or as a whole
    damaged = (warcio.exceptions.ArchiveLoadFailed, EOFError, OSError, ValueError, zlib.error)
    try:
        for found in warcio.archiveiterator.ArchiveIterator(plain, no_record_parse=True, arc2warc=True):
            block = found.raw_stream.read()
            if len(block) < found.length and found.rec_type != "warcinfo":
                raise DamagedArc("its end is missing")
            yield _record(found.rec_headers.headers, found.rec_type, block)
    except damaged as error:
        raise DamagedArc(str(error)) from error


def _record(headers: list[tuple[str, str]], kind: str, block: bytes) -> WarcRecord:
    record = WarcRecord()
    record.init_headers(WarcRecordType.warcinfo if kind == "warcinfo" else WarcRecordType.response)
    for name, value in headers:
        if name.lower() not in ("warc-type", "content-length"):
            record.headers[name] = value
    record.set_bytes_content(block)
    return record
