"""Capture listings of web archives (CDX, CDXJ) as a history: change by digest, nothing downloaded.

A listing says when a page was looked at, what the answer was and the digest of what came. That is enough to replay
policies that need neither text nor links. A page is in another version when its digest is another; 404 and 410 mean
that it is not there; redirects, errors and what is not HTML say nothing about it. A `warc/revisit` has the digest of
the capture that it repeats, so it has that capture's meaning too.

A page that was found as it had been gives no row, apart from its last capture: that one tells how long it was watched.
"""

from __future__ import annotations

import gzip
import io
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import numpy as np

from recrawl.columns import Ints
from recrawl.discover.urls import canonical
from recrawl.errors import BadArchive
from recrawl.lab.formats.cdx import Capture, captures
from recrawl.lab.histories.history import ABSENT, History, assemble

CARRIES = frozenset({"digests"})
_HTML = ("text/html", "application/xhtml+xml")
_REVISIT = "warc/revisit"
# What a capture says of its page. Of several in the same second, the greatest counts.
_OTHER, _SEEN_AGAIN, _MISSING, _PAGE = range(4)


@dataclass(frozen=True, slots=True)
class Listing:
    """A history out of listings, and what became of their lines."""

    history: History
    captures: int
    """Lines that were understood."""
    broken: int
    """Lines that were not."""
    remarks: dict[str, int] = field(default_factory=dict)
    """What was left out, in words for people, and how many of it."""


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked if they are gzip, whatever its name says."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def looks_like_one(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a listing."""
    lines = start.decode("utf-8", "replace").splitlines()[:20]
    found = list(captures(lines[:-1] if len(lines) > 1 else lines))
    return any(found)


def read(paths: Sequence[Path]) -> Listing:
    """The history that listings tell together; their lines may come in any order, and more than once."""
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
            what = "none of its lines can be read" if lines else "it is empty"
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
        """Count something that people should hear of."""
        self._remarks[what] = self._remarks.get(what, 0) + 1

    def note(self, capture: Capture | None) -> None:
        """Take in a line."""
        if capture is None:
            self._broken += 1
            return
        self.count += 1
        url = canonical(capture.url)
        if url is None:
            self.remark("captures left out: no address of a web page")
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

    def listing(self, name: str) -> Listing:
        """The history of all captures together."""
        urls = sorted(self._urls)
        rank = np.empty(len(urls), np.int64)
        rank[[self._urls[url] for url in urls]] = np.arange(len(urls))
        number, time, kind, digest, size = (np.array(column, np.int64) for column in self._columns)
        page = rank[number]
        kind = _resolved(page, kind, digest, len(self._digests))
        version = np.where(kind == _PAGE, digest, ABSENT)
        rows = _rows(page, time, kind, version)
        if not len(rows):
            raise BadArchive(f"{name} lists no HTML page that was there")
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
        return Listing(history, self.count, self._broken, self._remarks)


def _kind(capture: Capture) -> int:
    """What a capture says of its page. Without a status, and of no kind that is told, it is taken for a revisit."""
    if capture.mime == _REVISIT or not (capture.status or capture.mime):
        return _SEEN_AGAIN
    if capture.status in ("404", "410"):
        return _MISSING
    return _PAGE if capture.status in ("200", "") and capture.mime in ("", *_HTML) else _OTHER


def _resolved(page: Ints, kind: Ints, digest: Ints, digests: int) -> Ints:
    """The kinds, with each revisit given the kind of the capture that it repeats.

    Where that one is not listed, it is a version of the page, if the address is known to be one's at all.
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
    """The captures that are rows of the history, in its order."""
    rows = np.lexsort((kind, time, page))
    rows = rows[kind[rows] != _OTHER]
    last = np.append((np.diff(page[rows]) != 0) | (np.diff(time[rows]) != 0), True)[: len(rows)]
    rows = rows[last]
    # Before it is first there, a page is not born yet.
    there = np.maximum.accumulate(np.where(version[rows] != ABSENT, page[rows], -1))
    rows = rows[there == page[rows]]
    begins = np.diff(page[rows], prepend=-1) != 0
    ends = np.append(begins[1:], True)[: len(rows)]
    news = np.diff(version[rows], prepend=ABSENT) != 0
    kept: Ints = rows[begins | news | ends]
    return kept
