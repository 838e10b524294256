"""Routes of the API: how an operation is asked for over HTTP, and answered as JSON."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import Any, get_args, get_origin

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recrawl.operations import InvalidValue, Operation
from recrawl.parameters import PageNumber
from recrawl.repository.reports import pages
from recrawl.repository.results import answers
from recrawl.repository.results.answers import BaseAnswer, ListAnswer, shape, shaped
from recrawl.serve.context import Context
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.jobs.job_specs import level_inside
from recrawl.serve.problems import Problem

PREFIX = "/api/v1"
PICTURE, BYTES = "image/png", "application/octet-stream"
"""A picture is sent as bytes to who accepts nothing else, such as clients that know no pictures."""
TOTAL = "X-Total-Count"
_BY_NUMBER = {"lookup": "page"} | {f"page_{name}": name for name in (
    "versions", "visits", "text", "source", "diff", "screenshot", "visual_diff", "why", "predict"
)}  # fmt: skip
"""Operations on a page that is named by its URL, and what they are called where it is named by its number."""
_MOST_DIGITS = 20


def route(operation: Operation, context: Context) -> Route:
    """The route of an operation."""
    method, path = operation.method, operation.path
    streams = inspect.iscoroutinefunction(inspect.unwrap(operation.function))
    stored = of_repository(operation)
    files = [name for name, one in operation.parameters.items() if one.about.names_file]

    async def endpoint(request: Request) -> Response:
        given = operation.read(
            {**await _sent(operation, method, request), **_in_path(operation, request.path_params)},
            texts=method in ("GET", "DELETE"),
        )
        for name in files:
            if given.get(name):
                given[name] = level_inside(context.folder, given[name])
        if "numbered" in operation.about:
            given["url"] = await run_in_threadpool(_url_of, context, given.pop("page"))
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


def of_repository(operation: Operation) -> bool:
    """Whether it is a method of `recrawl.Repository`: the route opens it, calls it, and sends what it returns."""
    return next(iter(inspect.signature(operation.function).parameters), "") == "self"


def by_number(operation: Operation) -> Operation:
    """The same operation on a page that is named by its number in this store, which is no lasting name."""
    function = operation.function
    signature = inspect.signature(function)
    named = [it.replace(name="page", annotation=PageNumber) if it.name == "url" else it
             for it in signature.parameters.values()]  # fmt: skip

    @wraps(function)
    def same(*args: Any, **given: Any) -> Any:
        return function(*args, **given)

    same.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    return replace(
        operation,
        name=_BY_NUMBER[operation.name],
        http=operation.http.replace("/page", "/pages/{page}"),
        function=same,
        about={**operation.about, "numbered": True},
    )


def answer_of(operation: Operation) -> Any:
    """The type of an operation's answer; None if it is not JSON."""
    kind: Any = operation.answer
    if not of_repository(operation):
        return None if kind is Response else kind
    several: Any = ListAnswer
    if get_origin(kind) is not list:
        return _answer_type(operation, kind)
    item = _answer_type(operation, get_args(kind)[0])
    return item if operation.single else several[item]


def _answer_type(operation: Operation, kind: Any) -> Any:
    """The type of the JSON of a result."""
    named = operation.about.get("answer")
    if named:
        return getattr(answers, named)
    kept = issubclass(get_origin(kind) or kind, BaseAnswer)
    return kind if kept else shape(kind)


def _asked(operation: Operation, context: Context, **given: Any) -> Any:
    """What a method of the repository answers, as JSON has it."""
    if "process" in operation.about:
        return answers.made(answer_of(operation), subprocess_queries.explained(context, operation, **given))
    reading = context.dedicated if "slow" in operation.about else context.reading
    with context.writing() if operation.writes else reading() as repository:
        method: Callable[..., Any] = getattr(repository, operation.function.__name__)
        part = partial(operation.part_of_list, repository) if operation.part else None
        found = _as_answer(operation, operation.call(part or method, given))
    if operation.writes:
        context.scheduler.wake()
    return found


def _as_answer(operation: Operation, found: Any) -> Any:
    """A result as its JSON has it."""
    if isinstance(found, BaseAnswer):
        return found
    if isinstance(found, list):
        return ListAnswer(items=[_as_answer(operation, item) for item in found])
    named = operation.about.get("answer")
    return answers.made(getattr(answers, named), found.as_dict()) if named else shaped(found)


def _url_of(context: Context, number: int) -> str:
    """The URL of a page."""
    with context.reading() as repository:
        return str(pages.page(repository, number)["url"])


def in_path(operation: Operation) -> list[str]:
    """The parameters that stand in the path."""
    return re.findall(r"\{(\w+)\}", operation.http)


def as_json(value: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


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
