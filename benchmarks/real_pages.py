"""Pages of archived sites as one site for the benchmark's server: real markup instead of generated text.

The newest version of each page stands under its own path, and lists that the front page links lead to all of them. What
else the pages link to is missing, for every crawler alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.pages import Page
from recrawl.lab.formats.archive import Archive

_PLAIN = re.compile(r"/[A-Za-z0-9_~./-]+")
_PER_LIST = 1000


def site(archives: Iterable[Path]) -> list[Page]:
    """The pages, the front page and its lists first."""
    found: dict[str, bytes] = {}
    for path in archives:
        archive = Archive.open([path])
        rows = np.flatnonzero(~archive.removed)[::-1]
        for row in rows[np.unique(archive.page_of[rows], return_index=True)[1]].tolist():
            place = urlsplit(archive.urls[archive.page_of[row]]).path
            if _PLAIN.fullmatch(place) and "//" not in place and "/." not in place:
                found.setdefault(place, archive.html(row))
    paths = list(found)
    lists = {f"/list/{n}.html": paths[n : n + _PER_LIST] for n in range(0, len(paths), _PER_LIST)}
    indexes = {"/": list(lists), **lists}
    pages = {place: _index(links) for place, links in indexes.items()} | found
    return [_page(place, body) for place, body in pages.items()]


def _index(links: list[str]) -> bytes:
    return "".join(
        ["<!doctype html><title>List</title><body>", *(f"<p><a href={it}>{it}</a>" for it in links)]
    ).encode()


def _page(path: str, body: bytes) -> Page:
    """A page whose revision stands at the end of its body."""
    end = body.rfind(b"</body>")
    end = len(body) if end < 0 else end
    return Page(path, body[:end], body[end:])
