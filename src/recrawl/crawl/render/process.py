"""The render process: Chromium through Playwright, one page at a time.

Chromium cannot reach the network: on Linux the process is in a network namespace without one; names do not resolve, the
proxy does not exist, WebRTC is removed, and every request is intercepted and handed to the crawler. Frames, navigations
away from the page, downloads, windows, web sockets, service workers and requests other than GET are refused; dialogs
are dismissed. A page that does not come to rest is read when its time is up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from playwright.async_api import Browser, BrowserContext, Error, Page, Playwright, Route, async_playwright

from recrawl.child_processes import end_with_parent
from recrawl.crawl.render.messages import RenderConfig, Rendered, RenderTask, Supplied, Wanted

_ARGUMENTS = (
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync"),
    *(
        "--disable-domain-reliability",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--no-pings",
        "--mute-audio",
    ),
    *("--dns-prefetch-disable", "--webrtc-ip-handling-policy=disable_non_proxied_udp"),
    *("--js-flags=--max-old-space-size=512", "--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>"),
)
_NO_NAMES = "--host-resolver-rules=MAP * ~NOTFOUND"
_DROPPED = frozenset({"content-encoding", "content-length", "transfer-encoding", "set-cookie"})
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
REMOVE_PEERS = "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection']) delete window[name];"
"""WebRTC sends packets without a request that could be intercepted."""
_MAX_MEMORY = 3 << 29
"""Bytes of private memory of one process of the browser, which needs a third of it for an ordinary page."""
_REST_SECONDS = 0.5
"""Without requests for this time, a page has come to rest."""


class _Rendering:
    """One page in the browser."""

    def __init__(self, config: RenderConfig, task: RenderTask, connection: Connection) -> None:
        self._config, self._task, self._connection = config, task, connection
        self._waiting: dict[int, asyncio.Future[Supplied]] = {}
        self._served = False
        self.requests = self.refused = 0
        self.last = 0.0

    async def handle(self, route: Route) -> None:
        """Answer a request of the page, or refuse it."""
        request = route.request
        self.last = asyncio.get_running_loop().time()
        with contextlib.suppress(Error):  # the page may be closed meanwhile
            if request.is_navigation_request():
                if self._served or request.frame.parent_frame is not None:
                    self.refused += 1
                    await route.abort("aborted")  # any other error would replace the page by that of the browser
                    return
                self._served = True
                await route.fulfill(status=200, headers=sent_headers(self._task.headers), body=self._task.body)
                return
            if request.method != "GET" or self.requests >= self._config.requests or not _is_web(request.url):
                self.refused += 1
                await route.abort()
                return
            await self._fetch(route, request.url)

    async def _fetch(self, route: Route, url: str) -> None:
        self.requests += 1
        number = self.requests
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._connection.send(Wanted(number, url))
        found = await future
        self.last = asyncio.get_running_loop().time()
        if found.status == 0:
            await route.abort()
        else:
            await route.fulfill(status=found.status, headers=sent_headers(found.headers), body=found.body)

    def supply(self, answer: Supplied) -> None:
        """The crawler has answered a request."""
        future = self._waiting.pop(answer.request, None)
        if future is not None and not future.done():
            future.set_result(answer)

    @property
    def idle(self) -> bool:
        """Whether the page waits for nothing and has not asked for a while."""
        return not self._waiting and asyncio.get_running_loop().time() - self.last > _REST_SECONDS


async def _render(context: BrowserContext, rendering: _Rendering, task: RenderTask, config: RenderConfig) -> Rendered:
    page = await context.new_page()
    page.on("dialog", lambda dialog: asyncio.ensure_future(_quietly(dialog.dismiss())))
    context.on("page", lambda other: asyncio.ensure_future(_quietly(other.close())) if other is not page else None)
    crashed = asyncio.Event()
    page.on("crash", lambda _: crashed.set())
    await context.add_init_script(REMOVE_PEERS)
    await context.route("**/*", rendering.handle)
    await context.route_web_socket("**/*", lambda socket: asyncio.ensure_future(_quietly(socket.close())))
    with contextlib.suppress(TimeoutError, Error):
        async with asyncio.timeout(config.seconds):
            await page.goto(task.url, wait_until="load", timeout=config.seconds * 1000)
            while not rendering.idle and not crashed.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    if crashed.is_set():
        return Rendered(task.ticket, problem="not rendered: the page crashed the browser")
    html = await _content(page)
    problem = "" if html else "not rendered: a script kept the page busy"
    if len(html) > config.max_bytes:
        html, problem = "", "not rendered: the page grew larger than the setting 'max_bytes'"
    picture = Screenshot()
    if task.screenshot and not problem:
        picture, problem = await take_screenshot(page, config.screenshot_bytes)
    return Rendered(task.ticket, html, problem, rendering.requests, rendering.refused, *picture)


async def _content(page: Page) -> str:
    """The page as HTML; empty if a script keeps it busy."""
    with contextlib.suppress(TimeoutError, Error):
        async with asyncio.timeout(5):
            return await page.content()
    return ""


async def _quietly(step: Any) -> None:
    with contextlib.suppress(Error):
        await step


def _is_web(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def sent_headers(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Headers of an answer for the browser, which gets its body decoded and complete."""
    return {name: value for name, value in headers if name.lower() not in _DROPPED}


async def launch(driver: Playwright, chromium: str) -> Browser:
    """Start Chromium so that it reaches nothing by itself."""
    sandboxed = os.geteuid() != 0  # Chromium's own sandbox does not work for root
    arguments = [*_ARGUMENTS, _NO_NAMES]
    return await driver.chromium.launch(executable_path=chromium, args=arguments, chromium_sandbox=sandboxed)


async def _serve(connection: Connection) -> None:
    config: RenderConfig = connection.recv()
    loop = asyncio.get_running_loop()
    async with async_playwright() as driver:
        browser = await launch(driver, config.chromium)
        messages: asyncio.Queue[Any] = asyncio.Queue()
        loop.add_reader(connection.fileno(), lambda: _receive(connection, messages))
        while True:
            task = await messages.get()
            if task is None:
                return
            if not isinstance(task, RenderTask):
                continue  # a late answer to a request of the page before
            context = await browser.new_context(
                user_agent=config.agent, service_workers="block", accept_downloads=False, locale="en-US"
            )
            rendering = _Rendering(config, task, connection)
            supplies = asyncio.ensure_future(_supply(messages, rendering))
            try:
                connection.send(await _render(context, rendering, task, config))
            finally:
                supplies.cancel()
                await _quietly(context.close())


async def _supply(messages: asyncio.Queue[Any], rendering: _Rendering) -> None:
    while True:
        answer = await messages.get()
        if answer is None:
            os._exit(0)
        rendering.supply(answer)


def _receive(connection: Connection, messages: asyncio.Queue[Any]) -> None:
    try:
        messages.put_nowait(connection.recv())
    except (EOFError, OSError):
        messages.put_nowait(None)
        asyncio.get_running_loop().remove_reader(connection.fileno())


def leave_network() -> None:
    """Have Linux take the network from this process and all that it starts; where that is not allowed, the browser's
    own settings must do.

    Without root this takes a user namespace. There the user keeps its number: without one, Chromium could not make
    the namespaces of its own sandbox.
    """
    user, group = os.geteuid(), os.getegid()
    with contextlib.suppress(OSError, AttributeError):
        if user == 0:
            ctypes.CDLL(None).unshare(_NEW_NETWORK)
        elif ctypes.CDLL(None).unshare(_NEW_NETWORK | _NEW_USER) == 0:
            own = Path("/proc/self")
            (own / "uid_map").write_text(f"{user} {user} 1")
            (own / "setgroups").write_text("deny")
            (own / "gid_map").write_text(f"{group} {group} 1")


def _limit_memory() -> None:
    """Limit the memory of each process of the browser: a page that wants more crashes, and nothing else does."""
    with contextlib.suppress(OSError, ValueError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_MEMORY, _MAX_MEMORY))


def main() -> None:
    """Render the pages that the parent sends until its connection closes."""
    end_with_parent(int(sys.argv[2]))
    leave_network()
    _limit_memory()
    with Connection(int(sys.argv[1])) as connection, contextlib.suppress(EOFError, OSError, Error):
        asyncio.run(_serve(connection))


_MAX_HEIGHT = 8_000
"""Pixels; longer pages are cut."""
_SECONDS = 20.0


class Screenshot(NamedTuple):
    """A picture as PNG; empty if there is none."""

    picture: bytes = b""
    width: int = 0
    height: int = 0


async def take_screenshot(page: Page, most_bytes: int) -> tuple[Screenshot, str]:
    """The screenshot, and why there is none: of a picture with too many bytes the upper half is taken, and so on."""
    with contextlib.suppress(TimeoutError, Error):
        async with asyncio.timeout(_SECONDS):
            width, whole = await _extent(page)
            height, least = min(whole, _MAX_HEIGHT), min(whole, (page.viewport_size or {"height": 1})["height"])
            while True:
                picture = await page.screenshot(
                    clip={"x": 0, "y": 0, "width": width, "height": height},
                    full_page=True,
                    animations="disabled",
                    type="png",
                    timeout=_SECONDS * 1000,
                )
                if len(picture) <= most_bytes:
                    return Screenshot(picture, width, height), ""
                if height == least:
                    return Screenshot(), "no screenshot: larger than the setting 'screenshot_bytes'"
                height = max(least, height // 2)
    return Screenshot(), "no screenshot: the browser did not answer in time"


async def _extent(page: Page) -> tuple[int, int]:
    """Width of the window and height of the page, from the browser itself: scripts of the page cannot lie about it."""
    session = await page.context.new_cdp_session(page)
    size = (await session.send("Page.getLayoutMetrics"))["cssContentSize"]
    width = (page.viewport_size or {"width": 1280})["width"]
    return width, max(1, int(size["height"]))


if __name__ == "__main__":
    main()
