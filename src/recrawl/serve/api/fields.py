"""What a client may send, each value described once: it is checked by this, and the OpenAPI document is made of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from recrawl.serve.problems import Problem

_LARGEST = 2**53
_LONGEST = 4096
_MOST_ITEMS = 200
_KINDS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "strings": {"type": "array", "items": {"type": "string", "maxLength": _LONGEST}, "maxItems": _MOST_ITEMS},
    "numbers": {"type": "array", "items": {"type": "number"}, "maxItems": _MOST_ITEMS},
    "any": {},
}


@dataclass(frozen=True, slots=True)
class Field:
    """One value: a parameter of the query, a part of the path, or a member of the body."""

    name: str
    kind: str
    help: str
    default: Any = None
    required: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        made: dict[str, Any] = {**_KINDS[self.kind], "description": self.help}
        if self.kind in ("integer", "number"):
            made["minimum"] = -_LARGEST if self.least is None else self.least
            made["maximum"] = _LARGEST if self.most is None else self.most
        if self.kind == "string":
            made["maxLength"] = _LONGEST
            if self.required and not self.choices:
                made["minLength"] = 1
        if self.choices:
            made["enum"] = list(self.choices)
        if self.default is not None:
            made["default"] = self.default
        return made

    def checked(self, value: Any) -> Any:
        """The value, when it is of its kind; a problem that names the field when not."""
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
            raise self.problem(f"is {_article(self.kind)}")
        if self.kind in ("integer", "number"):
            low, high = self.schema()["minimum"], self.schema()["maximum"]
            if not (math.isfinite(value) and low <= value <= high):
                raise self.problem(f"is from {low:g} to {high:g}")
        if isinstance(value, list) and len(value) > _MOST_ITEMS:
            raise self.problem(f"has at most {_MOST_ITEMS} entries")
        for text in [value] if isinstance(value, str) else value if isinstance(value, list) else []:
            if isinstance(text, str) and (len(text) > _LONGEST or "\0" in text or not _encodable(text)):
                raise self.problem(f"is text of at most {_LONGEST} characters, without NUL")
        if self.kind == "string" and self.required and not value:
            raise self.problem("cannot be empty")
        if self.choices and value not in self.choices:
            raise self.problem(f"is one of {', '.join(self.choices)}")
        return value

    def read(self, text: str) -> Any:
        """The value of a parameter, which is always written as text."""
        try:
            if self.kind == "integer":
                return self.checked(int(text))
            if self.kind == "number":
                return self.checked(float(text))
        except ValueError:
            raise self.problem(f"is {_article(self.kind)}") from None
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise self.problem("is true or false")
            return text == "true"
        return self.checked(text)

    def problem(self, what: str) -> Problem:
        """What is wrong with it."""
        return Problem(400, f"'{self.name}' {what}.", field=self.name)


def parameters(fields: Iterable[Field], given: Mapping[str, str]) -> dict[str, Any]:
    """Values of a query; unknown names are refused, so that a slip does not go unnoticed."""
    table = {field.name: field for field in fields}
    unknown = sorted(set(given) - set(table))
    if unknown:
        raise Problem(400, f"There is no parameter '{unknown[0]}' here.", field=unknown[0])
    missing = [name for name, field in table.items() if field.required and name not in given]
    if missing:
        raise Problem(400, f"The parameter '{missing[0]}' is needed.", field=missing[0])
    return {name: field.read(given[name]) if name in given else field.default for name, field in table.items()}


def members(fields: Iterable[Field], given: Any) -> dict[str, Any]:
    """Members of a JSON body."""
    table = {field.name: field for field in fields}
    if not isinstance(given, dict):
        raise Problem(400, "The body is a JSON object.")
    unknown = sorted(set(given) - set(table))
    if unknown:
        raise Problem(400, f"There is no member '{unknown[0]}' here.", field=unknown[0])
    missing = [name for name, field in table.items() if field.required and name not in given]
    if missing:
        raise Problem(400, f"The member '{missing[0]}' is needed.", field=missing[0])
    return {name: field.checked(given[name]) if name in given else field.default for name, field in table.items()}


def _article(kind: str) -> str:
    return {"integer": "an integer", "strings": "a list of texts", "numbers": "a list of numbers"}.get(
        kind, f"a {kind}"
    )


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
