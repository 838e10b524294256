r"""Regular expressions that people give and that meet text of the web: their cost is in proportion to the text.

Python's own engine can take for ever on a text that somebody made for it (`(a+)+$`), and cannot be interrupted. RE2
reads every text once. What it cannot do is refused: looking ahead or behind, and referring back.

Patterns are written as for Python's `re`. Letters and digits of all scripts are letters and digits, as there; only
`\b` and `\B` know those of ASCII alone.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any, Protocol

import re2

from recrawl.errors import UsageError

_LONGEST = 4096
_MEMORY = 8 << 20
_WORD, _SPACE = r"\p{L}\p{N}_", r"\t-\r\x{1c}-\x{20}\x{85}\p{Z}"
_OUTSIDE = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": f"[{_WORD}]",
    "W": f"[^{_WORD}]",
    "s": f"[{_SPACE}]",
    "S": f"[^{_SPACE}]",
    "Z": r"\z",
}
_INSIDE = {"d": r"\p{Nd}", "D": r"\P{Nd}", "w": _WORD, "s": _SPACE}
_PIECES = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|\{,(\d+)\}|(\[\^?\]?)|(\])|.", re.DOTALL)
"""Escapes, a repetition that RE2 would take as it stands, where a class begins, where it ends, and all else."""


class Match(Protocol):
    """Where a pattern was found."""

    def start(self) -> int:
        """The place of its first character."""

    def end(self) -> int:
        """The place after its last."""


class Pattern:
    """A pattern, ready for use."""

    __slots__ = ("_made",)

    def __init__(self, made: Any) -> None:
        self._made = made

    def search(self, text: str) -> Match | None:
        """The first place where it is found."""
        found: Match | None = self._made.search(_plain(text))
        return found

    def erase(self, text: str) -> str:
        """The text with a space for every match."""
        erased: str = self._made.sub(" ", _plain(text))
        return erased


@lru_cache(maxsize=1024)
def compiled(text: str, *, ignore_case: bool = False) -> Pattern:
    r"""A pattern ready for use; UsageError that says what is wrong with it.

    >>> compiled(r"\d+ Uhr").erase("um 12 Uhr")
    'um  '
    >>> compiled("(a+)+$").search("a" * 100_000 + "b") is None
    True
    """
    if len(text) > _LONGEST:
        raise UsageError(f"it has more than {_LONGEST:,} characters")
    try:
        with warnings.catch_warnings():
            # What Python warns of, such as [[, will mean something else one day.
            warnings.simplefilter("error")
            re.compile(text)  # it knows best what is wrong with a pattern in its own dialect
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise UsageError(str(error)) from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.case_sensitive = not ignore_case
    try:
        return Pattern(re2.compile(_translated(text), options))
    except (re2.error, UnicodeEncodeError) as error:
        raise UsageError(_reason(error)) from None


def _translated(text: str) -> str:
    r"""The pattern in RE2's dialect.

    >>> print(_translated(r"\d[\d,]{,3}[]\w]\Z"))
    \p{Nd}[\p{Nd},]{0,3}[\]\p{L}\p{N}_]\z
    """
    made, inside = [], False
    for piece in _PIECES.finditer(text):
        short, long, escaped, repeated, opened, closed = piece.groups()
        whole = piece[0]
        if short or long:
            made.append(f"\\x{{{short or long}}}")
        elif escaped is not None:
            made.append((_INSIDE if inside else _OUTSIDE).get(escaped, whole))
        elif repeated is not None and not inside:
            made.append(f"{{0,{repeated}}}")
        elif opened is not None and not inside:
            inside = True
            made.append(opened.replace("]", r"\]"))
        elif opened is not None:
            # A bracket within a class is a sign like others; what came with it may be the end of the class.
            inside = not opened.endswith("]")
            made.append("\\" + opened)
        elif closed is not None:
            inside = False
            made.append(whole)
        else:
            made.append(whole)
    return "".join(made)


def _reason(error: Exception) -> str:
    told = error.args[0]
    said = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(error)
    if "perl operator" in said or "escape sequence" in said:
        return f"looking ahead or behind and referring back cannot be done in bounded time ({said})"
    return said


def _plain(text: str) -> str:
    """Text that can be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text
