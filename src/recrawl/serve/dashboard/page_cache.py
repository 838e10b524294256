"""Pages that were just made, for whoever asks next, as long as nothing has happened that could change them.

Many look at the same page at the same time, and it looks the same to all of them but for the token in its forms. A page
is given again if the store, the settings, the scheduler and the jobs are as they were when it was made, and for a
second at most, because pages say how long ago things were. Whoever asks for a page while it is being made waits for
it: when something has changed, all would make it at once, and each would take as long as all of them together.
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

from recrawl.record.storage import SETTINGS
from recrawl.serve.context import Context

_LASTS = 1.0
_MOST = 200
_FILES = (SETTINGS, "recrawl.db", "recrawl.db-wal")

Key = tuple[str, str, str]
"""Path, query, theme."""


@dataclass(frozen=True, slots=True)
class _Page:
    body: bytes
    token: bytes
    stamp: tuple[Any, ...]
    made: float


class PageCache:
    """A few pages; may be used from any thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pages: OrderedDict[Key, _Page] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Key, tuple[asyncio.Lock, int]] = {}
        """Pages that are being made, and how many wait for each; only the loop of the server looks at it."""

    def stamp(self) -> tuple[Any, ...]:
        """What changes whenever a page may."""
        files = tuple(_touched(self._context.folder / name) for name in _FILES)
        return (*files, self._context.scheduler.status(), self._context.jobs.changes)

    @asynccontextmanager
    async def alone(self, key: Key) -> AsyncIterator[None]:
        """Let one at a time make a page."""
        lock, waiting = self._making.get(key, (asyncio.Lock(), 0))
        self._making[key] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._making[key]
            if waiting > 1:
                self._making[key] = lock, waiting - 1
            else:
                del self._making[key]

    def get(self, key: Key, stamp: tuple[Any, ...], token: str) -> Response | None:
        """A page that is still good, with this token in its forms."""
        with self._lock:
            page = self._pages.get(key)
        if page is None or page.stamp != stamp or time.monotonic() - page.made > _LASTS:
            return None
        return HTMLResponse(page.body.replace(page.token, token.encode()))

    def put(self, key: Key, stamp: tuple[Any, ...], token: str, answer: Response) -> None:
        """Keep a page, if it is one that others may see."""
        plain = answer.status_code == 200 and isinstance(answer, HTMLResponse) and "set-cookie" not in answer.headers
        if not plain:
            return
        with self._lock:
            self._pages[key] = _Page(bytes(answer.body), token.encode(), stamp, time.monotonic())
            self._pages.move_to_end(key)
            if len(self._pages) > _MOST:
                self._pages.popitem(last=False)


def _touched(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
