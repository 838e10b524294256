"""WACZ 1.1.1: records, index and page list in one ZIP file that browsers replay (ReplayWeb.page, pywb).

    archive/data.warc.gz      the records, as they are in the archive
    indexes/index.cdx.gz      CDXJ lines in gzip members of `_LINES` lines
    indexes/index.idx         the first line of each member with its place
    pages/pages.jsonl         one line for each version of a page
    datapackage.json          the files with sizes and SHA-256
    datapackage-digest.json   the SHA-256 of datapackage.json

The files inside are stored, not compressed again, so that a reader can fetch any record by its range.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from recrawl.record.captures import Capture
from recrawl.record.storage import Storage
from recrawl.repository.export import cdxj, warc
from recrawl.repository.results.pages import Version
from recrawl.times import iso
from recrawl.version import __version__

_WARC = "data.warc.gz"
_LINES = 1024


class _Package:
    """A ZIP file with the size and the digest of each file in it.

    Files have the headers of ZIP64 only if they may need them: ReplayWeb.page does not find the contents behind those.
    """

    def __init__(self, out: zipfile.ZipFile, most: int) -> None:
        self._out = out
        self._most = most
        """No file has more bytes: a record is longer than its lines in the index and in the list of pages."""
        self.resources: list[dict[str, Any]] = []

    def add(self, path: str, blocks: Iterable[bytes]) -> None:
        """Add a file from its blocks."""
        digest, size = hashlib.sha256(), 0
        entry = zipfile.ZipInfo(path)
        entry.file_size = self._most
        with self._out.open(entry, "w") as file:
            for block in blocks:
                file.write(block)
                digest.update(block)
                size += len(block)
        name, text = path.rpartition("/")[2], f"sha256:{digest.hexdigest()}"
        self.resources.append({"name": name, "path": path, "hash": text, "bytes": size})


def write(
    storage: Storage, captures: Iterable[Capture], versions: Iterable[Version], file: Path, created: float
) -> int:
    """Write a WACZ file; returns the number of captures in its index."""
    with (
        tempfile.TemporaryFile("w+", dir=file.parent) as lines,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out,
    ):
        package, blocks = _Package(out, storage.store.warcs.total_bytes()), _Blocks()
        package.add(f"archive/{_WARC}", _records(storage, captures, lines))
        lines.seek(0)
        package.add("indexes/index.cdx.gz", blocks.members(cdxj.in_order(lines, file.parent)))
        package.add("indexes/index.idx", (text.encode() for text in blocks.index()))
        package.add("pages/pages.jsonl", _pages(versions))
        _describe(out, package.resources, created)
    return blocks.lines


def _records(storage: Storage, captures: Iterable[Capture], lines: Any) -> Iterator[bytes]:
    """The bytes of the records; their CDXJ lines go to `lines`."""
    block: list[bytes] = []
    for capture, shift in warc.copy(storage, captures, block.append):
        if capture.replayed:
            lines.write(cdxj.line(capture, _WARC, shift))
        yield from block
        block.clear()


class _Blocks:
    """CDXJ lines in gzip members, and the index of the members."""

    def __init__(self) -> None:
        self.lines = 0
        self._index: list[str] = []

    def members(self, lines: Iterator[str]) -> Iterator[bytes]:
        """The lines, compressed some at a time."""
        offset = 0
        while some := list(islice(lines, _LINES)):
            member = gzip.compress("".join(some).encode(), mtime=0)
            place = {"offset": offset, "length": len(member), "digest": f"sha256:{hashlib.sha256(member).hexdigest()}"}
            key, time, _ = some[0].split(" ", 2)
            self._index.append(f"{key} {time} {json.dumps({**place, 'filename': 'index.cdx.gz'})}\n")
            self.lines += len(some)
            offset += len(member)
            yield member

    def index(self) -> Iterator[str]:
        """One line for each member."""
        yield f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': 'index.cdx.gz'})}\n"
        yield from self._index


def _pages(versions: Iterable[Version]) -> Iterator[bytes]:
    yield b'{"format": "json-pages-1.0", "id": "pages", "title": "All pages"}\n'
    for version in versions:
        page = {
            "id": f"{version.url}#{version.number}",
            "url": version.url,
            "ts": iso(version.time.timestamp()),
            "title": version.title,
        }
        yield json.dumps(page).encode() + b"\n"


def _describe(out: zipfile.ZipFile, resources: list[dict[str, Any]], created: float) -> None:
    """The list of files, and its digest."""
    package = {
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "title": "recrawl",
        "software": f"recrawl {__version__}",
        "created": iso(created),
        "resources": resources,
    }
    text = json.dumps(package, indent=2).encode()
    out.writestr("datapackage.json", text)
    digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(text).hexdigest()}"}
    out.writestr("datapackage-digest.json", json.dumps(digest, indent=2))
