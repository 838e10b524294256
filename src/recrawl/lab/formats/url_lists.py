"""Lists of URLs: whether a file looks like one, and what it looks like instead."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from recrawl.discover.urls import listed_url

_PEEK = 1 << 16
_LINES = 200
_NAMES = (
    (rb"\x1f\x8b", "a gzip file, damaged or of something else than a history; unpack it first"),
    (rb"PK\x03\x04|PK\x05\x06", "a ZIP file, damaged or not a WACZ file"),
    (rb"\x28\xb5\x2f\xfd", "a Zstandard file; a WARC file that is packed so has a name that ends in .warc.zst"),
    (rb"filedesc:", "a damaged ARC file"),
    (rb"%PDF-", "a PDF file"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8", "a picture"),
    (rb"SQLite format 3", "an SQLite database"),
    (
        rb"(?:\xef\xbb\xbf)?\s*<\?xml|(?:\xef\xbb\xbf)?\s*<(?:urlset|sitemapindex|rss|feed)\b",
        "XML; a site is added with its home page",
    ),
    (rb"(?:\xef\xbb\xbf)?\s*<", "an HTML page"),
    (rb"(?:\xef\xbb\xbf)?\s*[\[{]", "JSON"),
)
_HISTORIES = (".gz", ".zst", ".warc", ".arc", ".wacz", ".parquet", ".cdx", ".cdxj")
_COLUMNS = re.compile(r"[,;\t]")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


def no_url_list(file: Path) -> str:
    """Why a file is no list of URLs, one on a line; empty if it looks like one.

    An empty file is a list, unless its name is that of another kind. In others, at least half of the first lines are
    URLs, comments (#) and empty lines aside.
    """
    with file.open("rb") as stream:
        start = stream.read(_PEEK)
    if not start and file.name.lower().endswith(_HISTORIES):
        return "it is empty"
    name = next((words for pattern, words in _NAMES if re.match(pattern, start)), "")
    if name:
        return f"it looks like {name}"
    if _CONTROLS.search(start):
        return "it has binary data"
    text = start.decode("utf-8-sig", "replace")
    lines = list(islice((line for line in text.splitlines() if line.strip() and not line.startswith("#")), _LINES))
    wrong = [line for line in lines if listed_url(line) is None]
    mark = _COLUMNS.search(lines[0]) if wrong[:1] == lines[:1] and lines else None
    if mark and all(mark[0] in line for line in lines):
        return f"it looks like a table; make a list of its column of URLs (its first line is '{lines[0][:80]}')"
    if 2 * len(wrong) <= len(lines):
        return ""
    return f"{len(wrong)} of its first {len(lines)} lines are none, such as '{wrong[0].strip()[:80]}'"
