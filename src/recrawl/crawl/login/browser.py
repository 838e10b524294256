"""The browser process of a login: Chromium without a network fills in the form; the login process makes its requests.

As in rendering, every request is intercepted, so that the rules for addresses, proxies and certificates hold for the
browser too. A redirect of the page becomes a page that leads on: an intercepted request cannot be redirected.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import sys
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urljoin

from playwright.async_api import Browser, Error, Page, Route, async_playwright

from recrawl.child_processes import end_with_parent
from recrawl.crawl.login.form import WITH_PASSWORD
from recrawl.crawl.login.messages import BrowserAnswer, BrowserRequest, BrowserTask, LoginResult
from recrawl.crawl.render.process import REMOVE_PEERS, launch, leave_network, sent_headers

_REST_SECONDS = 1.0
_LEAVE_SECONDS = 10.0
"""How long a form that was sent may stay: a script may take its time to send it."""
_SUBMIT = "[type=submit], button:not([type]), button:not([type=button]):not([type=reset])"


class _Requests:
    """The requests of the browser, made by the login process one after the other."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()
        self._number = 0
        self.last = 0.0

    async def handle(self, route: Route) -> None:
        """Answer a request of the page."""
        request = route.request
        loop = asyncio.get_running_loop()
        with contextlib.suppress(Error):
            if request.method not in ("GET", "POST") or not request.url.startswith(("http://", "https://")):
                await route.abort()
                return
            headers = tuple((await request.all_headers()).items())
            async with self._turn:
                self.last = loop.time()
                self._number += 1
                body = request.post_data_buffer or b""
                main = request.is_navigation_request() and request.frame.parent_frame is None
                asked = BrowserRequest(self._number, request.method, request.url, headers, body, main)
                answer: BrowserAnswer = await loop.run_in_executor(None, self._ask, asked)
                self.last = loop.time()
            if answer.status == 0:
                await route.abort()
            else:
                await route.fulfill(**_fulfilled(request.url, answer))

    def _ask(self, request: BrowserRequest) -> BrowserAnswer:
        self._connection.send(request)
        found: BrowserAnswer = self._connection.recv()
        return found

    async def rest(self) -> None:
        """Wait until the page has asked for nothing for a while, from now on."""
        loop = asyncio.get_running_loop()
        self.last = loop.time()
        while self._turn.locked() or loop.time() - self.last < _REST_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _fulfilled(url: str, answer: BrowserAnswer) -> dict[str, Any]:
    """The answer as Playwright takes it; of several cookies, one a line."""
    headers = sent_headers(answer.headers)
    cookies = [value for name, value in answer.headers if name.lower() == "set-cookie"]
    if cookies:
        headers["set-cookie"] = "\n".join(cookies)
    target = next((value for name, value in answer.headers if name.lower() == "location"), "")
    if 300 <= answer.status < 400 and target:
        headers = {name: value for name, value in headers.items() if name.lower() == "set-cookie"}
        headers["content-type"] = "text/html; charset=utf-8"
        leads = html.escape(urljoin(url, target))
        return {"status": 200, "headers": headers, "body": f'<meta http-equiv="refresh" content="0; url={leads}">'}
    return {"status": answer.status, "headers": headers, "body": answer.body}


async def _log_in(browser: Browser, task: BrowserTask, requests: _Requests) -> LoginResult:
    context = await browser.new_context(user_agent=task.agent, service_workers="block", accept_downloads=False)
    page = await context.new_page()
    await context.add_init_script(REMOVE_PEERS)
    await context.route("**/*", requests.handle)
    await page.goto(task.url, wait_until="load")
    await requests.rest()
    problem = await _submit(page, task)
    if problem:
        return LoginResult(problem=problem)
    form = page.locator(task.form or WITH_PASSWORD).locator("visible=true")
    with contextlib.suppress(Error):
        await form.first.wait_for(state="hidden", timeout=_LEAVE_SECONDS * 1000)
    await requests.rest()
    if await form.count():
        return LoginResult(problem=f"{task.url} shows its login form again; check the values of login_fields")
    cookies: list[Any] = list(await context.cookies())
    return LoginResult([_line(cookie) for cookie in cookies])


async def _submit(page: Page, task: BrowserTask) -> str:
    """Fill in the form and send it; returns why that is not possible."""
    form = page.locator(task.form or WITH_PASSWORD).first
    if not await form.count():
        return f"{task.url} has no login form, also after its scripts have run; set login_form"
    for name, value in task.fields:
        entry = form.locator(f"[name={_quoted(name)}], [id={_quoted(name)}]").first
        if not await entry.count():
            return f"the login form of {task.url} has no field '{name}'"
        await entry.fill(value)
    button = form.locator(_SUBMIT).first
    await (button.click() if await button.count() else entry.press("Enter"))
    return ""


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _line(cookie: dict[str, Any]) -> str:
    """A cookie of the browser in Netscape's format."""
    domain = cookie["domain"]
    flags = [str(domain.startswith(".")).upper(), cookie["path"], str(bool(cookie["secure"])).upper()]
    expires = str(max(0, int(cookie.get("expires", 0))))
    prefix = "#HttpOnly_" if cookie.get("httpOnly") else ""
    return "\t".join([prefix + domain, *flags, expires, cookie["name"], cookie["value"]])


async def _serve(connection: Connection) -> None:
    task: BrowserTask = connection.recv()
    async with async_playwright() as driver:
        browser = await launch(driver, task.chromium)
        try:
            async with asyncio.timeout(task.seconds):
                result = await _log_in(browser, task, _Requests(connection))
        except (TimeoutError, Error) as error:
            cause = "it took too long" if isinstance(error, TimeoutError) else "the browser reported an error"
            result = LoginResult(problem=f"the login at {task.url} failed: {cause}")
        connection.send(result)
        await browser.close()


def main() -> None:
    """Make the login that the parent sends."""
    end_with_parent(int(sys.argv[2]))
    leave_network()
    with Connection(int(sys.argv[1])) as connection, contextlib.suppress(EOFError, OSError, Error):
        asyncio.run(_serve(connection))


if __name__ == "__main__":
    main()
