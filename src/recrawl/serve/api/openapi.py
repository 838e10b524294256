"""The OpenAPI 3.1 document, generated from the operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recrawl.serve.api.operations import PREFIX, Operation
from recrawl.version import __version__

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
_ROWS = {
    "type": "object",
    "required": ["items", "next"],
    "properties": {
        "items": {"type": "array"},
        "next": {"type": ["string", "null"], "description": "Value of `after` for the next rows; null at the end."},
    },
}
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
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "recrawl",
            "version": __version__,
            "description": "A repository of web pages kept up to date: queries, settings, cycles, alerts, jobs.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM, "Rows": _ROWS},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _described(operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            {"name": part.name, "in": "path", "required": True, "schema": part.schema()} for part in operation.parts
        ]
        + [
            {"name": part.name, "in": "query", "required": part.required, "schema": part.schema()}
            for part in operation.query
        ],
        "responses": {str(operation.status): _answer(operation), **_problems()},
    }
    if operation.verbs:
        made["x-commands"] = [f"recrawl {verb}" for verb in operation.verbs]
    if operation.takes:
        binary = {"schema": {"type": "string", "format": "binary"}}
        made["requestBody"] = {"required": True, "content": {operation.takes: binary}}
    if operation.body is not None:
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {part.name: part.schema() for part in operation.body},
            "required": [part.name for part in operation.body if part.required],
        }
        needed = any(part.required for part in operation.body)
        made["requestBody"] = {"required": needed, "content": {"application/json": {"schema": schema}}}
    return made


def _answer(operation: Operation) -> dict[str, Any]:
    schemas: dict[str, Any] = {"object": {"type": "object"}, "rows": {"$ref": "#/components/schemas/Rows"}}
    if operation.returns in schemas:
        content: dict[str, Any] = {"application/json": {"schema": schemas[operation.returns]}}
    else:
        content = {operation.returns: {"schema": {"type": "string"}}}
    return {"description": operation.summary, "content": content}


def _problems() -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": text, "content": content} for status, text in _PROBLEMS.items()}
