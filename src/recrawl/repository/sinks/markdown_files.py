"""A folder of Markdown files: one for each page, with front matter; removed when the page is.

The name follows from the URL alone: `example.org/news/today-1f2e3d4c.md`. The values of the front matter are written as
JSON, which YAML includes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from recrawl.repository.outgoing import NotSent
from recrawl.repository.results.values import iso
from recrawl.repository.sinks.protocol import Event

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME, _MAX_FOLDERS = 80, 8


class MarkdownFiles:
    """Writes pages to files."""

    max_events = 100

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def deliver(self, events: Sequence[Event]) -> None:
        """Write or remove the files; each is replaced at once and is on the disk before this returns."""
        try:
            for event in events:
                file = self._folder / file_name(event.url)
                if event.removed:
                    file.unlink(missing_ok=True)
                else:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    _replace(file, document(event))
        except OSError as error:
            raise NotSent(f"cannot write {error.filename or self._folder}: {error.strerror}") from error

    def close(self) -> None:
        """Nothing is open between files."""


def file_name(url: str) -> str:
    """The path of a page's file, from its URL; a digest keeps apart what the readable part does not.

    >>> file_name("https://example.org/news/today.html?a=1")
    'example.org/news/today.html-f9b3a1da.md'
    >>> file_name("https://example.org/../../etc/passwd").count("..")
    0
    """
    parts = urlsplit(url)
    words = [_UNSAFE.sub("_", unquote(word)).strip("._")[:_MAX_NAME] for word in parts.path.split("/")]
    *folders, name = [word for word in words if word] or ["index"]
    host = _UNSAFE.sub("_", parts.netloc).strip("._") or "host"
    digest = hashlib.blake2b(url.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return "/".join([host, *folders[:_MAX_FOLDERS], f"{name}-{digest}.md"])


def document(event: Event) -> str:
    """Front matter and text of a page."""
    head = {
        "title": event.title,
        "url": event.url,
        "time": iso(event.time),
        "change": event.id,
        "outcome": event.outcome,
        "digest": event.digest,
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    return "\n".join(["---", *lines, "---", "", event.text, ""])


def _replace(file: Path, text: str) -> None:
    part = file.with_name(f".{file.name}.part")
    with part.open("w", encoding="utf-8", errors="replace") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)
