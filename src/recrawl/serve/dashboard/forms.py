"""Form fields: parsing, and an error message per field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from recrawl.errors import UsageError
from recrawl.times import moment

_MAX_LENGTH = 20_000
"""Characters per field."""
Value = TypeVar("Value")


class Errors(dict[str, str]):
    """Error messages by field; an empty string for a valid field."""

    def __missing__(self, name: str) -> str:
        return ""


class Form:
    """The fields of a form as submitted, and their errors.

    >>> form = Form({"least": "ten"}, ("least", "path"))
    >>> form.real("least", most=100), form.errors, form["path"]
    (None, {'least': "invalid number 'ten'"}, '')
    """

    def __init__(self, given: Mapping[str, object], names: Iterable[str]) -> None:
        self.values = {name: _text(given.get(name)) for name in names}
        self.errors: dict[str, str] = Errors()
        for name, value in self.values.items():
            if len(value) > _MAX_LENGTH:
                self.values[name] = value[:_MAX_LENGTH]
                self.errors[name] = f"longer than {_MAX_LENGTH:,} characters"

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def read(self, name: str, how: Callable[[str], Value], *, empty: bool = False) -> Value | None:
        """Parse a field with `how`; return None if it is invalid, or empty while `empty` is false."""
        if not empty and not self.values[name].strip():
            return None
        try:
            return how(self.values[name].strip())
        except UsageError as error:
            self.errors[name] = str(error)
            return None

    def moment(self, name: str, now: float) -> float | None:
        """Parse a time."""
        return self.read(name, lambda text: moment(text, now))

    def number(self, name: str, *, least: int = 0, most: int) -> int | None:
        """Parse an integer."""

        def whole(text: str) -> int:
            if not text.lstrip("-").isdigit():
                raise UsageError(f"invalid integer '{text}'")
            if not least <= int(text) <= most:
                raise UsageError(f"must be from {least:,} to {most:,}")
            return int(text)

        return self.read(name, whole)

    def real(self, name: str, *, least: float = 0.0, most: float) -> float | None:
        """Parse a number."""

        def real(text: str) -> float:
            try:
                value = float(text)
            except ValueError:
                raise UsageError(f"invalid number '{text}'") from None
            if not math.isfinite(value) or not least <= value <= most:
                raise UsageError(f"must be from {least:g} to {most:g}")
            return value

        return self.read(name, real)


def _text(value: object) -> str:
    return value.replace("\0", "") if isinstance(value, str) else ""
