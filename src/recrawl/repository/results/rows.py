"""Rows: the lazy result of a query, iterated in Python or turned into an Arrow table or a pandas data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import islice
from typing import Any, Generic, TypeVar

from recrawl.errors import UsageError
from recrawl.extras import pa

Value = TypeVar("Value")
_BLOCK = 10_000


class Rows(Generic[Value]):
    """Values of one kind, read from the repository while they are iterated; every iteration reads anew.

    for page in repo.pages(state="live"): ...
    table = repo.pages(state="live").to_arrow()
    frame = repo.pages(state="live").to_pandas()
    """

    def __init__(self, kind: type[Value], read: Callable[[], Iterator[Value]]) -> None:
        self._kind = kind
        self._read = read

    def __iter__(self) -> Iterator[Value]:
        return self._read()

    def __repr__(self) -> str:
        return f"<Rows of {self._kind.__name__}>"

    def first(self) -> Value | None:
        """The first value; None when there is none."""
        return next(iter(self), None)

    def schema(self) -> pa.Schema:
        """The columns of `to_arrow`."""
        types = _arrow_types()
        return pa.schema([(name, types[_plain(kind)]) for name, kind in _columns(self._kind)])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The values as Arrow batches, so that a large result need not be in memory at once."""
        schema, values = self.schema(), iter(self)
        while block := list(islice(values, _BLOCK)):
            columns = [pa.array([getattr(row, field.name) for row in block], field.type) for field in schema]
            yield pa.record_batch(columns, schema=schema)

    def to_arrow(self) -> pa.Table:
        """All values as an Arrow table with a column for each field; times are UTC timestamps."""
        return pa.Table.from_batches(self.batches(), schema=self.schema())

    def to_pandas(self) -> Any:
        """All values as a pandas data frame; pandas is not a dependency of recrawl and must be installed."""
        try:
            import pandas  # type: ignore[import-untyped]  # noqa: F401, ICN001  # lazy: optional
        except ImportError as error:
            raise UsageError("to_pandas() needs pandas: pip install pandas, or use to_arrow()") from error
        return self.to_arrow().to_pandas()


def _columns(kind: type[Any]) -> Iterator[tuple[str, str]]:
    """Public fields with their types as they are written."""
    return ((item.name, str(item.type)) for item in fields(kind) if not item.name.startswith("_"))


def _plain(annotation: str) -> str:
    """
    >>> _plain("datetime | None")
    'datetime'
    """
    return annotation.removesuffix(" | None")


def _arrow_types() -> dict[str, Any]:
    return {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "datetime": pa.timestamp("us", tz="UTC"),
    }
