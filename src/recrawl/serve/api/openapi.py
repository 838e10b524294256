"""The OpenAPI 3.1 document, made from the operations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin

import msgspec

from recrawl.operations import Operation
from recrawl.repository.results.answers import ListAnswer
from recrawl.serve.api.routes import BYTES, PICTURE, PREFIX, TOTAL, answer_of, in_path
from recrawl.version import __version__

_REFERENCE = "#/components/schemas/{name}"
_COUNT = {
    TOTAL: {"description": "How many items the list has, if all are here.", "schema": {"type": "integer"}},
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong and what to do."},
        "field": {"type": "string", "description": "Name of the invalid value."},
    },
}
_DESCRIPTION = """\
A repository of web pages kept up to date: queries, settings, cycles, alerts, jobs.

This is version 1 of the API. It is stable: operations, parameters and fields are added, none is removed or gets another
meaning before version 2, which would stand beside it. Clients ignore fields that they do not know. Pages are named by
their URLs; their numbers (`id`, `page`), and those of sites and versions, are local to the store and no part of this:
operations with the number of a page in their path are deprecated. Every list has `items` and `next`: `next` is `after`
of the next part, null at the end. The answer that holds a whole list says in `X-Total-Count` how many items it has.
"""
_PROBLEMS = {
    "400": "Invalid request.",
    "401": "Access token required.",
    "403": "Cross-site request refused.",
    "404": "Not found.",
    "409": "Another cycle or job is running.",
    "413": "Request too large.",
    "414": "URL too long.",
    "415": "The body must be JSON.",
    "429": "Too many requests.",
    "502": "Another server gave no valid response.",
    "503": "The repository is not available at the moment.",
}


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI document."""
    offered = [operation for operation in operations if operation.http]
    kinds = [kind for kind in map(answer_of, offered) if kind is not None]
    inputs = [operation.input() for operation in offered]
    schemas, parts = msgspec.json.schema_components([*inputs, *kinds], ref_template=_REFERENCE)
    answered = [one for kind in kinds for one in (kind, *get_args(kind)) if isinstance(one, type)]
    for row in filter(is_dataclass, answered):
        parts[row.__name__]["required"] = [item.name for item in fields(row)]  # no answer leaves a field out
    answers = iter(schemas[len(inputs) :])
    paths: dict[str, dict[str, Any]] = {}
    for operation, kind in zip(offered, inputs, strict=True):
        method, path = operation.method, operation.path
        answer = next(answers) if answer_of(operation) is not None else None
        given = parts.pop(kind.__name__)
        paths.setdefault(PREFIX + path, {})[method.lower()] = _described(operation, method, given, answer)
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "recrawl",
            "version": __version__,
            "description": _DESCRIPTION,
            "x-api-version": PREFIX.rpartition("/v")[2],
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM, **parts},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }
    # The names of types are those of Python, which must differ from the names of other classes.
    text = re.sub(r'ListAnswer_(\w+?)(?:Answer)?_(?=")', r"\1List", json.dumps(described))
    named: dict[str, Any] = json.loads(re.sub(r'(?<=["/])(\w+?)Answer(?=")', r"\1", text))
    return named


def _described(
    operation: Operation, method: str, given: dict[str, Any], answer: dict[str, Any] | None
) -> dict[str, Any]:
    properties, required = given["properties"], set(given.get("required", ()))
    placed = in_path(operation)
    named = [name for name in properties if name not in placed]
    asks = method in ("GET", "DELETE")
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [{"name": name, "in": "path", "required": True, "schema": properties[name]} for name in placed]
        + [
            {"name": name, "in": "query", "required": name in required, "schema": _text(properties[name])}
            for name in (named if asks else ())
        ],
        "responses": {str(operation.status): _answer(operation, answer), **_problems()},
    }
    if "numbered" in operation.about:
        made["deprecated"] = True  # a page is named by its URL
    if commands := operation.about.get("commands"):
        made["x-commands"] = [f"recrawl {command}" for command in commands]
    if takes := operation.about.get("takes"):
        made["requestBody"] = {"required": True, "content": {takes: {"schema": {"type": "string", "format": "binary"}}}}
    elif not asks:
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: properties[name] for name in named},
            "required": [name for name in named if name in required],
        }
        made["requestBody"] = {
            "required": bool(schema["required"]),
            "content": {"application/json": {"schema": schema}},
        }
    return made


def _text(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value of the query: nothing is said by leaving it out, never as null."""
    if "anyOf" not in schema:
        return schema
    (kind,) = (kind for kind in schema["anyOf"] if kind != {"type": "null"})
    return {**{name: value for name, value in schema.items() if name not in ("anyOf", "default")}, **kind}


def _answer(operation: Operation, schema: dict[str, Any] | None) -> dict[str, Any]:
    media = operation.about.get("returns", "application/json")
    content = {media: {"schema": {"type": "string"} if schema is None else schema}}
    if media == PICTURE:
        content[BYTES] = {"schema": {"type": "string", "format": "binary"}}
    kind = get_origin(answer_of(operation)) or answer_of(operation)
    lists = isinstance(kind, type) and issubclass(kind, ListAnswer)
    return {"description": operation.summary, "content": content, **({"headers": _COUNT} if lists else {})}


def _problems() -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": text, "content": content} for status, text in _PROBLEMS.items()}
