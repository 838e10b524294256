"""Which format a file or folder has, and what it carries.

| kind      | format                                                | carries                |
|-----------|-------------------------------------------------------|------------------------|
| `parquet` | Archive Parquet, a file or a folder of files          | text, links, digests   |
| `git`     | a git repository of a web site                        | text, links, digests   |
| `warc`    | WARC, WACZ or ARC files, one or a folder of them      | text, links, digests   |
| `cdx`     | a listing: CDX or CDXJ of a web archive               | digests only           |

Files are recognised by their content, not by their names.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path
from typing import Literal

from recrawl.errors import BadArchive
from recrawl.lab.formats import capture_listings, warc_files
from recrawl.lab.formats.git_history import is_repository

Kind = Literal["parquet", "git", "warc", "cdx"]

CARRIES: dict[Kind, tuple[str, ...]] = {
    "parquet": ("text", "links", "digests"),
    "git": ("text", "links", "digests"),
    "warc": ("text", "links", "digests"),
    "cdx": ("digests",),
}
_PEEK = 1 << 16


def kind_of(path: Path) -> Kind:
    """Return the format of a file or folder; raise `BadArchive` if it is none of these."""
    if not path.exists():
        raise BadArchive(f"{path} does not exist")
    found = guess(path)
    if found is None:
        raise BadArchive(f"{path} is neither a Parquet archive, a git repository, WARC or WACZ files nor a CDX listing")
    return found


def guess(path: Path) -> Kind | None:
    """Return the format of a file or folder, None if it is none of these."""
    if path.is_dir():
        if is_repository(path):
            return "git"
        if next(path.rglob("*.parquet"), None):
            return "parquet"
        names = [file.name for file in path.rglob("*")]
        return "warc" if any(name.endswith(warc_files.SUFFIXES) for name in names) else None
    if not path.is_file():
        return None
    if path.suffix == ".parquet":
        return "parquet"
    if warc_files.is_wacz(path):
        return "warc"
    start = _start(path)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"WARC/", b"filedesc:")) or path.name.endswith(".warc.zst"):
        return "warc"
    return "cdx" if capture_listings.is_listing(start) else None


def _start(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed if it is gzip; those before the damage if it is damaged."""
    with path.open("rb") as stream:
        start = stream.read(_PEEK)
    if not start.startswith(b"\x1f\x8b"):
        return start
    with suppress(zlib.error):
        return zlib.decompressobj(wbits=31).decompress(start, _PEEK)
    return b""
