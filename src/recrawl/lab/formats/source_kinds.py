"""What a file or folder that is given to the lab is, and what it carries.

| kind      | is                                                    | carries                |
|-----------|-------------------------------------------------------|------------------------|
| `parquet` | Archive Parquet, a file or a folder of files          | text, links, digests   |
| `git`     | a repository that holds a web site                    | text, links, digests   |
| `warc`    | WARC files, one or a folder of them                   | text, links, digests   |
| `cdx`     | a listing: CDX or CDXJ of a web archive               | digests only           |

Files are known by what they hold, not by their names.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, Literal

from recrawl.errors import BadArchive
from recrawl.lab.formats import capture_listings, warc_files
from recrawl.lab.formats.git_program import is_repository

Kind = Literal["parquet", "git", "warc", "cdx"]

CARRIES: dict[Kind, tuple[str, ...]] = {
    "parquet": ("text", "links", "digests"),
    "git": ("text", "links", "digests"),
    "warc": ("text", "links", "digests"),
    "cdx": ("digests",),
}
_SAYS: dict[Kind, str] = {
    "parquet": "an archive: every version of every page, as it was",
    "git": "a site's git repository; import it with --base-url to replay it",
    "warc": "WARC files: every version that a crawler has stored; import them to replay them",
    "cdx": "a listing of captures: when a page was another than before, but not what it said",
}
_PEEK = 1 << 16


def kind_of(path: Path) -> Kind:
    """What a file or folder is; BadArchive when it is nothing that the lab can use."""
    if not path.exists():
        raise BadArchive(f"{path} does not exist")
    found = guess(path)
    if found is None:
        raise BadArchive(f"{path} is neither a Parquet archive, a git repository, WARC files nor a CDX listing")
    return found


def guess(path: Path) -> Kind | None:
    """What a file or folder looks like, None when like nothing that has a history."""
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
    start = _start(path)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"WARC/") or path.name.endswith(".warc.zst"):
        return "warc"
    return "cdx" if capture_listings.looks_like_one(start) else None


def describe_source(path: Path) -> dict[str, Any]:
    """What a file or folder is and what it carries, for people and machines."""
    kind = kind_of(path)
    return {"source": str(path), "kind": kind, "carries": list(CARRIES[kind]), "is": _SAYS[kind]}


def _start(path: Path) -> bytes:
    """The first bytes of a file, unpacked if it is gzip; what is damaged has none."""
    try:
        with capture_listings.opened(path) as stream:
            return stream.read(_PEEK)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return b""
