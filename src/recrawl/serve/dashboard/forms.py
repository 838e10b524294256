"""What people wrote into a form: read field by field, every mistake noted beside its field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from recrawl.errors import UsageError
from recrawl.repository.times import moment

_LONGEST = 20_000
"""Characters of one field."""
Kind = TypeVar("Kind")


class Errors(dict[str, str]):
    """What is wrong, by field; a field that is right has nothing to say."""

    def __missing__(self, name: str) -> str:
        return ""


class Form:
    """The fields of a form as they were written, and what is wrong with them.

    >>> form = Form({"least": "ten"}, ("least", "path"))
    >>> form.real("least", most=100), form.errors, form["path"]
    (None, {'least': 'this is no number'}, '')
    """

    def __init__(self, given: Mapping[str, object], names: Iterable[str]) -> None:
        self.values = {name: _text(given.get(name)) for name in names}
        self.errors: dict[str, str] = Errors()
        for name, value in self.values.items():
            if len(value) > _LONGEST:
                self.values[name] = value[:_LONGEST]
                self.errors[name] = f"this is longer than {_LONGEST:,} characters"

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def read(self, name: str, how: Callable[[str], Kind], *, empty: bool = False) -> Kind | None:
        """A field as something else; None when it is wrong, or empty where that says nothing."""
        if not empty and not self.values[name].strip():
            return None
        try:
            return how(self.values[name].strip())
        except UsageError as error:
            self.errors[name] = str(error)
            return None

    def moment(self, name: str, now: float) -> float | None:
        """A point in time."""
        return self.read(name, lambda text: moment(text, now))

    def number(self, name: str, *, least: int = 0, most: int) -> int | None:
        """A whole number."""

        def whole(text: str) -> int:
            if not text.lstrip("-").isdigit():
                raise UsageError("this is no whole number")
            if not least <= int(text) <= most:
                raise UsageError(f"this must be from {least:,} to {most:,}")
            return int(text)

        return self.read(name, whole)

    def real(self, name: str, *, least: float = 0.0, most: float) -> float | None:
        """A number."""

        def real(text: str) -> float:
            try:
                value = float(text)
            except ValueError:
                raise UsageError("this is no number") from None
            if not math.isfinite(value) or not least <= value <= most:
                raise UsageError(f"this must be from {least:g} to {most:g}")
            return value

        return self.read(name, real)


def _text(value: object) -> str:
    return value.replace("\0", "") if isinstance(value, str) else ""
