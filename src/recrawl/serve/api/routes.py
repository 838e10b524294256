"""Routes of the API: how an operation is asked for over HTTP, and answered as JSON."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args, get_origin

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recrawl.errors import UsageError
from recrawl.operations import InvalidValue, Operation, declared
from recrawl.repository.repository import Repository
from recrawl.serve.api.answers import ListAnswer, shape, shaped
from recrawl.serve.context import Context
from recrawl.serve.jobs.job_specs import level_inside
from recrawl.serve.problems import Problem

PREFIX = "/api/v1"
PICTURE, BYTES = "image/png", "application/octet-stream"
"""A picture is sent as bytes to who accepts nothing else, such as clients that know no pictures."""
TOTAL = "X-Total-Count"
_OF_REPOSITORY = tuple(declared(Repository).values())
"""Operations that are methods of `recrawl.Repository`: the route opens it, calls them, and sends what they return."""
_MOST_DIGITS = 20


def route(operation: Operation, context: Context) -> Route:
    """The route of an operation."""
    method, path = operation.method, operation.path
    streams = inspect.iscoroutinefunction(operation.function)
    stored = operation in _OF_REPOSITORY
    files = [name for name, one in operation.parameters.items() if one.about.names_file]

    async def endpoint(request: Request) -> Response:
        given = operation.read(
            {**await _sent(operation, method, request), **_in_path(operation, request.path_params)},
            texts=method in ("GET", "DELETE"),
        )
        for name in files:
            if given.get(name):
                given[name] = level_inside(context.folder, given[name])
        first = (context, request) if streams or "asks" in operation.about else (context,)
        if streams:
            found = await operation.function(*first, **given)
        else:
            function = partial(_asked, operation) if stored else operation.function
            found = await run_in_threadpool(function, *first, **given)
        if not isinstance(found, Response):
            made = as_json(found, operation.status)
            if isinstance(found, ListAnswer) and _is_whole(operation, found, given):
                made.headers[TOTAL] = str(len(found.items))
            return made
        if found.media_type == PICTURE and request.headers.get("accept", "").strip() == BYTES:
            found.headers["content-type"] = BYTES
        return found

    async def checked(request: Request) -> Response:
        try:
            return await endpoint(request)
        except InvalidValue as error:
            raise Problem(400, str(error), field=error.parameter) from error

    return Route(PREFIX + path, checked, methods=[method], name=operation.name)


def _is_whole(operation: Operation, found: ListAnswer[Any], given: Mapping[str, Any]) -> bool:
    """Whether an answer holds all items of its list."""
    limit = operation.parameters.get("limit")
    cut = limit is not None and len(found.items) >= given.get("limit", limit.default)
    return not (cut or found.next or given.get("after") or getattr(found, "unanswered", ()))


def answer_of(operation: Operation) -> Any:
    """The type of an operation's answer; None if it is not JSON."""
    kind = operation.answer
    if operation in _OF_REPOSITORY:
        several: Any = ListAnswer
        return several[shape(get_args(kind)[0])] if get_origin(kind) is list else shape(kind)
    return None if kind is Response else kind


def _asked(operation: Operation, context: Context, **given: Any) -> Any:
    """What a method of the repository answers, as JSON has it."""
    reading = context.dedicated if "slow" in operation.about else context.reading
    with context.writing() if operation.writes else reading() as repository:
        found = shaped(getattr(repository, operation.function.__name__)(**given))
    if operation.writes:
        context.scheduler.wake()
    return ListAnswer(items=found) if isinstance(found, list) else found


def in_path(operation: Operation) -> list[str]:
    """The parameters that stand in the path."""
    return re.findall(r"\{(\w+)\}", operation.http)


def as_json(value: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def bad_cursor(cursor: str) -> UsageError:
    """The error for an invalid `after`."""
    return UsageError(f"invalid cursor '{cursor}'; use `next` of the previous response, or omit it")


def number_after(cursor: str, *, default: int = -1) -> int:
    """The number in a cursor; the default if it is empty.

    >>> number_after(""), number_after("7")
    (-1, 7)
    """
    if not cursor:
        return default
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise bad_cursor(cursor)
    return int(cursor)


def _in_path(operation: Operation, texts: Mapping[str, str]) -> dict[str, Any]:
    """The values in the path: numbers, where the operation wants numbers."""
    numbers = {name for name, given in operation.parameters.items() if given.kind is int}
    return {
        name: int(text) if name in numbers and text.isdecimal() and len(text) < _MOST_DIGITS else text
        for name, text in texts.items()
    }


async def _sent(operation: Operation, method: str, request: Request) -> dict[str, Any]:
    """The values of the query, or of the body where an operation changes something."""
    if method in ("GET", "DELETE"):
        return _query(operation, request)
    if inspect.iscoroutinefunction(operation.function) and "takes" in operation.about:
        return {}
    raw = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not raw and not kind:
        return {}
    if kind != "application/json":
        raise Problem(415, "Send JSON, with Content-Type: application/json.")
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise Problem(400, "The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise Problem(400, "The body must be a JSON object.")
    for name in in_path(operation):
        if name in body:
            raise InvalidValue(name, f"'{name}' stands in the path, not in the body.")
    return body


def _query(operation: Operation, request: Request) -> dict[str, Any]:
    """The values of the query; a list may be given by naming it several times, nothing else."""
    lists = {name for name, given in operation.parameters.items() if given.many}
    found: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name in lists:
            found.setdefault(name, []).append(text)
        elif name in found:
            raise InvalidValue(name, f"Parameter '{name}' is repeated.")
        else:
            found[name] = text
    return found
