"""What every page of the dashboard uses: the repository, the settings, the templates, and how an answer is made."""

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

from recrawl.compare.noise.filters import Noise
from recrawl.errors import RecrawlError
from recrawl.record.storage import Storage
from recrawl.repository.opening import options_of
from recrawl.serve.context import Context
from recrawl.serve.dashboard.page_cache import PageCache
from recrawl.serve.dashboard.render import environment
from recrawl.serve.problems import as_problem
from recrawl.serve.security import checked_form, csrf_token
from recrawl.settings import Settings

STATIC = Path(__file__).with_name("static")
FEED = "/changes.atom"
PLACES = (
    ("/", "Overview"),
    ("/sites", "Sites"),
    ("/changes", "Changes"),
    ("/search", "Search"),
    ("/why", "Why not visited"),
    ("/lab", "Lab"),
    ("/settings", "Settings"),
)
_THEMES = ("light", "dark")

View = Callable[["Views", Request], Response]
Action = Callable[["Views", Request, FormData], Response]


class Views:
    """The context of the service, with the means to make pages."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.jobs = context.jobs
        self._kept = PageCache(context)
        self._templates = environment(context.clock)
        self._templates.globals.update(static=self._static, places=PLACES, feed=FEED)

    def now(self) -> float:
        """Seconds since 1970."""
        return self.context.clock()

    def reading(self) -> AbstractContextManager[Storage]:
        """The repository, for questions."""
        return self.context.reading()

    def settings(self) -> Settings:
        """As they are now."""
        return self.context.settings()

    def noise(self) -> Callable[[str], Noise]:
        """The noise filter of an origin."""
        return options_of(self.settings()).noise

    def show(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page."""
        theme = request.cookies.get("theme", "")
        path = request.url.path
        here = next((place for place, _ in PLACES[1:] if path == place or path.startswith(f"{place}/")), "")
        common = {
            "here": "/" if path == "/" else "/sites" if path.startswith("/pages/") else here,
            "theme": theme if theme in _THEMES else "",
            "back": path + (f"?{request.url.query}" if request.url.query and request.method == "GET" else ""),
            "csrf": csrf_token(request, self.context),
            "repository_name": self._name,
            "notice": "",
        }
        return HTMLResponse(self._templates.get_template(template).render({**common, **values}), status)

    def text(self, template: str, **values: Any) -> str:
        """A document that is not a page."""
        return self._templates.get_template(template).render({"repository_name": self._name, **values})

    @cached_property
    def _name(self) -> str:
        return self.context.folder.resolve().name

    def problem(self, request: Request, error: RecrawlError) -> Response:
        """A page that says what went wrong."""
        problem = as_problem(error)
        head = {400: "That cannot be done", 404: "Not found", 403: "Refused"}.get(
            problem.status, "Something went wrong"
        )
        page = self.show(request, "problem.html", status=problem.status, head=head, text=_sentence(problem.detail))
        page.headers.update(problem.headers)
        return page

    def view(self, how: View) -> Callable[[Request], Any]:
        """An endpoint that shows something; it runs in a thread, so that it may ask the store."""

        async def endpoint(request: Request) -> Response:
            token = csrf_token(request, self.context)
            key = (request.url.path, request.url.query, request.cookies.get("theme", ""))
            stamp = self._kept.stamp()
            kept = self._kept.get(key, stamp, token)
            if kept is not None:
                return kept
            async with self._kept.alone(key):
                stamp = self._kept.stamp()
                kept = self._kept.get(key, stamp, token)  # somebody else may have made it while we waited
                if kept is not None:
                    return kept
                answer: Response = await run_in_threadpool(self._answered, how, request)
                self._kept.put(key, stamp, token, answer)
                return answer

        return endpoint

    def action(self, how: Action) -> Callable[[Request], Any]:
        """An endpoint that changes something: the form is checked to be ours first."""

        async def endpoint(request: Request) -> Response:
            form = await checked_form(request, self.context)
            return await run_in_threadpool(self._answered, lambda views, asked: how(views, asked, form), request)

        return endpoint

    def _answered(self, how: View, request: Request) -> Response:
        try:
            return how(self, request)
        except RecrawlError as error:
            return self.problem(request, error)

    def _static(self, name: str) -> str:
        return f"/static/{name}?{self._marks[name]}"

    @cached_property
    def _marks(self) -> dict[str, str]:
        """A mark for each file that changes when it does, so that browsers may keep it."""
        return {file.name: hashlib.blake2b(file.read_bytes(), digest_size=6).hexdigest() for file in STATIC.iterdir()}


def theme(views: Views, request: Request) -> Response:
    """Light or dark, kept in a cookie; back to where it was asked for."""
    del views
    wanted, back = request.query_params.get("to", ""), request.query_params.get("back", "/")
    inside = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    answer = RedirectResponse(back if inside else "/", 303)
    if wanted in _THEMES:
        answer.set_cookie("theme", wanted, max_age=10 * 365 * 86400, samesite="lax", httponly=True)
    return answer


def _sentence(text: str) -> str:
    """An error as a sentence of its own.

    >>> _sentence("there is no such page here")
    'There is no such page here.'
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
