"""Import WARC files of any crawler, alone or in WACZ files, as an archive.

A `response` with status 200 and HTML is a version, one with 404 or 410 a removal; other responses are ignored. A
`revisit` refers to content stored before: mostly the last version, which gives no row, but a page can also revert to an
earlier one. So revisits are looked up by their digest once all files are read. An index (CDXJ) is not needed.

Until the versions are sorted, the bodies wait in an unnamed temporary file, compressed and each content once.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from recrawl.columns import Ints
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive
from recrawl.extras import pa
from recrawl.lab.formats.version_rows import MAX_BYTES, Progress, Row, Taken, Window, write_versions
from recrawl.lab.formats.warc_records import derived_kind, payload_digest, read_http

SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".wacz")
HTML = ("text/html", "application/xhtml+xml")
GONE = (404, 410)

_KINDS = WarcRecordType.response | WarcRecordType.revisit
_REMOVED = -1
_MICRO = 1_000_000
_CHUNK = 1 << 16
_DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile)
"""Errors of fastwarc and of ZIP files while damaged data are read."""


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the WARC files among these files and folders."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise BadArchive(f"{path} does not exist")
        inside = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES)) if path.is_dir() else [path]
        if not all(file.is_file() for file in inside):
            raise BadArchive(f"{path} is not a regular file; save its content to a file first")
        if not inside:
            raise BadArchive(f"{path} contains no .warc, .warc.gz or .wacz file")
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
    """Write the pages of WARC files, or folders of them, as an archive: a Parquet file.

    `window` is the part of the history to import; pages of more than `max_bytes` are skipped.
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
        return write_versions(out, rows, taken, f"{paths[0]} contains no HTML page in this period")


def is_wacz(path: Path) -> bool:
    """Whether a file is a WACZ: a ZIP file that describes WARC files."""
    try:
        with zipfile.ZipFile(path) as package:
            return "datapackage.json" in package.namelist() and bool(_warcs(package))
    except zipfile.BadZipFile:
        return False


def _warcs(package: zipfile.ZipFile) -> list[str]:
    """The names of the WARC files in a WACZ."""
    return [name for name in package.namelist() if name.startswith("archive/") and name.endswith(SUFFIXES)]


def _records(file: Path, taken: Taken) -> Iterator[WarcRecord]:
    """Yield responses and revisits; a damaged file is read up to the damage."""
    if is_wacz(file):
        with zipfile.ZipFile(file) as package:
            for name in _warcs(package):
                try:
                    with package.open(name) as stream:
                        yield from _read(stream, f"{name} in {file}", taken)
                except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted
                    raise BadArchive(f"{name} in {file} cannot be read: {error}") from error
    else:
        with file.open("rb") as stream:
            yield from _read(stream, str(file), taken)


def _read(stream: IO[bytes], name: str, taken: Taken) -> Iterator[WarcRecord]:
    last, derived, pages = -1, "", False
    try:
        for record in ArchiveIterator(stream, parse_http=False):
            last = record.stream_pos
            if record.record_type & _KINDS:
                pages = True
                yield record
            derived = derived or derived_kind(record)
    except _DAMAGED as error:
        if last < 0:
            raise BadArchive(f"{name} is not a WARC file: {error}") from error
        taken.remark("files read only up to a damaged place")
    else:
        if derived and not pages:
            raise BadArchive(f"{name} is {derived} and has no pages; import the WARC file that it was made from")
        if last >= 0 and name.endswith(".gz") and _is_cut(stream, last):
            taken.remark("files whose end is missing")


def _is_cut(stream: IO[bytes], start: int) -> bool:
    """Whether the last gzip member is incomplete; fastwarc says nothing about one without a complete WARC header."""
    stream.seek(start)
    try:
        with gzip.GzipFile(fileobj=stream) as members:
            while members.read(_CHUNK):
                pass
    except _DAMAGED:
        return True
    return False


class _Captures:
    """The captures of all records as columns, with the bodies in the spool."""

    def __init__(self, spool: IO[bytes], taken: Taken, max_bytes: int) -> None:
        self._spool = spool
        self._taken = taken
        self._max_bytes = max_bytes
        self._numbers: dict[str, int] = {}
        self._slots: dict[bytes, int] = {}
        """The slot of a content, by the computed digest and by the one in its record."""
        self._place = array("q")  # per slot: its offset, its compressed size, its size
        self._page, self._time, self._slot = array("q"), array("q"), array("q")
        self._revisits: list[tuple[int, int, bytes]] = []

    def note(self, record: WarcRecord) -> None:
        """Add a response or a revisit."""
        url = canonical((record.headers.get("WARC-Target-URI") or "").strip("<> "))
        if url is None or record.record_date is None:
            return  # DNS records and the like
        if record.content_length > self._max_bytes:
            self._taken.remark("versions left out: too large")
            return
        try:
            block = record.reader.read(record.content_length)
        except _DAMAGED:
            block = b""
        if len(block) < record.content_length:
            self._taken.remark("records left out: cut off")
            return
        time = int(record.record_date.timestamp() * _MICRO)
        digest = payload_digest(record.headers.get("WARC-Payload-Digest") or "")
        if record.record_type == WarcRecordType.revisit:
            self._revisit(url, time, block, digest)
        else:
            self._response(url, time, block, digest)

    def _response(self, url: str, time: int, block: bytes, digest: bytes) -> None:
        status, kind, body = read_http(block, self._max_bytes)
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
        status = read_http(block, 0)[0] if block else None
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
        """Return the slot of a content; append new content to the spool."""
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
        """Yield all versions in the order of the archive."""
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
    """Sort by page and time; keep the last capture of each second."""
    micro, slot = np.array(micros, np.int64), np.array(slots, np.int64)
    order = np.lexsort((micro, page))
    page, second, slot = page[order], micro[order] // _MICRO, slot[order]
    last = np.append((page[1:] != page[:-1]) | (second[1:] != second[:-1]), True)[: len(page)]
    return page[last], second[last], slot[last]
