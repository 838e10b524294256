r"""Regular expressions from users, applied to text from the web in linear time.

Python's engine can take exponential time on a hostile text (`(a+)+$`) and cannot be interrupted; RE2 reads every text
once. It has no lookahead, lookbehind or backreferences: patterns that use them are refused.

Patterns have the syntax of Python's `re`. As there, `\w` and `\d` match letters and digits of all scripts; `\b` and
`\B` know ASCII only.
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
"""Escapes, a repetition that RE2 would take literally, the start of a class, its end, and all else."""


class Match(Protocol):
    """A match of a pattern."""

    def start(self) -> int:
        """The index of its first character."""

    def end(self) -> int:
        """The index after its last character."""


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_made",)

    def __init__(self, made: Any) -> None:
        self._made = made

    def search(self, text: str) -> Match | None:
        """The first match, or None."""
        found: Match | None = self._made.search(_plain(text))
        return found

    def erase(self, text: str) -> str:
        """The text with every match replaced by a space."""
        erased: str = self._made.sub(" ", _plain(text))
        return erased


@lru_cache(maxsize=1024)
def compiled(text: str, *, ignore_case: bool = False) -> Pattern:
    r"""Compile a pattern; `UsageError` says what is wrong with it.

    >>> compiled(r"\d+ Uhr").erase("um 12 Uhr")
    'um  '
    >>> compiled("(a+)+$").search("a" * 100_000 + "b") is None
    True
    """
    if len(text) > _LONGEST:
        raise UsageError(f"it has {len(text):,} characters; the limit is {_LONGEST:,}")
    try:
        with warnings.catch_warnings():
            # Python warns of what will change its meaning, such as [[.
            warnings.simplefilter("error")
            re.compile(text)  # its messages fit its own dialect
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
            # Within a class a bracket is literal; a ] after it may close the class.
            inside = not opened.endswith("]")
            made.append("\\" + opened)
        elif closed is not None:
            inside = False
            made.append(whole)
        else:
            made.append(whole)
    return "".join(made)


def _reason(error: Exception) -> str:
    raw = error.args[0]
    message = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(error)
    if "perl operator" in message or "escape sequence" in message:
        return f"lookahead, lookbehind and backreferences are not supported ({message})"
    return message


def _plain(text: str) -> str:
    """The text with what UTF-8 cannot encode replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text
