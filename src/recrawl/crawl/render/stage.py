"""The browser of a run. Which pages it loads, and what answers their requests, is decided by the machine.

With `render = auto` the first pages of a site are rendered, and their text is compared with that of the plain answer.
Where it never differs, rendering stops: it would cost requests for nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.render.messages import RenderConfig, Rendered, RenderTask, Supplied, Wanted
from recrawl.crawl.render.renderer import Renderer, find_chromium
from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.servers import Servers
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
