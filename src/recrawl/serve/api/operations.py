"""The one table of what the API can do: each row becomes a route, and a part of the OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recrawl.serve.api.fields import Field, members, parameters
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem

PREFIX = "/api/v1"
LIMIT = Field("limit", "integer", "Most rows.", default=50, least=1, most=500)
AFTER = Field("after", "string", "Where to go on: `next` of the rows before.", default="")
_TIMES = frozenset({
    "at", "began", "due", "finished", "found", "held_until", "last_change", "last_try", "last_visit", "missing_since",
    "robots_at", "robots_held", "sent", "since", "sitemap_at", "started", "until", "version_at",
})  # fmt: skip
"""Members that are points in time, where they are not whole numbers."""

Arguments = dict[str, Any]
Answer = Callable[[Context, Arguments], Any]
Handler = Callable[[Context, Request, Arguments], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that the API can do."""

    method: str
    path: str
    name: str
    summary: str
    answer: Answer | None = None
    """Gets the context and the checked values; runs in a thread, so it may wait for the store."""
    handler: Handler | None = None
    """Instead of `answer`: for what is not an answer in JSON."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None
    status: int = 200
    returns: str = "object"
    """object, rows (a page of a list) or the media type of what a handler sends."""
    takes: str = ""
    """The media type of a body that is not JSON; its handler reads it."""
    verbs: tuple[str, ...] = ()
    """The commands that do the same."""
    about: dict[str, Field] = field(default_factory=dict)
    """The parts of the path that are not numbers."""

    @property
    def parts(self) -> tuple[Field, ...]:
        """What the path itself says."""
        names = re.findall(r"\{(\w+)\}", self.path)
        number = "Its number."
        return tuple(
            self.about.get(name) or Field(name, "integer", number, required=True, least=0, most=2**53) for name in names
        )


def rows(items: list[Any], following: object = None) -> dict[str, Any]:
    """A page of a list, and where it goes on."""
    return {"items": items, "next": None if following is None else str(following)}


def route(operation: Operation, context: Context) -> Route:
    """An operation as a route."""

    async def endpoint(request: Request) -> Response:
        values = parameters(operation.query, _once(request))
        for part in operation.parts:
            values[part.name] = part.read(request.path_params[part.name])
        if operation.body is not None:
            values |= members(operation.body, await _body(request))
        if operation.handler is not None:
            return await operation.handler(context, request, values)
        assert operation.answer is not None
        told = await run_in_threadpool(operation.answer, context, values)
        return as_json(told, operation.status)

    return Route(PREFIX + operation.path, endpoint, methods=[operation.method], name=operation.name)


def as_json(value: Any, status: int = 200) -> Response:
    """A value as an answer: times as ISO 8601, bytes as hexadecimal digits."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def plain(value: Any, name: str = "") -> Any:
    """A value as JSON knows it."""
    if isinstance(value, dict):
        return {key: plain(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        if name in _TIMES:
            return _time(value)
        return value if abs(value) < float("inf") else None
    return value


def _time(at: float) -> str | None:
    if not 0 < at < 253402300800:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _once(request: Request) -> dict[str, str]:
    """The query, where nothing may be said twice."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Problem(400, f"'{name}' is given twice.", field=name)
        given[name] = value
    return given


async def _body(request: Request) -> Any:
    raw = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not raw and not kind:
        return {}
    if kind != "application/json":
        raise Problem(415, "Send JSON, with Content-Type: application/json.")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise Problem(400, "The body is not valid JSON.") from None
