"""Declaration of request values: one Field per value validates it and generates its JSON Schema."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recrawl.serve.problems import Problem

_MAX_NUMBER = 2**53
_MAX_LENGTH = 4096
_MAX_ITEMS = 200
_KINDS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "strings": {"type": "array", "items": {"type": "string", "maxLength": _MAX_LENGTH}, "maxItems": _MAX_ITEMS},
    "numbers": {"type": "array", "items": {"type": "number"}, "maxItems": _MAX_ITEMS},
    "any": {},
}


@dataclass(frozen=True, slots=True)
class Field:
    """One value: a query parameter, a path parameter, or a member of the body."""

    name: str
    kind: str
    help: str
    default: Any = None
    required: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        made: dict[str, Any] = {**_KINDS[self.kind], "description": self.help}
        if self.kind in ("integer", "number"):
            made["minimum"] = -_MAX_NUMBER if self.least is None else self.least
            made["maximum"] = _MAX_NUMBER if self.most is None else self.most
        if self.kind == "string":
            made["maxLength"] = _MAX_LENGTH
            if self.required and not self.choices:
                made["minLength"] = 1
        if self.choices:
            made["enum"] = list(self.choices)
        if self.default is not None:
            made["default"] = self.default
        return made

    def checked(self, value: Any) -> Any:
        """Return the value if it is valid; raise a Problem that names the field if not."""
        fits = {
            "string": isinstance(value, str),
            "integer": isinstance(value, int) and not isinstance(value, bool),
            "number": isinstance(value, (int, float)) and not isinstance(value, bool),
            "boolean": isinstance(value, bool),
            "strings": isinstance(value, list) and all(isinstance(item, str) for item in value),
            "numbers": isinstance(value, list)
            and all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value),
            "any": True,
        }[self.kind]
        if not fits:
            raise self.problem(f"must be {_article(self.kind)}")
        if self.kind in ("integer", "number"):
            low, high = self.schema()["minimum"], self.schema()["maximum"]
            if not (math.isfinite(value) and low <= value <= high):
                raise self.problem(f"must be from {low:g} to {high:g}")
        if isinstance(value, list) and len(value) > _MAX_ITEMS:
            raise self.problem(f"must have at most {_MAX_ITEMS} entries")
        for text in [value] if isinstance(value, str) else value if isinstance(value, list) else []:
            if isinstance(text, str) and (len(text) > _MAX_LENGTH or "\0" in text or not _encodable(text)):
                raise self.problem(f"must be text of at most {_MAX_LENGTH} characters, without NUL")
        if self.kind == "string" and self.required and not value:
            raise self.problem("must not be empty")
        if self.choices and value not in self.choices:
            raise self.problem(f"must be one of {', '.join(self.choices)}")
        return value

    def read(self, text: str) -> Any:
        """Parse and validate the text of a query or path parameter."""
        try:
            if self.kind == "integer":
                return self.checked(int(text))
            if self.kind == "number":
                return self.checked(float(text))
        except ValueError:
            raise self.problem(f"must be {_article(self.kind)}") from None
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise self.problem("must be true or false")
            return text == "true"
        return self.checked(text)

    def problem(self, what: str) -> Problem:
        """Return the Problem for an invalid value."""
        return Problem(400, f"'{self.name}' {what}.", field=self.name)


def parameters(fields: Iterable[Field], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a query string; unknown names raise a Problem, so that typos are noticed."""
    table = _table(fields, given, "parameter")
    return {name: field.read(given[name]) if name in given else field.default for name, field in table.items()}


def members(fields: Iterable[Field], given: Any) -> dict[str, Any]:
    """Return the values of a JSON body; unknown names raise a Problem."""
    if not isinstance(given, dict):
        raise Problem(400, "The body must be a JSON object.")
    table = _table(fields, given, "member")
    return {name: field.checked(given[name]) if name in given else field.default for name, field in table.items()}


def _table(fields: Iterable[Field], given: Mapping[str, Any], kind: str) -> dict[str, Field]:
    """Return the fields by name; raise a Problem if a given name is unknown or a required one is missing."""
    table = {field.name: field for field in fields}
    for name in sorted(set(given) - set(table)):
        raise Problem(400, f"Unknown {kind} '{name}'.", field=name)
    for name, field in table.items():
        if field.required and name not in given:
            raise Problem(400, f"Missing {kind} '{name}'.", field=name)
    return table


def _article(kind: str) -> str:
    return {"integer": "an integer", "strings": "a list of strings", "numbers": "a list of numbers"}.get(
        kind, f"a {kind}"
    )


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
