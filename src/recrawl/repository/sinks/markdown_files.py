"""A folder of Markdown files: the content of each page, with front matter; removed when the page is.

The name follows from the URL alone: `example.org/news/today-1f2e3d4c5b6a7988.md`. No two URLs have the same file, and
no file has the name of a folder, on file systems that ignore case too: a file ends in a digest of its URL and `.md`, a
folder does not end in `.md`. Files with the shorter names of earlier versions keep them. The values of the front matter
are written as JSON, which YAML includes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from recrawl.durable_files import make_folder, remove_file, replace_file
from recrawl.errors import DamagedRecord, Unreadable
from recrawl.repository.outgoing import NotSent
from recrawl.repository.results.values import iso
from recrawl.repository.sinks.protocol import Event

if TYPE_CHECKING:
    from recrawl.repository.reader import Reader

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"^(con|prn|aux|nul|(com|lpt)[0-9])(?=\.|$)", re.IGNORECASE)
"""Names of devices on Windows, also before a dot."""
_MAX_NAME, _MAX_FOLDERS, _MAX_HOST = 80, 8, 200
_OF_PAGE = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EILSEQ)
"""Failures of one file; others are of the disk or the whole folder."""
_HEAD_BYTES = 65_536


class MarkdownFiles:
    """Writes pages to files."""

    max_events = 100
    newest_only = True

    def __init__(self, folder: Path, written: Callable[[Event], str]) -> None:
        self._folder = folder
        self._written = written

    def deliver(self, events: Sequence[Event]) -> dict[int, NotSent]:
        """Write or remove the files; each is replaced at once and is on the disk before this returns."""
        failed: dict[int, NotSent] = {}
        for event in events:
            try:
                self._write(event)
            except OSError as error:
                of_page = error.errno in _OF_PAGE
                problem = f"cannot write {error.filename or self._folder}: {error.strerror}"
                failed[event.id] = NotSent(problem, permanent=of_page)
        return failed

    def _write(self, event: Event) -> None:
        file, earlier = self._folder / file_name(event.url), self._folder / earlier_name(event.url)
        if not file.exists() and _is_of(earlier, event.url):
            file = earlier
        if event.removed:
            remove_file(file)
        else:
            make_folder(file.parent)
            replace_file(file, self._written(event).encode("utf-8", "replace"))

    def close(self) -> None:
        """Nothing is open between files."""


def documents(repository: Reader) -> Callable[[Event], str]:
    """Writes front matter and content of pages; of one whose record is damaged, its front matter alone."""
    from recrawl.repository.results.content import ContentReader, front_matter  # lazy: loads the parser

    pages = ContentReader(repository)

    def written(event: Event) -> str:
        about = {"time": iso(event.time), "change": event.id, "outcome": event.outcome}
        if event.version is not None:
            with contextlib.suppress(DamagedRecord, Unreadable):
                return pages.read(event.url, event.version).document(about)
        return front_matter({"title": event.title, "url": event.url, "digest": event.digest, **about})

    return written


def file_name(url: str) -> str:
    """The path of a page's file, from its URL; a digest keeps apart what the readable part does not.

    >>> file_name("https://example.org/news/today.html?a=1")
    'example.org/news/today.html-4e0b83878000d03f.md'
    >>> file_name("https://example.org/../../etc/passwd").count("..")
    0
    >>> file_name("https://example.org/a.md/con.txt/x").split("/")[1:3]
    ['a.md_', 'con_.txt']
    """
    host, folders, name = _words(url)
    if len(host) > _MAX_HOST:
        host = f"{host[:_MAX_HOST]}-{_digest(host, 8)}"
    *folders, name = (_RESERVED.sub(r"\1_", word, count=1) for word in (*folders, name))
    folders = [folder.rstrip(".") for folder in folders]
    folders = [f"{folder}_" if folder.lower().endswith(".md") else folder for folder in folders]
    return "/".join([host, *folders, f"{name}-{_digest(url, 8)}.md"])


def earlier_name(url: str) -> str:
    """The path that earlier versions gave a page's file."""
    host, folders, name = _words(url)
    return "/".join([host, *folders, f"{name}-{_digest(url, 4)}.md"])


def _words(url: str) -> tuple[str, list[str], str]:
    """Host, folders and name of a file, without characters that mean something elsewhere."""
    parts = urlsplit(url)
    words = [_UNSAFE.sub("_", unquote(word)).strip("._")[:_MAX_NAME] for word in parts.path.split("/")]
    *folders, name = [word for word in words if word] or ["index"]
    return _UNSAFE.sub("_", parts.netloc).strip("._") or "host", folders[:_MAX_FOLDERS], name


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def _is_of(file: Path, url: str) -> bool:
    """Whether a file is there and names this URL in its front matter."""
    try:
        with file.open("rb") as content:
            head = content.read(_HEAD_BYTES).decode("utf-8", "replace").split("\n---\n", 1)[0]
    except OSError:
        return False
    return any(line in (f"url: {json.dumps(url, ensure_ascii=False)}", f"url: {url}") for line in head.splitlines())
