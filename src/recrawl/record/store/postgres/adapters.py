"""Values that PostgreSQL or psycopg treat in another way than SQLite.

Text in PostgreSQL holds no NUL: it becomes U+FFFD. Sums of integers are `numeric` there: they become int again, and
quotients float.
"""

from __future__ import annotations

from typing import Any

from psycopg.abc import AdaptContext
from psycopg.types.numeric import NumericBinaryLoader, NumericLoader
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown

_REPLACEMENT = "\ufffd"


def clean(text: str) -> str:
    """A text that PostgreSQL can hold.

    >>> clean("a\\0b")
    'a\\ufffdb'
    """
    return text.replace("\0", _REPLACEMENT) if "\0" in text else text


class _Text(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(clean(obj))


class _BinaryText(StrBinaryDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(clean(obj))


def _plain(number: Any) -> int | float:
    return int(number) if number.as_tuple().exponent == 0 else float(number)


class _Number(NumericLoader):
    def load(self, data: Any) -> Any:
        return _plain(super().load(data))


class _BinaryNumber(NumericBinaryLoader):
    def load(self, data: Any) -> Any:
        return _plain(super().load(data))


def adapt(context: AdaptContext) -> None:
    """Make a connection read and write values as SQLite does."""
    for dumper in (_BinaryText, _Text):
        context.adapters.register_dumper(str, dumper)
    for loader in (_Number, _BinaryNumber):
        context.adapters.register_loader("numeric", loader)
