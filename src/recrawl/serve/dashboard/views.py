"""What every page of the dashboard uses: the repository, the settings, the templates and the endpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from recrawl.cluster.opening import is_cluster
from recrawl.errors import RecrawlError
from recrawl.repository.repository import Repository
from recrawl.repository.running import Running, running
from recrawl.serve.access.security import checked_form, csrf_token, local_path
from recrawl.serve.context import Context
from recrawl.serve.dashboard.page_cache import PageCache
from recrawl.serve.dashboard.render import environment
from recrawl.serve.problems import as_problem
from recrawl.settings import Settings

STATIC = Path(__file__).with_name("static")
FEED = "/changes.atom"
MENU = (
    ("/", "Overview"),
    ("/changes", "Changes"),
    ("/sites", "Pages and sites"),
    ("/search", "Search"),
    ("/alerts", "Alerts"),
    ("/lab", "Lab"),
    ("/settings", "Settings"),
)
KEYS = {
    "/": "o",
    "/sites": "s",
    "/changes": "c",
    "/search": "f",
    "/alerts": "a",
    "/lab": "l",
    "/cluster": "u",
    "/settings": "e",
}
"""The key after `g` that leads to each page of the menu."""
_CLUSTER = ("/cluster", "Cluster")
"""The page of the menu that only a cluster has."""
SEEN = "seen"
"""The cookie that says when the start page was open last, and when before that."""
_THEMES = ("light", "dark")

View = Callable[["Views", Request], Response]
Action = Callable[["Views", Request, FormData], Response]


class Views:
    """The service's context with templates and page cache."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.jobs = context.jobs
        self._cache = PageCache(context)
        self._templates = environment(context.clock)
        self._cluster = is_cluster(context.folder)
        self._menu = (*MENU[:-1], _CLUSTER, MENU[-1]) if self._cluster else MENU
        self._templates.globals.update(static=self._static, menu=self._menu, keys=KEYS, feed=FEED)

    def now(self) -> float:
        """Seconds since 1970."""
        return self.context.clock()

    def reading(self) -> AbstractContextManager[Repository]:
        """Borrow the repository for reading."""
        return self.context.reading()

    def settings(self) -> Settings:
        """Read the current settings."""
        return self.context.settings()

    def running(self) -> Running | None:
        """The crawl or cycle under way, if any."""
        if not self._cluster:
            return running(self.context.folder)
        with self.reading() as repository:
            return repository.running()

    def show(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a page."""
        theme = request.cookies.get("theme", "")
        path = request.url.path
        here = next((item for item, _ in self._menu[1:] if path == item or path.startswith(f"{item}/")), "")
        common = {
            "here": "/" if path == "/" else "/sites" if path.startswith("/pages") else here,
            "theme": theme if theme in _THEMES else "",
            "back": path + (f"?{request.url.query}" if request.url.query and request.method == "GET" else ""),
            "csrf": csrf_token(request, self.context),
            "repository_name": self._name,
            "notice": "",
            "run": self.running(),
            "brief": True,
        }
        return HTMLResponse(self._templates.get_template(template).render({**common, **values}), status)

    def text(self, template: str, **values: Any) -> str:
        """Render a document that is not an HTML page."""
        return self._templates.get_template(template).render({"repository_name": self._name, **values})

    @cached_property
    def _name(self) -> str:
        return self.context.folder.resolve().name

    def problem(self, request: Request, error: RecrawlError) -> Response:
        """Render an error page."""
        problem = as_problem(error)
        head = {400: "Invalid request", 404: "Not found", 403: "Refused"}.get(problem.status, "Error")
        page = self.show(request, "problem.html", status=problem.status, head=head, text=_sentence(problem.detail))
        page.headers.update(problem.headers)
        return page

    def view(self, how: View) -> Callable[[Request], Any]:
        """Return the endpoint of a page; it runs in a thread, so that it may block on the store."""

        async def endpoint(request: Request) -> Response:
            token = csrf_token(request, self.context)
            seen = request.cookies.get(SEEN, "")[:40] if request.url.path == "/" else ""
            key = (request.url.path, request.url.query, f"{request.cookies.get('theme', '')[:20]} {seen}")
            stamp = self._cache.stamp()
            cached = self._cache.get(key, stamp, token)
            if cached is not None:
                return cached
            async with self._cache.rendering(key):
                stamp = self._cache.stamp()
                cached = self._cache.get(key, stamp, token)  # another request may have rendered it meanwhile
                if cached is not None:
                    return cached
                response: Response = await run_in_threadpool(self._respond, how, request)
                self._cache.put(key, stamp, token, response)
                return response

        return endpoint

    def action(self, how: Action) -> Callable[[Request], Any]:
        """Return the endpoint of a form; its CSRF token is checked first."""

        async def endpoint(request: Request) -> Response:
            form = await checked_form(request, self.context)
            return await run_in_threadpool(self._respond, lambda views, request: how(views, request, form), request)

        return endpoint

    def _respond(self, how: View, request: Request) -> Response:
        try:
            return how(self, request)
        except RecrawlError as error:
            return self.problem(request, error)

    def _static(self, name: str) -> str:
        return f"/static/{name}?{self._digests[name]}"

    @cached_property
    def _digests(self) -> dict[str, str]:
        """Digest of each static file; part of its URL, so that browsers may cache it."""
        return {file.name: hashlib.blake2b(file.read_bytes(), digest_size=6).hexdigest() for file in STATIC.iterdir()}


def theme(views: Views, request: Request) -> Response:
    """Store the theme in a cookie and redirect back."""
    del views
    chosen, back = request.query_params.get("to", ""), request.query_params.get("back", "/")
    response = RedirectResponse(local_path(back), 303)
    if chosen in _THEMES:
        response.set_cookie("theme", chosen, max_age=10 * 365 * 86400, samesite="lax", httponly=True)
    return response


def _sentence(text: str) -> str:
    """Return an error message as a sentence.

    >>> _sentence("there is no such page here")
    'There is no such page here.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
