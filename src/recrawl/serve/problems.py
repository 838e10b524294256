"""What goes wrong, as clients are told: problem documents (RFC 9457) for programs, a plain page for people."""

from __future__ import annotations

import html
import http
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, RecrawlError, RepositoryBusy, RepositoryError, UsageError

_FOR_PROGRAMS = ("/api/", "/metrics", "/timegate/", "/timemap/", "/memento/", "/indexnow", "/websub/")


class Problem(RecrawlError):
    """An answer that is a refusal; raise it anywhere below a route."""

    def __init__(self, status: int, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.more = more
        """Further members of the problem document, such as `field` for the one that is wrong."""


def problem_of(error: RecrawlError) -> Problem:
    """What an error of ours means over HTTP."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, NotKnown):
        return Problem(404, str(error))
    if isinstance(error, UsageError):
        return Problem(400, str(error))
    if isinstance(error, RepositoryBusy):
        return Problem(409, str(error))
    if isinstance(error, RepositoryError):
        return Problem(503, str(error))
    return Problem(500, str(error))


def answer(problem: Problem, *, as_page: bool = False) -> Response:
    """The response; a page for browsers that asked for one."""
    title = http.HTTPStatus(problem.status).phrase
    if as_page:
        said = html.escape(problem.detail)
        head = (
            f'<meta charset="utf-8"><title>{title} · recrawl</title><link rel="stylesheet" href="/static/recrawl.css">'
        )
        text = (
            f'<!doctype html><html lang="en"><head>{head}</head><body><main><h1>{title}</h1><p>{said}</p></main></body>'
        )
        return Response(text, problem.status, problem.headers, media_type="text/html")
    document = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail}
    body = json.dumps({**document, **problem.more}, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return Response(body, problem.status, problem.headers, media_type="application/problem+json")


def wants_page(request: Request) -> bool:
    """Whether a person with a browser asks."""
    api = request.url.path.startswith(_FOR_PROGRAMS)
    return not api and "text/html" in request.headers.get("accept", "")
