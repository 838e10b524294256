"""Histories from capture listings of web archives (CDX, CDXJ): change by digest, without downloads.

A listing gives the time, status and digest of each capture. That is enough to replay policies that need neither text
nor links. Another digest is another version; 404 and 410 are removals; redirects, errors and documents other than HTML
are ignored. A `warc/revisit` has the digest of the capture that it repeats, and so the same meaning.

An unchanged capture gives no row, except for a page's last one, which marks the end of its observation.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from recrawl.columns import Ints
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive
from recrawl.lab.histories.history import ABSENT, History, assemble

# --------------------------------------------------------------------------------------------------------------------
# Parse the lines of capture listings, in the formats of web archives:
#
# - CDX, columns in words (`urlkey timestamp original mimetype statuscode digest length`, the Wayback server's) or in
#   letters (` CDX N b a m s k r M S V g`), with or without a header line;
# - the same as JSON, an array of arrays (the Wayback server's `output=json`);
# - CDXJ, `urlkey timestamp {"url": …}` (pywb, Common Crawl's index files);
# - one JSON object per line (Common Crawl's index server).


COLUMNS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""The columns of a CDX line without a header."""

_LETTERS = {
    "N": "urlkey", "b": "timestamp", "a": "original", "m": "mimetype", "s": "statuscode", "k": "digest", "S": "length",
}  # fmt: skip
_NAMES = {**{name: name for name in COLUMNS}, "url": "original", "mime": "mimetype", "status": "statuscode"}


class ListedCapture(NamedTuple):
    """One line of a listing; missing fields are empty."""

    url: str
    time: int
    mime: str
    status: str
    digest: str
    length: int


def captures(lines: Iterable[str]) -> Iterator[ListedCapture | None]:
    """Yield the capture of each line, None for an invalid one; skip lines without a capture."""
    columns: Sequence[str] = COLUMNS
    for line in lines:
        text = line.strip()
        if not text or text.startswith(("!", "#")) or text in ("[", "]", "[]"):
            continue
        if text.startswith("CDX "):
            columns = [_LETTERS.get(letter, "") for letter in text.split()[1:]]
        elif text.startswith("["):
            for row in _cdx_rows(text):
                if row is not None and _is_header(row):
                    columns = [_NAMES.get(name, "") for name in row]
                else:
                    yield None if row is None else _capture(dict(zip(columns, row, strict=False)))
        elif text.endswith("}"):
            yield _of_object(text)
        elif _is_header(fields := text.split(" ")):
            columns = [_NAMES.get(name, "") for name in fields]
        else:
            yield _capture(dict(zip(columns, fields, strict=False)))


def _is_header(fields: Sequence[str]) -> bool:
    return "timestamp" in fields


def _cdx_rows(text: str) -> Iterator[list[str] | None]:
    """Yield the rows on a line of an array of arrays: mostly one per line, all rows if there are no line breaks."""
    text = text.rstrip(",")
    text = text[1:] if text.startswith("[[") else text
    text = text[:-1] if text.endswith("]]") else text
    try:
        rows = json.loads(f"[{text}]")
    except (ValueError, RecursionError):
        rows = [None]
    for row in rows:
        valid = isinstance(row, list) and all(isinstance(field, str) for field in row)
        yield row if valid else None


def _of_object(text: str) -> ListedCapture | None:
    """Parse a CDXJ line, or a JSON object alone."""
    head, brace, rest = text.partition("{")
    try:
        values = json.loads(brace + rest)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    fields: dict[str, Any] = {_NAMES.get(str(name), str(name)): str(value) for name, value in values.items()}
    before = head.split()
    if len(before) > 1:
        fields["timestamp"] = before[1]
    if fields.get("mimetype", "-") in ("-", "unk") and "mime-detected" in fields:
        fields["mimetype"] = fields["mime-detected"]
    return _capture(fields)


def _capture(fields: Mapping[str, str]) -> ListedCapture | None:
    url, stamp = fields.get("original", ""), fields.get("timestamp", "")
    time = seconds(stamp)
    if not url or time is None or "digest" not in fields:
        return None
    length = fields.get("length", "")
    return ListedCapture(
        url=url,
        time=time,
        mime=_value(fields.get("mimetype", "")).partition(";")[0].strip().lower(),
        status=_value(fields.get("statuscode", "")),
        digest=_value(fields["digest"]).rpartition(":")[2].upper(),
        length=int(length) if length.isascii() and length.isdecimal() and len(length) < 16 else 0,
    )


def _value(field: str) -> str:
    return "" if field == "-" else field


def seconds(stamp: str) -> int | None:
    """Return the seconds since 1970 of a 14-digit timestamp; None if it is invalid.

    >>> seconds("19700102000010"), seconds("19700230000000"), seconds("yesterday")
    (86410, None, None)
    """
    if len(stamp) != 14 or not (stamp.isascii() and stamp.isdecimal()):
        return None
    day, hour, minute, second = _day(stamp[:8]), int(stamp[8:10]), int(stamp[10:12]), int(stamp[12:])
    if day is None or hour > 23 or minute > 59 or second > 60:
        return None
    return day + 3600 * hour + 60 * minute + second


@lru_cache(maxsize=4096)
def _day(text: str) -> int | None:
    try:
        return int(datetime(int(text[:4]), int(text[4:6]), int(text[6:]), tzinfo=UTC).timestamp())
    except ValueError:
        return None


# --------------------------------------------------------------------------------------------------------------------


CARRIES = frozenset({"digests"})
_HTML = ("text/html", "application/xhtml+xml")
_REVISIT = "warc/revisit"
# The meaning of a capture for its page. Of several in the same second, the greatest counts.
_OTHER, _SEEN_AGAIN, _MISSING, _PAGE = range(4)


@dataclass(frozen=True, slots=True)
class CaptureListing:
    """A history from listings, and counts of their lines."""

    history: History
    captures: int
    """Valid lines."""
    broken: int
    """Invalid lines."""
    remarks: dict[str, int] = field(default_factory=dict)
    """Counts of what was skipped, by description."""


def opened(path: Path) -> IO[bytes]:
    """Open a file, decompressed if its content is gzip, whatever its name."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def is_listing(start: bytes) -> bool:
    """Whether a file that starts with these bytes is a listing."""
    lines = start.decode("utf-8", "replace").splitlines()[:20]
    found = list(captures(lines[:-1] if len(lines) > 1 else lines))
    return any(found)


def read(paths: Sequence[Path]) -> CaptureListing:
    """Read listings into one history; their lines may come in any order and repeatedly."""
    table = _Table()
    for path in paths:
        if not path.is_file():
            raise BadArchive(f"{path} does not exist")
        before = table.count
        lines = 0
        try:
            for lines, capture in enumerate(captures(_lines(path)), 1):  # noqa: B007 - it is read below
                table.note(capture)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            table.remark("files read only up to a damaged place")
        if table.count == before:
            what = "it has no valid line" if lines else "it is empty"
            raise BadArchive(f"{path} is not a CDX or CDXJ listing: {what}")
    return table.listing(str(paths[0]) if paths else "the listing")


def _lines(path: Path) -> Iterator[str]:
    with opened(path) as stream, io.TextIOWrapper(stream, encoding="utf-8", errors="replace") as text:
        yield from text


class _Table:
    """Captures as columns."""

    def __init__(self) -> None:
        self.count = 0
        self._broken = 0
        self._remarks: dict[str, int] = {}
        self._urls: dict[str, int] = {}
        self._digests: dict[str, int] = {}
        self._columns = [array("q") for _ in range(5)]

    def remark(self, what: str) -> None:
        """Count something to report to the user."""
        self._remarks[what] = self._remarks.get(what, 0) + 1

    def note(self, capture: ListedCapture | None) -> None:
        """Add the capture of a line; None is an invalid line."""
        if capture is None:
            self._broken += 1
            return
        self.count += 1
        url = canonical(capture.url)
        if url is None:
            self.remark("captures left out: invalid URL")
            return
        kind = _kind(capture)
        if not capture.digest and kind in (_PAGE, _SEEN_AGAIN):
            if kind == _PAGE:
                self.remark("captures left out: no digest")
            return
        row = (
            self._urls.setdefault(url, len(self._urls)),
            capture.time,
            kind,
            self._digests.setdefault(capture.digest, len(self._digests)),
            capture.length if kind == _PAGE else 0,
        )
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def listing(self, name: str) -> CaptureListing:
        """Build the history of all captures."""
        urls = sorted(self._urls)
        rank = np.empty(len(urls), np.int64)
        rank[[self._urls[url] for url in urls]] = np.arange(len(urls))
        number, time, kind, digest, size = (np.array(column, np.int64) for column in self._columns)
        page = rank[number]
        kind = _resolved(page, kind, digest, len(self._digests))
        version = np.where(kind == _PAGE, digest, ABSENT)
        rows = _rows(page, time, kind, version)
        if not len(rows):
            raise BadArchive(f"{name} lists no HTML page")
        kept, page = np.unique(page[rows], return_inverse=True)
        history = assemble(
            [urls[old] for old in kept.tolist()],
            page,
            time[rows].astype(np.float64),
            version[rows],
            change="raw",
            carries=CARRIES,
            size=size[rows],
        )
        return CaptureListing(history, self.count, self._broken, self._remarks)


def _kind(capture: ListedCapture) -> int:
    """Return the meaning of a capture. Without status and MIME type it counts as a revisit."""
    if capture.mime == _REVISIT or not (capture.status or capture.mime):
        return _SEEN_AGAIN
    if capture.status in ("404", "410"):
        return _MISSING
    return _PAGE if capture.status in ("200", "") and capture.mime in ("", *_HTML) else _OTHER


def _resolved(page: Ints, kind: Ints, digest: Ints, digests: int) -> Ints:
    """Return the kinds, each revisit with the kind of the capture that it repeats.

    If that capture is not listed, the revisit is a version of the page, provided that the URL is known to be HTML.
    """
    again = kind == _SEEN_AGAIN
    code = page * digests + digest
    known, place = np.unique(code[~again], return_inverse=True)
    if not len(known):
        return np.full(len(kind), _OTHER)
    meaning = np.full(len(known), _OTHER)
    np.maximum.at(meaning, place, kind[~again])
    at = np.minimum(np.searchsorted(known, code), len(known) - 1)
    is_html = np.isin(page, page[kind == _PAGE])
    return np.where(again, np.where(known[at] == code, meaning[at], np.where(is_html, _PAGE, _OTHER)), kind)


def _rows(page: Ints, time: Ints, kind: Ints, version: Ints) -> Ints:
    """Return the captures that are rows of the history, in its order."""
    rows = np.lexsort((kind, time, page))
    rows = rows[kind[rows] != _OTHER]
    last = np.append((np.diff(page[rows]) != 0) | (np.diff(time[rows]) != 0), True)[: len(rows)]
    rows = rows[last]
    # A page is born with its first version; earlier removals are skipped.
    there = np.maximum.accumulate(np.where(version[rows] != ABSENT, page[rows], -1))
    rows = rows[there == page[rows]]
    begins = np.diff(page[rows], prepend=-1) != 0
    ends = np.append(begins[1:], True)[: len(rows)]
    news = np.diff(version[rows], prepend=ABSENT) != 0
    kept: Ints = rows[begins | news | ends]
    return kept
