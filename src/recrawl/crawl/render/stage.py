"""The browser of a run. Which pages it loads, and what answers their requests, is decided by the machine.

With `render = auto` the first pages of a site are rendered, and their text is compared with that of the plain answer.
Where it never differs, rendering stops: it would cost requests for nothing.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections import deque
from typing import TYPE_CHECKING

from recrawl.child_processes import start_module
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.render.messages import RenderConfig, Rendered, RenderTask, Supplied, Wanted, bounded_rendering
from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.servers import Servers
from recrawl.errors import UsageError
from recrawl.extras import require
from recrawl.model import Answer
from recrawl.record.store import Store

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


_META = "rendering"


class Browser:
    """Loads one page at a time; its process starts with the first one."""

    def __init__(self, store: Store, servers: Servers, options: CrawlOptions) -> None:
        self._store, self._servers = store, servers
        limits = (options.render_seconds, options.render_requests, options.limits.max_bytes)
        # Raises now, not in the middle of a run, if there is no browser.
        config = RenderConfig(find_chromium(), options.agent, *limits, int(options.screenshot_bytes))
        self._renderer, self._used = Renderer(config), False
        self._visit: PageVisit | None = None
        known = json.loads(store.meta.get(_META, "{}"))
        for server in servers:
            server.rendered, server.render_differed = known.get(server.origin, (0, 0))

    def load(self, visit: PageVisit, *, picture: bool) -> None:
        """Load a page."""
        answer = visit.answer
        assert answer is not None
        self._visit, self._used = visit, True
        url = visit.request_url if visit.redirects else visit.url
        self._renderer.submit(RenderTask(visit.page, url, answer.headers, answer.body, picture))

    def collect(self, now: float) -> list[tuple[PageVisit, Rendered] | Wanted]:
        """Requests of the page, and the page when it is done, or has missed its deadline."""
        self._renderer.pump(now)
        found: list[tuple[PageVisit, Rendered] | Wanted] = []
        for message in self._renderer.collect(now):
            if isinstance(message, Rendered):
                assert self._visit is not None
                found.append((self._visit, message))
                self._visit = None
            else:
                found.append(message)
        return found

    def supply(self, request: int, answer: Answer | None) -> None:
        """Answer a request of the page; None if there is no answer."""
        if answer is None:
            self._renderer.supply(Supplied(request))
        else:
            self._renderer.supply(Supplied(request, answer.status, answer.headers, answer.body))

    def supply_stored(self, request: int, stored: tuple[int, tuple[tuple[str, str], ...], bytes]) -> None:
        """Answer a request of the page from the archive: status, headers and body."""
        self._renderer.supply(Supplied(request, *stored))

    @property
    def pending(self) -> int:
        """Pages in the browser."""
        return self._renderer.pending

    @property
    def connections(self) -> list[Connection]:
        """Become readable when there is something to do."""
        return self._renderer.connections

    def deadline(self, now: float) -> float | None:
        """Seconds until the page must be done."""
        return self._renderer.deadline(now)

    def close(self) -> None:
        """End the browser, and store what was learned; pages that were not rendered are visited again later."""
        self._renderer.close()
        if self._used:
            learned = {it.origin: (it.rendered, it.render_differed) for it in self._servers if it.rendered}
            self._store.meta.set(_META, json.dumps(learned))


# --------------------------------------------------------------------------------------------------------------------
# The render process from the crawler's side: one page at a time, with a deadline, replaced when it fails.


_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_START_SECONDS = 60.0
"""Extra time for the first page of a process, which has to start the browser."""
_GRACE = 10.0
"""Seconds after a page's time in which the process must have sent it."""


def find_chromium() -> str:
    """The path of the system's Chromium; `UsageError` says what is missing."""
    require("playwright")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise UsageError(f"rendering needs Chromium, but none of {', '.join(_NAMES)} is in PATH; install it")
    return found


class Renderer:
    """The queue of pages to be rendered; the process starts with the first one."""

    def __init__(self, config: RenderConfig) -> None:
        self._config = config
        self._waiting: deque[RenderTask] = deque()
        self._current: RenderTask | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._deadline = 0.0

    @property
    def pending(self) -> int:
        """Pages that wait or are being rendered."""
        return len(self._waiting) + (self._current is not None)

    @property
    def connections(self) -> list[Connection]:
        """Become readable when the process has something to say."""
        return [self._connection] if self._connection is not None else []

    def submit(self, task: RenderTask) -> None:
        """Add a page to the queue."""
        self._waiting.append(task)

    def pump(self, now: float) -> None:
        """Send the next page to the process if it is idle."""
        if self._current is None and self._waiting:
            self._current = self._waiting.popleft()
            fresh = self._start()
            self._deadline = now + self._config.seconds + _GRACE + (_START_SECONDS if fresh else 0.0)
            self._send(self._current)

    def collect(self, now: float) -> list[Wanted | Rendered]:
        """Requests of the page, and the page when it is done, or has missed its deadline."""
        found: list[Wanted | Rendered] = []
        try:
            while self._connection is not None and self._connection.poll():
                message = self._connection.recv()
                if isinstance(message, Rendered):
                    self._current = None
                    message = bounded_rendering(message, self._config.max_bytes)
                found.append(message)
            late = self._current is not None and now >= self._deadline
        except (EOFError, OSError):
            late = True
        if late:
            self.close()
            if self._current is not None:
                found.append(
                    Rendered(self._current.ticket, problem="not rendered: the browser took too long or crashed")
                )
                self._current = None
        return found

    def supply(self, answer: Supplied) -> None:
        """Answer a request of the page."""
        self._send(answer)

    def deadline(self, now: float) -> float | None:
        """Seconds until the current page must be done; None if there is none."""
        return max(0.0, self._deadline - now) if self._current is not None else None

    def close(self) -> None:
        """End the process and its browser."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(2.0)  # it closes its browser when its connection ends
            self._child.kill()
            self._child.wait()
            self._child = None

    def _start(self) -> bool:
        if self._child is not None:
            return False
        self._child, self._connection = start_module("recrawl.crawl.render.process")
        self._send(self._config)
        return True

    def _send(self, message: RenderConfig | RenderTask | Supplied) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):  # the process has ended: `collect` notices
                self._connection.send(message)
