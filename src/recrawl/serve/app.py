"""Which address is answered by what."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from recrawl.errors import RecrawlError
from recrawl.serve import api, login, memento, metrics, receivers
from recrawl.serve.alerts import feed
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem, answer, problem_of, wants_page
from recrawl.serve.security import Guard


def build(context: Context) -> Starlette:
    """The application for one repository."""
    registry, histogram = metrics.registry_of(context)
    return Starlette(
        routes=[
            Route("/healthz", _healthy, methods=["GET"]),
            *login.routes(context),
            *api.routes(context),
            *metrics.routes(registry),
            *memento.routes(context),
            *receivers.routes(context),
            *feed.routes(context),
            *_dashboard(context),
        ],
        middleware=[Middleware(metrics.Timed, histogram=histogram), Middleware(Guard, context=context)],
        exception_handlers={RecrawlError: _ours, HTTPException: _theirs},
        lifespan=_lifespan,
    )


def _dashboard(context: Context) -> list[BaseRoute]:
    """The pages; the API does without."""
    if importlib.util.find_spec("recrawl.serve.dashboard") is None:
        return []
    found: list[BaseRoute] = importlib.import_module("recrawl.serve.dashboard").routes(context)
    return found


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    del app
    yield


async def _healthy(request: Request) -> Response:
    del request
    return PlainTextResponse("ok\n")


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, RecrawlError)
    return answer(problem_of(error), as_page=wants_page(request))


async def _theirs(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = Problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))
    return answer(problem, as_page=wants_page(request))
