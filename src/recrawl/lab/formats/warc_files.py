"""WARC files as an archive: what a crawler of any make has stored becomes versions of pages.

A `response` with status 200 that is HTML is a version, one with 404 or 410 a removal; other answers say nothing about
the page. A `revisit` says that the content was one that had been stored before: mostly the last one, which gives no
row, but a page can also go back to what it was earlier. So revisits are looked up by their digest, once all files
are read. An index beside the files (CDXJ) is not needed.

Bodies wait, compressed and each content once, in a file without a name, until the versions can be put in order.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from recrawl.columns import Ints
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive
from recrawl.lab.formats.version_rows import MAX_BYTES, Progress, Row, Taken, Window, write_versions

SUFFIXES = (".warc", ".warc.gz", ".warc.zst")
HTML = ("text/html", "application/xhtml+xml")
GONE = (404, 410)

_KINDS = WarcRecordType.response | WarcRecordType.revisit
_REMOVED = -1
_MICRO = 1_000_000


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The WARC files among these files and folders."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise BadArchive(f"{path} does not exist")
        inside = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES)) if path.is_dir() else [path]
        if not inside:
            raise BadArchive(f"{path} holds no .warc or .warc.gz file")
        found += inside
    return found


def convert(
    paths: Sequence[Path],
    out: Path,
    *,
    window: Window | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress = lambda *_: None,
) -> Taken:
    """Write what WARC files hold as an archive.

    Parameters
    ----------
    paths
        WARC files, or folders of them, in any order.
    out
        The Parquet file to write.
    window
        The part that is wanted.
    max_bytes
        Larger pages are left out.
    """
    files = files_of(paths)
    taken = Taken()
    with tempfile.TemporaryFile(dir=out.parent) as spool:
        captures = _Captures(spool, taken, max_bytes)
        for number, file in enumerate(files):
            progress("files", number, len(files))
            for record in _records(file, taken):
                captures.note(record)
        rows = captures.rows(window or Window())
        return write_versions(out, rows, taken, f"{paths[0]} holds no HTML page in the time that is asked for")


def _records(file: Path, taken: Taken) -> Iterator[WarcRecord]:
    """Responses and revisits; a file that ends in rubbish is read up to there."""
    begun = False
    with file.open("rb") as stream:
        try:
            for record in ArchiveIterator(stream, parse_http=False):
                begun = True
                if record.record_type & _KINDS:
                    yield record
        except OSError as error:  # how fastwarc says that it does not understand
            if not begun:
                raise BadArchive(f"{file} is not a WARC file: {error}") from error
            taken.remark("files read only up to a damaged place")


class _Captures:
    """What all records say, as columns; bodies in the spool."""

    def __init__(self, spool: IO[bytes], taken: Taken, max_bytes: int) -> None:
        self._spool = spool
        self._taken = taken
        self._max_bytes = max_bytes
        self._numbers: dict[str, int] = {}
        self._slots: dict[bytes, int] = {}
        """Where a content lies, by its digest as we make it and as the record says it."""
        self._place = array("q")  # of a slot: where it begins, its bytes there, its bytes unpacked
        self._page, self._time, self._slot = array("q"), array("q"), array("q")
        self._revisits: list[tuple[int, int, bytes]] = []

    def note(self, record: WarcRecord) -> None:
        """Take in a response or a revisit."""
        url = canonical((record.headers.get("WARC-Target-URI") or "").strip("<> "))
        if url is None or record.record_date is None:
            return  # DNS look-ups and the like
        if record.content_length > self._max_bytes:
            self._taken.remark("versions left out: too large")
            return
        block = record.reader.read(record.content_length)
        if len(block) < record.content_length:
            self._taken.remark("records left out: cut off")
            return
        time = int(record.record_date.timestamp() * _MICRO)
        digest = _digest(record.headers.get("WARC-Payload-Digest") or "")
        if record.record_type == WarcRecordType.revisit:
            self._revisit(url, time, block, digest)
        else:
            self._response(url, time, block, digest)

    def _response(self, url: str, time: int, block: bytes, digest: bytes) -> None:
        status, kind, body = _http(block, self._max_bytes)
        if status in GONE:
            self._add(url, time, _REMOVED)
        elif status == 200 and kind.startswith(HTML):
            if body is None:
                self._taken.remark("records left out: cannot be decoded")
            elif len(body) > self._max_bytes:
                self._taken.remark("versions left out: too large")
            else:
                self._add(url, time, self._keep(body, digest))
        elif status is None:
            self._taken.remark("records left out: not HTTP")

    def _revisit(self, url: str, time: int, block: bytes, digest: bytes) -> None:
        status = _http(block, 0)[0] if block else None
        if status in GONE:
            self._add(url, time, _REMOVED)
        elif status in (None, 200, 304) and digest:
            self._revisits.append((self._number(url), time, digest))

    def _add(self, url: str, time: int, slot: int) -> None:
        self._page.append(self._number(url))
        self._time.append(time)
        self._slot.append(slot)

    def _number(self, url: str) -> int:
        return self._numbers.setdefault(url, len(self._numbers))

    def _keep(self, body: bytes, digest: bytes) -> int:
        """The slot of a content; new ones go to the end of the spool."""
        own = hashlib.sha1(body, usedforsecurity=False).digest()
        slot = self._slots.get(own)
        if slot is None:
            slot = self._slots[own] = len(self._place) // 3
            packed = pa.compress(body, "zstd", asbytes=True)
            self._place.extend((self._spool.tell(), len(packed), len(body)))
            self._spool.write(packed)
        if digest:
            self._slots.setdefault(digest, slot)
        return slot

    def _body(self, slot: int) -> bytes | None:
        if slot == _REMOVED:
            return None
        start, packed, size = self._place[3 * slot : 3 * slot + 3]
        blob = os.pread(self._spool.fileno(), packed, start)
        body: bytes = pa.decompress(blob, size, "zstd", asbytes=True)
        return body

    def rows(self, window: Window) -> Iterator[Row]:
        """All versions in the order of the archive."""
        self._look_up_revisits()
        self._spool.flush()
        urls = sorted(self._numbers)
        rank = np.empty(len(urls), np.int64)
        rank[[self._numbers[url] for url in urls]] = np.arange(len(urls))
        page, time, slot = _in_order(rank[np.array(self._page, np.int64)], self._time, self._slot)
        kept, times = window.of(page, time, slot == _REMOVED)
        for row, at in zip(kept.tolist(), times.tolist(), strict=True):
            yield urls[page[row]], at, self._body(int(slot[row]))

    def _look_up_revisits(self) -> None:
        pages = set(self._page)
        for page, time, digest in self._revisits:
            slot = self._slots.get(digest)
            if slot is not None:
                self._page.append(page)
                self._time.append(time)
                self._slot.append(slot)
            elif page in pages:
                self._taken.remark("revisits left out: what they repeat is in none of the files")


def _in_order(page: Ints, micros: array[int], slots: array[int]) -> tuple[Ints, Ints, Ints]:
    """Sorted by page and time; of what happened in the same second, the last."""
    micro, slot = np.array(micros, np.int64), np.array(slots, np.int64)
    order = np.lexsort((micro, page))
    page, second, slot = page[order], micro[order] // _MICRO, slot[order]
    last = np.append((page[1:] != page[:-1]) | (second[1:] != second[:-1]), True)[: len(page)]
    return page[last], second[last], slot[last]


def _http(block: bytes, limit: int) -> tuple[int | None, str, bytes | None]:
    """Status, content type and body (no more than a byte over the limit) of an HTTP answer.

    Some archives keep bodies unpacked, and the headers that say how they were packed as well: what cannot be unpacked
    is taken as it is if it looks like HTML.
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


def _digest(text: str) -> bytes:
    """A digest in one spelling: `sha1:` in base 32 or base 16 as its bytes, others as they are.

    >>> _digest("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ") == _digest("SHA1:da39a3ee5e6b4b0d3255bfef95601890afd80709")
    True
    """
    name, _, value = text.strip().rpartition(":")
    if name.lower() in ("", "sha1"):
        try:
            return base64.b32decode(value.upper()) if len(value) == 32 else bytes.fromhex(value)
        except ValueError:
            pass
    return text.strip().lower().encode("utf-8", "replace")
