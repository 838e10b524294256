"""JMESPath filters, for JSON: `jmespath:items[].views` in a list of selectors removes these values.

JMESPath gives values, not their places. So each text and number of the document is replaced by an equal one that occurs
once: what the expression returns is then found again by identity. true, false and null cannot be told apart this way
and stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from recrawl.errors import UsageError

# JMESPath compares the names of types.
_Text = type("str", (str,), {})
_Whole = type("int", (int,), {})
_Decimal = type("float", (float,), {})


@lru_cache(maxsize=256)
def compiled_jmespath(expression: str) -> ParsedResult:
    """The expression; `UsageError` for an invalid one."""
    try:
        return jmespath.compile(expression)
    except JMESPathError:
        raise UsageError(f"invalid JMESPath {expression!r}; use one such as items[].views") from None


def json_leaves(value: Any, text: str, expressions: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The values of a JSON document that no expression selects, each with its keys; lists add none.

    >>> list(json_leaves({"a": [1, {"b": "x"}]}, '{"a": [1, {"b": "x"}]}', ["a[].b"]))
    [('a', 1)]
    """
    removed: set[int] = set()
    chosen = list(expressions)
    if chosen:
        value = _unique(json.loads(text, parse_int=_Whole, parse_float=_Decimal))
        for expression in chosen:
            with suppress(JMESPathError, UsageError):
                result = compiled_jmespath(expression).search(value)
                removed.update(id(leaf) for _, leaf in _leaves(result))
    yield from ((path, leaf) for path, leaf in _leaves(value) if id(leaf) not in removed or not _is_own(leaf))


def _is_own(leaf: Any) -> bool:
    return isinstance(leaf, (_Text, _Whole, _Decimal))


def _unique(value: Any) -> Any:
    """The same document, in which every text is an object of its own."""
    if isinstance(value, dict):
        return {name: _unique(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_unique(item) for item in value]
    return _Text(value) if type(value) is str else value


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Texts, numbers, true, false and null, in the order of the document."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(f"{path}.{name}" if path else str(name), it) for name, it in reversed(item.items())]
        elif isinstance(item, list):
            waiting += [(path, it) for it in reversed(item)]
        else:
            yield path, item
