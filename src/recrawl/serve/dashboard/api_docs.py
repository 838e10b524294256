"""The documentation of the HTTP API at /api/docs, rendered from its OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.serve.api import OPERATIONS
from recrawl.serve.api.openapi import document
from recrawl.serve.api.operations import PREFIX
from recrawl.serve.dashboard.views import Views

_JSON = "application/json"
_EXAMPLES: dict[str, Any] = {"string": "text", "integer": 1, "number": 0.1, "boolean": True, "array": []}


def api_docs(views: Views, request: Request) -> Response:
    """Show every operation with its parameters, its body, an example and its commands."""
    described = document(OPERATIONS)
    root = str(request.base_url).rstrip("/")
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described["paths"].items():
        name = path.removeprefix(f"{PREFIX}/").partition("/")[0]
        groups.setdefault(name, []).extend(
            _operation(root, path, method, operation) for method, operation in methods.items()
        )
    problems = described["components"]["schemas"]["Problem"]["properties"]
    return views.show(
        request, "api_docs.html", groups=sorted(groups.items()), info=described["info"], root=root, problem=problems
    )


def _operation(root: str, path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get(_JSON, {}).get("schema", {})
    needed = set(schema.get("required", ()))
    status, answer = next((code, value) for code, value in operation["responses"].items() if code.startswith("2"))
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation["summary"],
        "parameters": [
            _value(row["name"], row["in"], row["schema"], row["required"]) for row in operation["parameters"]
        ],
        "body": [_value(name, "body", part, name in needed) for name, part in schema.get("properties", {}).items()],
        "takes": next((kind for kind in content if kind != _JSON), ""),
        "status": status,
        "returns": _returned(answer),
        "commands": operation.get("x-commands", []),
        "example": _example(root, path, method, operation, schema),
    }


def _value(name: str, place: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    """Return one parameter or member of a body for the table."""
    limits = [f"{word} {schema[key]:g}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    kind = schema.get("type", "any") if schema.get("type") != "array" else f"list of {schema['items']['type']}s"
    return {
        "name": name,
        "place": place,
        "kind": " ".join([kind, *(limits if abs(schema.get("maximum", 1e15)) < 1e15 else [])]),
        "choices": [choice for choice in schema.get("enum", ()) if choice],
        "default": json.dumps(schema["default"]) if schema.get("default") not in (None, "") else "",
        "required": required,
        "help": schema.get("description", ""),
    }


def _returned(answer: dict[str, Any]) -> str:
    """Return what a response contains.

    >>> _returned({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Rows"}}}})
    'JSON: a page of rows (items, next)'
    """
    kind, value = next(iter(answer["content"].items()))
    if kind != _JSON:
        return str(kind)
    return "JSON: a page of rows (items, next)" if "$ref" in value["schema"] else "JSON: an object"


def _example(root: str, path: str, method: str, operation: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return a call by curl, with the required values."""
    for row in operation["parameters"]:
        if row["in"] == "path":
            path = path.replace(f"{{{row['name']}}}", str((row["schema"].get("enum") or ["1"])[0]))
    query = "&".join(
        f"{row['name']}=VALUE" for row in operation["parameters"] if row["in"] == "query" and row["required"]
    )
    url = f"{root}{path}{'?' + query if query else ''}"
    words = ["curl", *([] if method == "get" else ["-X", method.upper()]), f"'{url}'" if query else url]
    if schema:
        parts = schema["properties"]
        body = {name: _EXAMPLES.get(parts[name].get("type", ""), "value") for name in schema["required"]}
        words += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(body)}'"]
    return " ".join(words)
