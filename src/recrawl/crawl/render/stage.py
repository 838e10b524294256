"""The rendering step of a visit: which pages are rendered, and what rendering has shown on each site.

With `render = auto` the first pages of a site are rendered, and their text is compared with that of the plain answer.
Where it never differs, rendering stops: it would cost requests for nothing.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Protocol

from recrawl.compare.parsing.media_types import HTML
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.render.demands import Demands
from recrawl.crawl.render.messages import RenderConfig, Rendered, RenderTask
from recrawl.crawl.render.renderer import Renderer, find_chromium
from recrawl.crawl.requisites.fetching import RequisiteFetches
from recrawl.crawl.requisites.registry import Registry
from recrawl.crawl.visits.messages import Reading, Task
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.record.storage import Storage

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_META = "rendering"


class RenderRun(Protocol):
    """What the stage needs of a run."""

    servers: Servers
    recorder: Recorder
    requisites: RequisiteFetches


class RenderStage:
    """Pages between their answer and the reader process."""

    def __init__(self, run: RenderRun, storage: Storage, registry: Registry, options: CrawlOptions) -> None:
        self._store, self._servers, self._options = storage.store, run.servers, options
        self._demands = Demands(storage, registry, run.requisites, run.recorder, options)
        self._waiting: deque[tuple[Server, Task]] = deque()
        self._tasks: dict[int, tuple[Server, Task]] = {}
        """The page that is being rendered, by ticket."""
        self._finished: dict[int, Rendered] = {}
        """Pages that are being parsed, by ticket."""
        self._renderer: Renderer | None = None
        known = json.loads(storage.store.meta.get(_META, "{}"))
        for server in run.servers:
            server.rendered, server.render_differed = known.get(server.origin, (0, 0))
        if options.browses:
            find_chromium()  # raises now, not in the middle of a run

    def takes(self, server: Server, task: Task) -> bool:
        """Take a page that is to be rendered; False if it is not."""
        if not server.browses:
            return False
        from recrawl.crawl.visits.stored_text import media_type  # lazy: loads what parses pages

        if not media_type(task.body, task.headers)[1].startswith(HTML):
            return False
        if self._renderer is None:
            options = self._options
            limits = (options.render_seconds, options.render_requests, options.limits.max_bytes)
            config = RenderConfig(find_chromium(), options.agent, *limits, int(options.screenshot_bytes))
            self._renderer = Renderer(config)
        self._waiting.append((server, task))
        return True

    def work(self, now: float) -> list[Task]:
        """Go on with rendering; returns the pages that are done, for the reader process."""
        renderer = self._renderer
        if renderer is None:
            return []
        done = self._next(renderer)
        renderer.pump(now)
        for message in renderer.collect(now):
            if isinstance(message, Rendered):
                server, task = self._tasks.pop(message.ticket)
                self._finished[message.ticket] = message._replace(html="")
                done.append(task._replace(rendered=message.html if server.renders else ""))
                self._demands.forget()
            else:
                self._demands.want(message.request, message.url)
        for answer in self._demands.take():
            renderer.supply(answer)
        return done

    def _next(self, renderer: Renderer) -> list[Task]:
        """Let the next page be rendered; returns those before it that need not be any more."""
        plain = []
        while self._waiting and not self._tasks:
            server, task = self._waiting.popleft()
            if server.browses:
                self._tasks[task.ticket] = (server, task)
                url, picture = task.answered_url or task.url, server.screenshots != "never"
                renderer.submit(RenderTask(task.ticket, url, task.headers, task.body, picture))
            else:
                plain.append(task)
        return plain

    def take(self, ticket: int) -> Rendered | None:
        """What became of a page in the browser, once; None if it was not loaded there."""
        return self._finished.pop(ticket, None)

    def learn(self, server: Server, reading: Reading) -> None:
        """Note whether rendering has changed the text of a page."""
        if reading.render_differs is not None:
            server.rendered += 1
            server.render_differed += reading.render_differs

    @property
    def pending(self) -> int:
        """Pages that wait or are being rendered."""
        return len(self._waiting) + len(self._tasks)

    @property
    def connections(self) -> list[Connection]:
        """Become readable when there is something to do."""
        return self._renderer.connections if self._renderer is not None else []

    def deadline(self, now: float) -> float | None:
        """Seconds until the page that is being rendered must be done."""
        return self._renderer.deadline(now) if self._renderer is not None else None

    def close(self) -> None:
        """End the browser, and store what was learned; pages that were not rendered are visited again later."""
        if self._renderer is not None:
            self._renderer.close()
            learned = {it.origin: (it.rendered, it.render_differed) for it in self._servers if it.rendered}
            self._store.meta.set(_META, json.dumps(learned))
