"""The ASGI application: routes, middleware and error handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from recrawl.errors import RecrawlError
from recrawl.serve import alert_feed, api, memento, metrics, push, replay
from recrawl.serve.access import security
from recrawl.serve.access.security import Guard
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem, as_problem, problem_response, wants_page


def build(context: Context) -> Starlette:
    """Return the application for one repository."""
    registry, histogram = metrics.new_registry(context)
    pages, error_page = _dashboard(context)

    async def recrawl_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RecrawlError)
        return error_page(request, error) if wants_page(request) else problem_response(as_problem(error))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = "Not found: no such path." if error.status_code == 404 else str(error.detail)
        return await recrawl_error(request, Problem(error.status_code, detail, headers=dict(error.headers or {})))

    return Starlette(
        routes=[
            Route("/healthz", _healthy, methods=["GET"]),
            *security.routes(context),
            *api.routes(context),
            *metrics.routes(registry),
            *memento.routes(context),
            *replay.routes(context),
            *push.routes(context),
            *alert_feed.routes(context),
            *_assistants(context),
            *pages,
        ],
        middleware=[Middleware(metrics.RequestTimer, histogram=histogram), Middleware(Guard, context=context)],
        exception_handlers={RecrawlError: recrawl_error, HTTPException: http_error},
        lifespan=_lifespan,
    )


ErrorPage = Callable[[Request, RecrawlError], Response]


def _dashboard(context: Context) -> tuple[list[BaseRoute], ErrorPage]:
    """Return the dashboard's routes and its error page."""
    from recrawl.serve.dashboard import routes, views  # lazy: loads the templates

    pages = views.Views(context)
    return routes(pages), pages.problem


def _assistants(context: Context) -> list[BaseRoute]:
    """Return the route of the MCP server; none without the extra `mcp`."""
    if find_spec("mcp") is None:
        return []
    from recrawl.mcp_server.server import HttpEndpoint, server  # lazy: needs the extra `mcp`

    return [Route("/mcp", HttpEndpoint(server(context.writing, writing=context.mcp_writes)))]


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    del app
    yield


async def _healthy(request: Request) -> Response:
    del request
    return PlainTextResponse("ok\n")
