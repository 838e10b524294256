"""The pages of a git history: which files are pages, their URLs, and which rows of their history an archive keeps."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote_from_bytes

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Ints
from recrawl.discover.urls import canonical
from recrawl.lab.formats.version_rows import Taken, Window

_SUFFIXES = (b".html", b".htm")
_INDEX = b"index.html"
# Characters that browsers do not escape in the path of a link, so that links and URLs agree.
_SAFE = "/:@!$&'()*+,;=~[]|"


@dataclass(frozen=True, slots=True)
class GitRules:
    """How files and commits become pages and versions. The defaults are those of `recrawl import git`."""

    exact_paths: bool = False
    """Whether a URL is the base and the file's path as it is in git, `index.html` included, without canonicalisation;
    only names in `.html` and `.htm`, not `.HTML`, are pages then."""
    exclude: str = ""
    """A regular expression: files whose path, with a slash before it, contains a match are left out."""
    one_second_apart: bool = True
    """Whether a commit dated no later than the one before moves to one second after it. Otherwise it moves to the same
    time, and of several states of a page at one time the last counts."""
    max_pages: int | None = None
    """Over this number of pages, only some directories are kept (see `whole_directories`)."""
    max_page_bytes: int | None = None
    """Pages with a larger version inside the window are left out; they count for `max_pages`."""

    def is_page_name(self, path: bytes) -> bool:
        """Whether a file is a page by its name."""
        return (path if self.exact_paths else path.lower()).endswith(_SUFFIXES)


class FileChange(NamedTuple):
    """A file after a commit."""

    time: int
    path: bytes
    blob: str
    """Git's object name of the content; empty if the file was removed."""


class PageFiles:
    """The changes of all pages as columns, and their URLs."""

    def __init__(self, base: str, folder: bytes, width: int, rules: GitRules, taken: Taken) -> None:
        self.urls: list[str] = []
        self.paths: list[bytes] = []
        """Per page, without the folder."""
        self.page = array("q")
        self.time = array("q")
        self.blobs = bytearray()
        self.width = width
        self.rules = rules
        self._base = base
        self._prefix = folder + b"/" if folder else b""
        self._taken = taken
        self._exclude = re.compile(rules.exclude.encode()) if rules.exclude else None
        self._numbers: dict[bytes, int] = {}
        self._seen: set[str] = set()

    def note(self, change: FileChange) -> None:
        """Add a change if it is one of a page."""
        if not (self.rules.is_page_name(change.path) and change.path.startswith(self._prefix)):
            return
        page = self._numbers.get(change.path)
        if page is None:
            page = self._numbers[change.path] = self._admit(change.path)
        if page < 0:
            return
        self.page.append(page)
        self.time.append(change.time)
        self.blobs += bytes.fromhex(change.blob) or bytes(self.width)

    def _admit(self, path: bytes) -> int:
        """Return a new page's number; -1 if it is excluded, or its URL is invalid or belongs to another file."""
        name = path[len(self._prefix) :]
        if self._exclude is not None and self._exclude.search(b"/" + name):
            self._taken.remark("files excluded")
            return -1
        url = self._base + name.decode("utf-8", "replace") if self.rules.exact_paths else self._canonical_url(name)
        if url is None or url in self._seen:
            self._taken.remark("files left out: no URL of their own")
            return -1
        self._seen.add(url)
        self.urls.append(url)
        self.paths.append(name)
        return len(self.urls) - 1

    def _canonical_url(self, name: bytes) -> str | None:
        if name == _INDEX or name.endswith(b"/" + _INDEX):
            name = name[: -len(_INDEX)]
        return canonical(self._base + quote_from_bytes(name, safe=_SAFE))


@dataclass(frozen=True, slots=True)
class PageRows:
    """Rows of a history in the order of the archive: by URL, then time."""

    page: Ints
    """Numbers of pages in `PageFiles`."""
    time: Ints
    names: NDArray[np.uint8]
    """Git's object names, a row of bytes each; zeros where the file was removed."""
    removed: Flags

    def take(self, rows: Ints | Flags) -> PageRows:
        """Return some of the rows, in order."""
        return PageRows(self.page[rows], self.time[rows], self.names[rows], self.removed[rows])


def window_rows(files: PageFiles, window: Window) -> PageRows:
    """Return the rows inside a window, of no more pages than the rules allow."""
    by_url = np.array(sorted(range(len(files.urls)), key=files.urls.__getitem__), np.int64)
    rank = np.empty_like(by_url)
    rank[by_url] = np.arange(len(by_url))
    page, time = rank[np.array(files.page, np.int64)], np.array(files.time, np.int64)
    names: NDArray[np.uint8] = np.frombuffer(bytes(files.blobs), np.uint8).reshape(-1, files.width)
    order = np.lexsort((time, page))  # stable: changes at one time stay in the order of the commits
    page, time = page[order], time[order]
    last = np.append((page[1:] != page[:-1]) | (time[1:] != time[:-1]), True)
    order, page, time = order[last], page[last], time[last]
    removed: Flags = (names[order] == 0).all(axis=1)
    kept, time = window.of(page, time, removed)
    rows = PageRows(by_url[page[kept]], time, names[order[kept]], removed[kept])
    if files.rules.max_pages is None:
        return rows
    present = np.unique(rows.page[~rows.removed])
    chosen = whole_directories([files.paths[number] for number in present], files.rules.max_pages)
    return rows.take(np.isin(rows.page, present[chosen]))


def whole_directories(paths: Sequence[bytes], limit: int) -> list[int]:
    """Return which files to keep so that they are no more than the limit: whole directories, in the order of the MD5 of
    their names, the top directory first. A directory that is too large for the room left is skipped; if it is the
    first, its files are kept in the order of their names as far as they go.

    >>> whole_directories([b"index.html", b"a/1.html", b"a/2.html", b"b/1.html"], 3)
    [0, 1, 2]
    >>> whole_directories([b"c.html", b"b.html", b"d.html", b"a/1.html"], 2)
    [1, 0]
    """
    directories: dict[bytes, list[int]] = {}
    for number in sorted(range(len(paths)), key=paths.__getitem__):
        directories.setdefault(paths[number].rpartition(b"/")[0], []).append(number)
    kept: list[int] = []
    for name in sorted(directories, key=lambda name: (name != b"", hashlib.md5(name, usedforsecurity=False).digest())):
        if not kept or len(kept) + len(directories[name]) <= limit:
            kept += directories[name][:limit]
    return kept
