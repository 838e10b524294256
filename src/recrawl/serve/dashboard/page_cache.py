"""Cache of rendered pages.

A page is the same for all clients except for the CSRF token in its forms. It is reused while the store, the settings,
the scheduler and the jobs are unchanged, and for at most 1 s, because pages show relative times. Requests for a page
that is being rendered wait for it, so that a change does not make all clients render it at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, Response

from recrawl.serve.context import Context

_MAX_AGE = 1.0
_MAX_PAGES = 200
_FILES = ("recrawl.toml", "recrawl.db", "recrawl.db-wal", "store.toml", "progress.json")

Key = tuple[str, str, str]
"""Path, query, and what of the cookies the page depends on."""


@dataclass(frozen=True, slots=True)
class _Page:
    body: bytes
    token: bytes
    stamp: tuple[Any, ...]
    made: float


class PageCache:
    """The cache; may be used from any thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pages: OrderedDict[Key, _Page] = OrderedDict()
        self._lock = threading.Lock()
        self._rendering: dict[Key, tuple[asyncio.Lock, int]] = {}
        """Pages being rendered, and the number of waiting requests; used in the server's event loop only."""

    def stamp(self) -> tuple[Any, ...]:
        """Return a value that changes whenever a page may change."""
        files = tuple(_file_stamp(self._context.folder / name) for name in _FILES)
        return (*files, self._context.scheduler.status(), self._context.jobs.changes)

    @asynccontextmanager
    async def rendering(self, key: Key) -> AsyncIterator[None]:
        """Let one request at a time render a page."""
        lock, waiting = self._rendering.get(key, (asyncio.Lock(), 0))
        self._rendering[key] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._rendering[key]
            if waiting > 1:
                self._rendering[key] = lock, waiting - 1
            else:
                del self._rendering[key]

    def get(self, key: Key, stamp: tuple[Any, ...], token: str) -> Response | None:
        """Return a page that is still valid, with this token in its forms."""
        with self._lock:
            page = self._pages.get(key)
        if page is None or page.stamp != stamp or time.monotonic() - page.made > _MAX_AGE:
            return None
        return HTMLResponse(page.body.replace(page.token, token.encode()))

    def put(self, key: Key, stamp: tuple[Any, ...], token: str, answer: Response) -> None:
        """Store a page unless it is specific to a client."""
        shareable = (
            answer.status_code == 200 and isinstance(answer, HTMLResponse) and "set-cookie" not in answer.headers
        )
        if not shareable:
            return
        with self._lock:
            self._pages[key] = _Page(bytes(answer.body), token.encode(), stamp, time.monotonic())
            self._pages.move_to_end(key)
            if len(self._pages) > _MAX_PAGES:
                self._pages.popitem(last=False)


def _file_stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
