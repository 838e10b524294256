"""What the tables share: rows, columns, transactions, and the enums' constants as SQL text.

The partial index `updates_by_time` applies only where a query contains its condition literally, so constants are
formatted into the SQL instead of passed as parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.model import SKIPPED, Failure, Outcome, State
from recrawl.record.rows import Columns, Row

AMONG = "IN (SELECT value FROM json_each(?))"
"""A condition on any number of numbers in one parameter (see `json_list`)."""
_BLOCK_ROWS = 1 << 16
NEVER = "-9e999"
"""The time of what has not happened: minus infinity."""
OUTCOME_NAMES = {int(outcome): outcome.name.lower() for outcome in Outcome}
STATE_NAMES = {int(state): state.name.lower() for state in State}


def enum_list(*members: IntEnum) -> str:
    """Members of an enum as a list in SQL.

    >>> enum_list(Outcome.CHANGED, Outcome.NEW)
    '(1, 2)'
    """
    return f"({', '.join(str(int(member)) for member in members)})"


SKIPPED_VISIT = f"v.failure IN ({', '.join(repr(str(word)) for word in sorted(SKIPPED))})"
MISSING_VISIT = f"v.failure = '{Failure.MISSING}'"
FAILED_VISIT = f"(v.outcome = {Outcome.FAILED:d} AND NOT ({SKIPPED_VISIT} OR {MISSING_VISIT}))"
"""Conditions on visits that are no outcomes of their own in the store: failed ones, skipped ones, missing pages."""
UPDATES = enum_list(Outcome.CHANGED, Outcome.NEW, Outcome.GONE)
TOLD = f"v.outcome IN {UPDATES} AND v.copy = 0"
"""Whether the visit `v` found an update that is told to people and programs: those of copies are told of the page that
they are copies of."""
OWN_VERSION = "EXISTS (SELECT 1 FROM versions WHERE id = v.version AND at = v.at)"
"""Whether the visit `v` recorded a version."""
FRAME_ONLY = f"""(v.outcome = {Outcome.UNCHANGED:d} AND v.status != 304
                  AND EXISTS (SELECT 1 FROM versions WHERE id = v.version AND at = v.at AND changed != 0))"""
"""Whether the visit `v` found another text that does not count as a change."""
VISITABLE = enum_list(State.FOUND, State.LIVE, State.MISSING)


def text_list(words: Iterable[str]) -> str:
    """Words as a list in SQL, sorted."""
    return "(" + ", ".join(f"'{word}'" for word in sorted(words)) + ")"


def json_list(numbers: Iterable[int]) -> str:
    """Numbers as one parameter of an SQL statement, for `AMONG`."""
    return f"[{','.join(map(str, numbers))}]"


def insert(table: str, names: Sequence[str]) -> str:
    """The statement that inserts a row with these columns."""
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def upsert(table: str, names: Sequence[str], key: Sequence[str]) -> str:
    """The statement that inserts a row, or gives the row with this key these values.

    >>> upsert("links", ("page", "targets"), ("page",))
    'INSERT INTO links (page, targets) VALUES (?, ?) ON CONFLICT (page) DO UPDATE SET targets = excluded.targets'
    """
    values = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    return f"{insert(table, names)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {values}"


class SqlCursor(Protocol):
    """The result of a statement."""

    @property
    def description(self) -> Any:
        """One tuple per column, the name first."""

    @property
    def rowcount(self) -> int:
        """Rows that the statement has written."""

    def fetchone(self) -> Any:
        """The next row, None after the last one."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What the tables need of a connection. Each statement is a transaction of its own unless one has begun."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> SqlCursor:
        """Run a statement."""

    def stream(self, sql: str, values: Sequence[Any] = ..., /) -> Iterator[Any]:
        """Run a query with a large result and read it in blocks; other statements may run meanwhile."""

    def executemany(self, sql: str, rows: Iterable[Any], /) -> Any:
        """Run a statement for each row."""

    def begin(self) -> None:
        """Begin a transaction that may write."""

    def commit(self) -> None:
        """End the transaction; what it wrote is durable on return."""

    def rollback(self) -> None:
        """Undo the transaction."""


class Transaction:
    """`with Transaction(db):` commits at the end, or rolls back if the block raises."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.begin()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._db.commit()
        elif self._db.in_transaction:  # SQLite itself rolls back when the disk is full, PostgreSQL when it is cut off
            self._db.rollback()


class SqlTable:
    """Base of the tables: one connection, and the shapes in which queries return their result."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def _value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row, None without a row."""
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Rows as dicts."""
        cursor = self._db.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def _row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row as a dict, None without one."""
        rows = self._rows(sql, values)
        return rows[0] if rows else None

    def _table(self, sql: str, types: dict[str, str], values: Sequence[Any] = ()) -> NDArray[np.void]:
        """Rows as one structured array."""
        return np.fromiter(self._db.stream(sql, values), np.dtype(list(types.items())))

    def _columns(self, sql: str, types: dict[str, str], values: Sequence[Any] = (), expected: int = 0) -> Columns:
        """Rows as one array per column, block by block: all rows and all columns would be twice the memory.

        Room for the `expected` rows is allocated once; for more, the arrays grow.
        """
        rows, kind = iter(self._db.stream(sql, values)), np.dtype(list(types.items()))
        columns: Columns = {name: np.empty(expected, of) for name, of in types.items()}
        count = 0
        while len(block := np.fromiter(islice(rows, _BLOCK_ROWS), kind)):
            end = count + len(block)
            for name, column in columns.items():
                if end > len(column):
                    column.resize(end + end // 2, refcheck=False)
                column[count:end] = block[name]
            count = end
        for column in columns.values():
            column.resize(count, refcheck=False)
        return columns
