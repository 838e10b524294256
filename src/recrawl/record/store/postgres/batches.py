"""Statements for many rows at once: binary COPY for new rows and updates, unnest for replacements.

The columns and their types are those of the rows' named tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import UnionType
from typing import Any, NamedTuple, get_args, get_type_hints

from recrawl.record.store.postgres.connection import PostgresConnection
from recrawl.record.store.postgres.schema import PARTITIONED

_TYPES: dict[type, tuple[str, Callable[[Any], Any]]] = {
    int: ("int8", int),
    float: ("float8", float),
    str: ("text", str),
    bytes: ("bytea", lambda value: value),
}


class Column(NamedTuple):
    """A column of rows that are written together."""

    name: str
    type: str
    convert: Callable[[Any], Any]
    """psycopg refuses an array with values of several classes, as int and IntEnum."""


def columns_of(row: type) -> tuple[Column, ...]:
    """The columns of a named tuple."""
    hints = get_type_hints(row)
    return tuple(_column(name, hints[name]) for name in row._fields)  # type: ignore[attr-defined]


def columns(**types: type) -> tuple[Column, ...]:
    """Columns by name and type.

    >>> [column.type for column in columns(page=int, targets=bytes)]
    ['int8', 'bytea']
    """
    return tuple(_column(name, kind) for name, kind in types.items())


def _column(name: str, kind: Any) -> Column:
    plain = next(it for it in get_args(kind) if it is not type(None)) if isinstance(kind, UnionType) else kind
    return Column(name, *_TYPES[plain])


class CopyInsert:
    """Append rows to a table."""

    def __init__(self, table: str, given: Sequence[Column]) -> None:
        self._types = [column.type for column in given]
        self._sql = f"COPY {table} ({', '.join(column.name for column in given)}) FROM STDIN (FORMAT BINARY)"

    def run(self, db: PostgresConnection, rows: Sequence[Sequence[Any]]) -> None:
        """Append rows; a key that is there already is an error."""
        if rows:
            db.copy(self._sql, self._types, rows)


class CopyUpdate:
    """Change columns of rows that are found by one column; of rows with the same key the last counts.

    The rows go into a temporary table by COPY, and from there into the table by one statement. Arrays would cost three
    times as much CPU here: psycopg packs them value by value in Python.
    """

    def __init__(self, table: str, given: Sequence[Column], key: str) -> None:
        names = [column.name for column in given]
        draft = f"new_{table}_{names[0]}"
        self._key = names.index(key)
        # Without statistics of the temporary table the planner reads the whole table for a hash join.
        self._create = f"""SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
            CREATE TEMPORARY TABLE IF NOT EXISTS {draft}
            ({", ".join(f"{column.name} {column.type}" for column in given)}) ON COMMIT DELETE ROWS"""
        self._fill = CopyInsert(draft, given)
        changes = ", ".join(f"{name} = n.{name}" for name in names if name != key)
        self._sql = f"UPDATE {table} SET {changes} FROM {draft} AS n WHERE {table}.{key} = n.{key}"

    def run(self, db: PostgresConnection, rows: Iterable[Sequence[Any]]) -> None:
        """Change these rows, in a transaction that has begun."""
        unique = {row[self._key]: row for row in rows}
        if unique:
            db.run(self._create)
            self._fill.run(db, list(unique.values()))
            db.run(self._sql)


class ArrayUpsert:
    """Insert rows that come as one array for each column, or replace those with the same key; the last one counts."""

    def __init__(self, table: str, given: Sequence[Column], key: Sequence[str]) -> None:
        self._columns = given
        self._key = [place for place, column in enumerate(given) if column.name in key]
        names = [column.name for column in given]
        target = ", ".join((*key, "shard") if table in PARTITIONED else key)
        changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
        source = f"unnest({', '.join(f'%b::{column.type}[]' for column in given)})"
        self._sql = f"""INSERT INTO {table} ({", ".join(names)}) SELECT * FROM {source}
                        ON CONFLICT ({target}) DO UPDATE SET {changes}"""

    def run(self, db: PostgresConnection, rows: Iterable[Sequence[Any]]) -> None:
        """Run it with these rows."""
        unique = {tuple(row[place] for place in self._key): row for row in rows}
        if unique:
            arrays = zip(*unique.values(), strict=True)
            values = [
                [None if value is None else column.convert(value) for value in array]
                for column, array in zip(self._columns, arrays, strict=True)
            ]
            db.run(self._sql, values)
