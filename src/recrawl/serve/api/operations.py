"""Operations of the API: each becomes a route and a part of the OpenAPI document."""

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

from recrawl.errors import UsageError
from recrawl.serve.api.fields import Field, members, parameters
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem

PREFIX = "/api/v1"
LIMIT = Field("limit", "integer", "Maximum number of rows.", default=50, least=1, most=500)
AFTER = Field("after", "string", "Continue after this row: `next` of the previous response.", default="")
_TIMES = frozenset({
    "at", "began", "due", "finished", "found", "held_until", "last_change", "last_try", "last_visit", "missing_since",
    "robots_at", "robots_held", "sent", "since", "sitemap_at", "started", "until", "version_at",
})  # fmt: skip
"""Members that are times if they are floats; sent as ISO 8601."""

Arguments = dict[str, Any]
Answer = Callable[[Context, Arguments], Any]
Handler = Callable[[Context, Request, Arguments], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation."""

    method: str
    path: str
    name: str
    summary: str
    answer: Answer | None = None
    """Takes the context and the validated values; runs in a thread, so it may block on the store."""
    handler: Handler | None = None
    """Replaces `answer` for responses that are not JSON."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None
    status: int = 200
    returns: str = "object"
    """object, rows (a page of a list) or the media type of a handler's response."""
    takes: str = ""
    """Media type of a body that is not JSON; the handler reads it."""
    verbs: tuple[str, ...] = ()
    """Equivalent commands of the command line."""
    about: dict[str, Field] = field(default_factory=dict)
    """Path parameters that are not numbers."""

    @property
    def parts(self) -> tuple[Field, ...]:
        """Path parameters."""
        return tuple(
            self.about.get(name) or Field(name, "integer", f"Number of the {name}.", required=True, least=0, most=2**53)
            for name in re.findall(r"\{(\w+)\}", self.path)
        )


def rows(items: list[Any], following: object = None) -> dict[str, Any]:
    """Return a page of a list, and the cursor of the next page."""
    return {"items": items, "next": None if following is None else str(following)}


def bad_cursor(cursor: str) -> UsageError:
    """Return the error for an invalid `after`."""
    return UsageError(f"invalid cursor '{cursor}'; use `next` of the previous response, or omit it")


def route(operation: Operation, context: Context) -> Route:
    """Return the route of an operation."""

    async def endpoint(request: Request) -> Response:
        values = parameters(operation.query, _query(request))
        for part in operation.parts:
            values[part.name] = part.read(request.path_params[part.name])
        if operation.body is not None:
            values |= members(operation.body, await _body(request))
        if operation.handler is not None:
            return await operation.handler(context, request, values)
        assert operation.answer is not None
        return as_json(await run_in_threadpool(operation.answer, context, values), operation.status)

    return Route(PREFIX + operation.path, endpoint, methods=[operation.method], name=operation.name)


def as_json(value: Any, status: int = 200) -> Response:
    """Return a JSON response: times as ISO 8601, bytes as hexadecimal digits."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def plain(value: Any, name: str = "") -> Any:
    """Convert a value to JSON types."""
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


def _query(request: Request) -> dict[str, str]:
    """Return the query parameters; raise a Problem for repeated ones."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Problem(400, f"Parameter '{name}' is repeated.", field=name)
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
