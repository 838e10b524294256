"""The documentation of the HTTP API at /api/docs, rendered from its OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.serve.api import OPERATIONS
from recrawl.serve.api.openapi import document
from recrawl.serve.api.routes import PREFIX
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
            _operation(root, path, method, operation, described["components"]["schemas"])
            for method, operation in methods.items()
        )
    problems = described["components"]["schemas"]["Problem"]["properties"]
    return views.show(
        request, "api_docs.html", groups=sorted(groups.items()), info=described["info"], root=root, problem=problems
    )


def _operation(root: str, path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
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
        **_answer(answer, schemas),
        "commands": operation.get("x-commands", []),
        "example": _example(root, path, method, operation, schema),
    }


def _value(name: str, place: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    """Return one parameter, member of a body, or field of an answer for the table."""
    schema = _without_null(schema)
    limits = [f"{word} {schema[key]:g}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    kind = _kind(schema)
    return {
        "name": name,
        "place": place,
        "kind": " ".join([kind, *(limits if abs(schema.get("maximum", 1e15)) < 1e15 else [])]),
        "choices": [choice for choice in schema.get("enum", ()) if choice],
        "default": json.dumps(schema["default"]) if schema.get("default") not in (None, "") else "",
        "required": required,
        "help": schema.get("description", ""),
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that is there."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    return {**schema, **kinds[0]} if len(kinds) == 1 else schema


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a value.

    >>> _kind({"type": "array", "items": {"$ref": "#/components/schemas/Page"}})
    'list of Page'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array":
        inner = schema["items"]
        return f"list of {_kind(inner)}{'' if '$ref' in inner else 's'}"
    return "time" if schema.get("format") == "date-time" else str(schema.get("type", "any"))


def _answer(answer: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return what a response contains, and the fields of the object, or of each item of the list, that it is."""
    kind, value = next(iter(answer["content"].items()))
    if kind != _JSON:
        return {"returns": str(kind), "fields": []}
    name = value["schema"].get("$ref", "").rpartition("/")[2]
    fields = schemas.get(name, {}).get("properties", {})
    returns = f"JSON, {name}" if name else "JSON"
    if "items" in fields:
        name = fields["items"]["items"]["$ref"].rpartition("/")[2]
        returns, fields = f"JSON, a list of {name} (items, next)", schemas[name]["properties"]
    return {"returns": returns, "fields": [_value(key, "answer", part, required=False) for key, part in fields.items()]}


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
        body = {name: _EXAMPLES.get(_kind(_without_null(parts[name])), "value") for name in schema["required"]}
        words += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(body)}'"]
    return " ".join(words)
