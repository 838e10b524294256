"""Form fields: parsing, an error message per field, and which of them were edited.

A field that is missing from a request, one that is empty, 0 and false are four different things. A form that changes
what is stored says in its hidden field `shown` what it was filled with. Only fields that differ from that were edited,
and only those are saved: what else was changed meanwhile stays, and so does a value that a field shows rounded.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, TypeVar

from recrawl.errors import UsageError
from recrawl.operations import Given
from recrawl.times import moment

SHOWN = "shown"
_MAX_LENGTH = 20_000
"""Characters per field."""
_LARGEST = 10**15
_LINE_BREAKS = re.compile(r"[\r\n]+")
_INTEGER = re.compile(r"-?[0-9]{1,30}")
_SWITCH = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
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

    def __init__(
        self,
        given: Mapping[str, object],
        names: Iterable[str],
        stored: Mapping[str, str] | None = None,
        *,
        lists: Container[str] = (),
    ) -> None:
        """`stored` are the texts of what is stored now: what the form was filled with, if it does not say that.

        `lists` are the fields with a value per line.
        """
        self.values = {name: _text(given.get(name)) for name in names}
        self.shown = dict.fromkeys(self.values, "") | dict(stored or {}) | _shown(given.get(SHOWN))
        self.edited = frozenset(
            name
            for name, value in self.values.items()
            if isinstance(given.get(name), str) and not _is_same(value, self.shown[name], is_list=name in lists)
        )
        self.errors: dict[str, str] = Errors()
        for name, value in self.values.items():
            if name not in given and stored is not None:
                self.values[name] = self.shown[name]
            elif len(value) > _MAX_LENGTH and name in self.edited:
                self.values[name] = value[:_MAX_LENGTH]
                self.errors[name] = f"longer than {_MAX_LENGTH:,} characters"

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def as_shown(self) -> str:
        """Return the value of the hidden field that says what the form was filled with."""
        return json.dumps(self.shown, ensure_ascii=False)

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
            if not _INTEGER.fullmatch(text):
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

    def switch(self, name: str) -> bool | None:
        """Parse a choice between yes and no."""

        def switch(text: str) -> bool:
            if text.lower() not in _SWITCH:
                raise UsageError(f"invalid value '{text}'; use true or false")
            return _SWITCH[text.lower()]

        return self.read(name, switch)

    def given(self, given: Given) -> Any:
        """Parse the field of a parameter, by its declared type and range; None if it is invalid, or an empty number."""
        name, about = given.name, given.about
        if given.many:
            return self.lines(name)
        if given.kind is bool:
            return bool(self.switch(name))
        if given.kind is int:
            return self.number(name, least=int(about.least or 0), most=int(about.most or _LARGEST))
        if given.kind is float:
            return self.real(name, least=about.least or 0.0, most=about.most or _LARGEST)
        return self.values[name].strip()

    def lines(self, name: str) -> tuple[str, ...]:
        """Return the lines of a field that are not empty."""
        return lines(self.values[name])

    def whole_lines(self, name: str) -> tuple[str, ...]:
        """Return the lines of a field that are not empty, with the spaces that they begin and end with."""
        return tuple(line for line in _LINE_BREAKS.split(self.values[name]) if line.strip())


def as_field(given: Given, value: str) -> dict[str, Any]:
    """A parameter as a field of a form."""
    about = given.about
    kind = "list" if given.many else "flag" if given.kind is bool else "choice" if about.choices else "text"
    return {
        "name": given.name,
        "label": about.label or given.name.replace("_", " ").capitalize(),
        "help": about.help,
        "kind": "number" if given.kind in (int, float) else kind,
        "value": value,
        "choices": [(choice, choice or "the setting") for choice in about.choices],
        "suggested": (),
    }


def lines(text: str) -> tuple[str, ...]:
    """Split text into its non-empty lines."""
    return tuple(line.strip() for line in _LINE_BREAKS.split(text) if line.strip())


def value_text(value: object) -> str:
    """Return a value as the text of a field that can be parsed again: every digit of a number, a list by lines.

    >>> value_text(("a, b", "c")), value_text(True), value_text(0), value_text(123456789.5), value_text(None)
    ('a, b\\nc', 'true', '0', '123456789.5', '')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "\n".join(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return "" if value is None else f"{value}"


def _shown(value: object) -> dict[str, str]:
    try:
        found = json.loads(value) if isinstance(value, str) else {}
    except (ValueError, RecursionError):
        return {}
    return {name: text for name, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}


def _is_same(value: str, shown: str, *, is_list: bool) -> bool:
    """Whether a browser sends this value for a field that was filled so: it changes line breaks."""
    if is_list:
        return lines(value) == lines(shown)
    return _LINE_BREAKS.sub("", value).strip() == _LINE_BREAKS.sub("", shown).strip()


def _text(value: object) -> str:
    return value.replace("\0", "") if isinstance(value, str) else ""
