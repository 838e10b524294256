"""Which address is answered by what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from recrawl.errors import RecrawlError
from recrawl.serve import api, login, memento, metrics
from recrawl.serve.alerts import feed
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem, answer, problem_of, wants_page
from recrawl.serve.push import receivers
from recrawl.serve.security import Guard


def build(context: Context) -> Starlette:
    """The application for one repository."""
    registry, histogram = metrics.registry_of(context)
    pages, page = _dashboard(context)

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, RecrawlError)
        return page(request, error) if wants_page(request) else answer(problem_of(error))

    async def theirs(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return await ours(request, Problem(error.status_code, _said(error), headers=dict(error.headers or {})))

    return Starlette(
        routes=[
            Route("/healthz", _healthy, methods=["GET"]),
            *login.routes(context),
            *api.routes(context),
            *metrics.routes(registry),
            *memento.routes(context),
            *receivers.routes(context),
            *feed.routes(context),
            *pages,
        ],
        middleware=[Middleware(metrics.Timed, histogram=histogram), Middleware(Guard, context=context)],
        exception_handlers={RecrawlError: ours, HTTPException: theirs},
        lifespan=_lifespan,
    )


Shown = Callable[[Request, RecrawlError], Response]


def _dashboard(context: Context) -> tuple[list[BaseRoute], Shown]:
    """The dashboard's routes, and its page for errors."""
    from recrawl.serve.dashboard import routes, views  # lazy: loads the templates

    pages = views.Views(context)
    return routes(pages), pages.problem


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    del app
    yield


async def _healthy(request: Request) -> Response:
    del request
    return PlainTextResponse("ok\n")


def _said(error: HTTPException) -> str:
    """What the framework's own refusals mean."""
    return "There is nothing at this address" if error.status_code == 404 else str(error.detail)
