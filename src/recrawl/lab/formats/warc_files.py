"""Read WARC, WACZ and ARC files of any crawler: as the history of pages, or as an archive for the lab.

A `response` or `resource` tells what a page was, one with 404 or 410 that it was missing; other answers are left out.
A `revisit` repeats content stored before: mostly the last version, but a page can also revert to an earlier one. So
revisits are looked up once all files are read. An index (CDXJ) is not needed. Every record is counted, by its type, as
taken or as left out for a reason.

Digests are computed. Those that records claim are compared and never believed: a record whose digests are wrong is
taken with what it holds, and counted. A revisit has the content of its target (the capture it names, else one of its
own URL) if that is held and has the digest that the revisit states; otherwise it is left out.

Until the captures are sorted, heads and bodies wait in an unnamed temporary file, compressed and each body once.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import tempfile
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from recrawl.columns import Floats, Ints
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive
from recrawl.extras import pa, warcio
from recrawl.lab.formats.version_rows import MAX_BYTES, Progress, RecordCounts, Row, Taken, Window, write_versions
from recrawl.model import PastAnswer

# --------------------------------------------------------------------------------------------------------------------
# Single WARC records: the HTTP response in a block, and files that hold no pages.


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


# --------------------------------------------------------------------------------------------------------------------
# Digests that WARC records claim: compared with those of what the records hold, never believed.


_KNOWN = {"sha1": 20, "sha256": 32, "sha512": 64, "md5": 16}


def claimed_digest(text: str) -> bytes:
    """A digest as bytes, its algorithm before it; empty if it is of no algorithm that can be computed here.

    >>> claimed_digest("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").hex(":", -4)
    '73686131:3ada39a3:ee5e6b4b:0d3255bf:ef956018:90afd807:09'
    >>> claimed_digest("SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709") == claimed_digest(
    ...     "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
    True
    >>> claimed_digest("xxh3:00")
    b''
    """
    name, _, value = text.strip().rpartition(":")
    name = name.lower().replace("-", "") or "sha1"
    size = _KNOWN.get(name)
    if size is None:
        return b""
    try:
        if len(value) == 2 * size:
            digest = bytes.fromhex(value)
        else:
            digest = base64.b32decode(value.upper() + "=" * (-len(value) % 8))
    except ValueError:
        return b""
    return name.encode() + b":" + digest if len(digest) == size else b""


def is_of(claimed: bytes, contents: Iterable[bytes]) -> bool:
    """Whether a claimed digest is that of any of these contents."""
    name, _, digest = claimed.partition(b":")
    return any(hashlib.new(name.decode(), content, usedforsecurity=False).digest() == digest for content in contents)


# --------------------------------------------------------------------------------------------------------------------
# ARC files, the predecessor of WARC: read with warcio, as the WARC records that they would be today.


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


# --------------------------------------------------------------------------------------------------------------------


SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".wacz", ".arc", ".arc.gz")
HTML = ("text/html", "application/xhtml+xml")
GONE = (404, 410)

_ANSWERS = WarcRecordType.response | WarcRecordType.revisit | WarcRecordType.resource
_KINDS = ("response", "revisit", "resource")
_NO_ANSWERS = {
    "request": "what was asked, not what was answered",
    "metadata": "facts about other records",
    "conversion": "another form of a response",
    "dns": "lookups of addresses",
    "warcinfo": "facts about the file",
    "continuation": "parts of split records",
    "unknown": "records of unknown types",
}
"""Types of records that are no answers of servers, and what they are."""
_MICRO = 1_000_000
_CHUNK = 1 << 16
_DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, DamagedArc)
"""Errors of fastwarc, of ARC files and of ZIP files while damaged data are read."""


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
            raise BadArchive(f"{path} contains no .warc, .warc.gz, .wacz or .arc file")
        found += inside
    return found


Refuses = Callable[[str, str], str]
"""Why a page with this URL and content type is left out; empty if it is taken."""


def html_only(_url: str, kind: str) -> str:
    """Why a page is left out of an archive for the lab."""
    return "" if kind.startswith(HTML) else f"not HTML ({named(kind)})"


def named(kind: str) -> str:
    """A content type without its parameters, in words if there is none."""
    return kind.partition(";")[0].strip()[:80] or "no content type"


@contextmanager
def opened(
    paths: Sequence[Path],
    *,
    refuses: Refuses,
    taken: Taken,
    max_bytes: int = MAX_BYTES,
    progress: Progress = lambda *_: None,
) -> Iterator[Captures]:
    """The captures in WARC files, or folders of them, and in `taken` the counts of their records."""
    files = files_of(paths)
    with tempfile.TemporaryFile() as spool:
        captures = Captures(spool, taken, refuses, max_bytes)
        for number, file in enumerate(files):
            progress("files", number, len(files))
            for record in _records(file, taken):
                captures.note(record)
        captures.look_up_revisits()
        yield captures


def convert(
    paths: Sequence[Path],
    out: Path,
    *,
    window: Window | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress = lambda *_: None,
) -> Taken:
    """Write the HTML pages of WARC files, or folders of them, as an archive: a Parquet file.

    `window` is the part of the history to import; pages of more than `max_bytes` are skipped.
    """
    taken = Taken()
    with opened(paths, refuses=html_only, taken=taken, max_bytes=max_bytes, progress=progress) as captures:
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
    """Yield the records of a file; a damaged one is read up to the damage."""
    if is_wacz(file):
        with zipfile.ZipFile(file) as package:
            hashes = _stated_hashes(package)
            for name in _warcs(package):
                try:
                    if name in hashes and _sha256(package, name) != hashes[name]:
                        taken.remark("WARC files in a WACZ that do not have the hash which it states")
                    with package.open(name) as stream:
                        yield from _read(stream, f"{name} in {file}", taken)
                except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted
                    raise BadArchive(f"{name} in {file} cannot be read: {error}") from error
    else:
        with file.open("rb") as stream:
            yield from _read(stream, str(file), taken)


def _stated_hashes(package: zipfile.ZipFile) -> dict[str, str]:
    """The SHA-256 of each file, as `datapackage.json` states it."""
    try:
        resources = json.loads(package.read("datapackage.json"))["resources"]
        return {it["path"]: it["hash"] for it in resources if str(it["hash"]).startswith("sha256:")}
    except (KeyError, TypeError, ValueError, RecursionError, *_DAMAGED):
        return {}


def _sha256(package: zipfile.ZipFile, name: str) -> str:
    try:
        with package.open(name) as stream:
            return "sha256:" + hashlib.file_digest(cast("Any", stream), "sha256").hexdigest()
    except _DAMAGED:
        return ""


def _read(stream: IO[bytes], name: str, taken: Taken) -> Iterator[WarcRecord]:
    last, derived, pages = -1, "", False
    try:
        for record in _of_stream(stream):
            last = max(last, record.stream_pos)
            pages = pages or bool(record.record_type & _ANSWERS)
            derived = derived or derived_kind(record)
            yield record
    except _DAMAGED as error:
        if last < 0:
            raise BadArchive(f"{name} is not a WARC file: {error}") from error
        taken.remark("files read only up to a damaged place")
    else:
        if derived and not pages:
            raise BadArchive(f"{name} is {derived} and has no pages; import the WARC file that it was made from")
        if last >= 0 and name.endswith(".gz") and _is_cut(stream, last):
            taken.remark("files whose end is missing")


def _of_stream(stream: IO[bytes]) -> Iterator[WarcRecord]:
    """The records of a WARC file, or those that an ARC file would have as one."""
    if is_arc(stream):
        yield from arc_records(stream)
    else:
        yield from ArchiveIterator(stream, parse_http=False)


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


_NEVER_THERE = "404 or 410, and no other answer for the page"


class _Revisit(NamedTuple):
    """A revisit that waits for its target."""

    page: int
    time: int
    digest: bytes
    target: int
    """The page whose content it repeats."""
    start: int
    size: int
    """Of its head in the spool; 0 if it has that of its target."""


class Captures:
    """The captures of all records as columns, with heads and bodies in the spool."""

    def __init__(self, spool: IO[bytes], taken: Taken, refuses: Refuses, max_bytes: int) -> None:
        self._spool = spool
        self._taken = taken
        self._refuses = refuses
        self._max_bytes = max_bytes
        self._numbers: dict[str, int] = {}
        self._slots: dict[bytes, int] = {}
        """The slot of a content, by each digest that was found to be its own."""
        self._place = array("q")  # per slot: its offset, its compressed size, its size
        self._page, self._time, self._slot = array("q"), array("q"), array("q")
        self._head = array("q")  # per capture: offset and size of its head
        self._kind, self._gone = array("b"), array("b")
        self._revisits: list[_Revisit] = []

    @property
    def pages(self) -> int:
        """How many pages there are: those that were there at some time."""
        return len(self._found())

    def _found(self) -> Ints:
        """The pages that have a capture which is not 404 or 410."""
        found: Ints = np.unique(np.array(self._page, np.int64)[~np.array(self._gone, bool)])
        return found

    def note(self, record: WarcRecord) -> None:
        """Take a record, or count why not."""
        uri = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
        kind = "dns" if uri.startswith("dns:") else str(record.headers.get("WARC-Type")).strip().lower()
        kind = kind if kind in _KINDS or kind in _NO_ANSWERS else "unknown"
        counts = self._counts(kind)
        counts.read += 1
        why = _NO_ANSWERS.get(kind, "") or self._note(record, kind, uri)
        if why:
            counts.leave_out(why)

    def _counts(self, kind: str) -> RecordCounts:
        return self._taken.records.setdefault(kind, RecordCounts())

    def _note(self, record: WarcRecord, kind: str, uri: str) -> str:
        """Take a response, a revisit or a resource; the reason if it is left out."""
        url, date = canonical(uri), cast("datetime | None", record.record_date)
        if url is None:
            return "no http or https URL"
        if date is None:
            return "no date"
        if record.content_length > self._max_bytes:
            return "too large"
        block = b""
        with suppress(*_DAMAGED):
            block = record.reader.read(record.content_length)
        if len(block) < record.content_length:
            return "cut off"
        stated = claimed_digest(record.headers.get("WARC-Block-Digest") or "")
        if stated and not is_of(stated, [block]):
            self._taken.remark("records whose block does not have the digest that they state; taken as they are")
        time = round(date.timestamp() * _MICRO)
        if kind == "revisit":
            return self._revisit(record, url, time, block)
        if kind == "resource":
            said = (record.headers.get("Content-Type") or "").strip()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {said}\r\n\r\n".encode("latin-1", "replace")
            block = (head if said else b"HTTP/1.1 200 OK\r\n\r\n") + block
        return self._response(record, kind, url, time, block)

    def _response(self, record: WarcRecord, kind: str, url: str, time: int, block: bytes) -> str:
        answer = read_http(block, self._max_bytes)
        if answer.status in GONE:
            body = answer.body if answer.body is not None and len(answer.body) <= self._max_bytes else b""
            self._add(url, time, self._keep(body, b"", block), answer.head, kind, gone=True)
        elif answer.status != 200:
            return _status_words(answer.status)
        elif why := self._refuses(url, answer.kind):
            return why
        elif answer.body is None:
            return "cannot be decoded"
        elif len(answer.body) > self._max_bytes:
            return "too large"
        else:
            claimed = claimed_digest(record.headers.get("WARC-Payload-Digest") or "")
            self._add(url, time, self._keep(answer.body, claimed, block), answer.head, kind)
        return ""

    def _revisit(self, record: WarcRecord, url: str, time: int, block: bytes) -> str:
        answer = read_http(block, 0) if block else HttpAnswer(None, "", b"", None)
        if answer.status in GONE:
            self._add(url, time, self._keep(b"", b"", b""), answer.head, "revisit", gone=True)
            return ""
        if answer.status not in (None, 200, 304):
            return _status_words(answer.status)
        target = canonical((record.headers.get("WARC-Refers-To-Target-URI") or "").strip("<> ")) or url
        claimed = claimed_digest(record.headers.get("WARC-Payload-Digest") or "")
        if not claimed:
            return "no digest of what it repeats"
        head = answer.head if answer.status == 200 else b""
        self._revisits.append(_Revisit(self._number(url), time, claimed, self._number(target), *self._write(head)))
        return ""

    def _add(self, url: str, time: int, slot: int, head: bytes, kind: str, *, gone: bool = False) -> None:
        self._append(self._number(url), time, slot, *self._write(head), kind, gone=gone)

    def _append(self, page: int, time: int, slot: int, start: int, size: int, kind: str, *, gone: bool = False) -> None:
        self._page.append(page)
        self._time.append(time)
        self._slot.append(slot)
        self._head.extend((start, size))
        self._kind.append(_KINDS.index(kind))
        self._gone.append(gone)
        self._counts(kind).taken += 1

    def _number(self, url: str) -> int:
        return self._numbers.setdefault(url, len(self._numbers))

    def _write(self, data: bytes) -> tuple[int, int]:
        """Append to the spool: where it begins, and its size."""
        start = self._spool.tell()
        self._spool.write(data)
        return start, len(data)

    def _keep(self, body: bytes, claimed: bytes, block: bytes) -> int:
        """Return the slot of a content, known by its own digests; append new content to the spool."""
        own = b"sha1:" + hashlib.sha1(body, usedforsecurity=False).digest()
        slot = self._slots.get(own)
        if slot is None:
            slot = self._slots[own] = len(self._place) // 3
            packed = pa.compress(body, "zstd", asbytes=True)
            self._place.extend((*self._write(packed), len(body)))
        if claimed not in (b"", own):
            if is_of(claimed, payloads(block, self._max_bytes)):
                self._slots.setdefault(claimed, slot)
            else:
                self._taken.remark("records whose payload does not have the digest that they state; taken as they are")
        return slot

    def _body(self, slot: int) -> bytes:
        start, packed, size = self._place[3 * slot : 3 * slot + 3]
        body: bytes = pa.decompress(self._stored(start, packed), size, "zstd", asbytes=True)
        return body

    def _stored(self, start: int, size: int) -> bytes:
        return os.pread(self._spool.fileno(), size, start)

    def look_up_revisits(self) -> None:
        """Turn the revisits into captures with the content of their targets; call it once all files are read."""
        held: dict[tuple[int, int], int] = {}
        """The head of the first capture of each content that revisits repeat, by page and slot."""
        wanted = {self._slots.get(it.digest) for it in self._revisits}
        for row, (page, slot, gone) in enumerate(zip(self._page, self._slot, self._gone, strict=True)):
            if slot in wanted and not gone:
                held.setdefault((page, slot), row)
        for it in self._revisits:
            slot = self._slots.get(it.digest, -1)
            row = held.get((it.target, slot), held.get((it.page, slot), -1))
            if row < 0:
                self._counts("revisit").leave_out("what it repeats is in none of the files")
            else:
                start, size = (it.start, it.size) if it.size else self._head[2 * row : 2 * row + 2]
                self._append(it.page, it.time, slot, start, size, "revisit")

    def rows(self, window: Window) -> Iterator[Row]:
        """The versions in the order of an archive: by URL, in whole seconds, of which the last capture counts."""
        rows, times, _, urls = self._chosen(window, _MICRO)
        for row, at in zip(rows.tolist(), times.tolist(), strict=True):
            yield urls[self._page[row]], int(at), None if self._gone[row] else self._body(self._slot[row])

    def histories(self, window: Window) -> Iterator[tuple[str, list[PastAnswer]]]:
        """The pages by URL, each with its answers by time."""
        rows, times, starts, urls = self._chosen(window, 1)
        for first, end in zip(starts, [*starts[1:], len(rows)], strict=False):
            answers = [self._answer(int(rows[at]), float(times[at])) for at in range(first, end)]
            yield urls[self._page[rows[first]]], answers

    def _chosen(self, window: Window, unit: int) -> tuple[Ints, Floats, list[int], list[str]]:
        """The captures in the window by URL and time, their times, where each page begins, and the URLs by number."""
        self._spool.flush()
        urls = list(self._numbers)
        rank = np.empty(len(urls), np.int64)
        rank[np.argsort(np.array(urls, object), kind="stable")] = np.arange(len(urls))
        page, micros = np.array(self._page, np.int64), np.array(self._time, np.int64)
        rows = _in_order(rank[page], micros, unit)
        seconds = micros[rows] // unit * unit / _MICRO
        kept, times = window.of(rank[page[rows]], seconds, np.array(self._gone, bool)[rows])
        times = times[there := np.isin(page[rows[kept]], self._found())]
        self._count_unused(rows, rows[kept], rows[kept][there])
        rows = rows[kept][there]
        starts = np.flatnonzero(np.diff(page[rows], prepend=-1))
        return rows, times, starts.tolist(), urls

    def _answer(self, row: int, at: float) -> PastAnswer:
        start, size = self._head[2 * row : 2 * row + 2]
        return PastAnswer(at, partial(self._body, self._slot[row]), self._stored(start, size))

    def _count_unused(self, ordered: Ints, kept: Ints, there: Ints) -> None:
        """Count the captures that are no rows."""
        kinds = np.array(self._kind)
        same = np.setdiff1d(np.arange(len(kinds)), ordered)
        outside, never = np.setdiff1d(ordered, kept), np.setdiff1d(kept, there)
        for rows, why in ((same, "the same time twice"), (outside, "outside the period"), (never, _NEVER_THERE)):
            for kind in kinds[rows].tolist():
                counts = self._counts(_KINDS[kind])
                counts.taken -= 1
                counts.leave_out(why)


def _in_order(page: Ints, micros: Ints, unit: int) -> Ints:
    """The captures by page and time; the last one of each unit of time."""
    order = np.lexsort((micros, page))
    page, units = page[order], micros[order] // unit
    last = np.append((page[1:] != page[:-1]) | (units[1:] != units[:-1]), True)[: len(page)]
    ordered: Ints = order[last]
    return ordered


def _status_words(status: int | None) -> str:
    if status is None:
        return "not HTTP"
    return "redirects" if 300 <= status < 400 and status != 304 else f"status {status}"
