"""Errors as HTTP responses: problem documents (RFC 9457) for programs, an HTML page for browsers."""

from __future__ import annotations

import html
import http
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, RecrawlError, RepositoryBusy, RepositoryError, UsageError
from recrawl.repository.outgoing import NotSent

_PROGRAM_PATHS = ("/api/v1/", "/mcp", "/metrics", "/timegate/", "/timemap/", "/memento/", "/indexnow", "/websub/")


class Problem(RecrawlError):
    """An HTTP error response; raise it anywhere below a route."""

    def __init__(self, status: int, detail: str, *, headers: dict[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.members = members
        """Extra members of the problem document, such as `field`: the name of the invalid field."""


def as_problem(error: RecrawlError) -> Problem:
    """Map an error to an HTTP problem."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, NotKnown):
        return Problem(404, str(error))
    if isinstance(error, NotSent):
        return Problem(502, str(error))
    if isinstance(error, UsageError):
        return Problem(400, str(error))
    if isinstance(error, RepositoryBusy):
        return Problem(409, str(error))
    if isinstance(error, RepositoryError):
        return Problem(503, str(error))
    return Problem(500, str(error))


def problem_response(problem: Problem, *, as_page: bool = False) -> Response:
    """Return a problem as a response: JSON, or HTML with `as_page`."""
    title = http.HTTPStatus(problem.status).phrase
    if as_page:
        detail = html.escape(problem.detail)
        head = f'<meta charset="utf-8"><title>{title} · recrawl</title>'
        style = '<link rel="stylesheet" href="/static/recrawl.css">'
        body = f"<main><h1>{title}</h1><p>{detail}</p></main>"
        text = f'<!doctype html><html lang="en"><head>{head}{style}</head><body>{body}</body>'
        return Response(text, problem.status, problem.headers, media_type="text/html")
    document = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail}
    encoded = json.dumps({**document, **problem.members}, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return Response(encoded, problem.status, problem.headers, media_type="application/problem+json")


def wants_page(request: Request) -> bool:
    """Return whether the client expects an HTML page."""
    programmatic = request.url.path.startswith(_PROGRAM_PATHS)
    return not programmatic and "text/html" in request.headers.get("accept", "")
