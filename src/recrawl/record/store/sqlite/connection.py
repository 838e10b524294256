"""Connections to SQLite whose errors about the file (damaged, full disk, read-only) are `StorageFailure`s.

Errors that mean "busy" stay what they are (see `TEMPORARY_ERRORS`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from recrawl.errors import DiskFull, StorageFailure

_ROWS = 200
"""Rows that an iteration reads at once."""
_RESTORE = "run 'recrawl check', or restore the file from a copy"
_ADVICE = {
    sqlite3.SQLITE_CORRUPT: ("is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: ("is damaged: it is not a SQLite database", _RESTORE),
    sqlite3.SQLITE_FULL: ("cannot be written: the disk is full", "free some space and run the command again"),
    sqlite3.SQLITE_IOERR: ("cannot be read or written", "check the disk"),
    sqlite3.SQLITE_READONLY: ("cannot be written", "check its permissions and the file system"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "check its permissions and the file system"),
}
"""By SQLite's error code: what is wrong, and what to do."""


def connect(path: Path, *, shared: bool, writing: bool) -> StoreConnection:
    """Open a database. On a read-only file system a reader needs no file beside it, unless a crash has left one."""
    where = f"{path.absolute().as_uri()}?mode=rw"
    if not writing and not os.access(path.parent, os.W_OK) and not _has_log(path):
        where = f"{path.absolute().as_uri()}?immutable=1"
    connection = sqlite3.connect(
        where if path.exists() else path,
        uri=path.exists(),
        isolation_level=None,
        timeout=30.0,
        cached_statements=256,
        check_same_thread=not shared,
        factory=StoreConnection,
    )
    connection.path = str(path)
    return connection


def _has_log(path: Path) -> bool:
    """Whether commits are in the write-ahead log alone."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def translated(error: sqlite3.Error, path: str) -> Exception:
    """The error as ours if it is about the file, else as it is."""
    code = getattr(error, "sqlite_errorcode", None)
    advice = None if code is None else _ADVICE.get(code & 0xFF)
    if advice is None:
        return error
    kind = DiskFull if code == sqlite3.SQLITE_FULL else StorageFailure
    return kind(f"{path} {advice[0]} ({error}): {advice[1]}")


class StoreCursor(sqlite3.Cursor):
    """A cursor that raises our errors, also while its rows are read."""

    def execute(self, *given: Any) -> StoreCursor:
        """As in sqlite3."""
        try:
            super().execute(*given)
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error
        return self

    def executemany(self, sql: str, rows: Iterable[Any], /) -> StoreCursor:
        """As in sqlite3."""
        try:
            super().executemany(sql, rows)
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error
        return self

    def executescript(self, script: str, /) -> StoreCursor:
        """As in sqlite3."""
        try:
            super().executescript(script)
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error
        return self

    def fetchone(self) -> Any:
        """As in sqlite3."""
        try:
            return super().fetchone()
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error

    def fetchall(self) -> list[Any]:
        """As in sqlite3."""
        try:
            return super().fetchall()
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error

    def fetchmany(self, size: int | None = _ROWS) -> list[Any]:
        """As in sqlite3."""
        try:
            return super().fetchmany(size)
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        # Rows pass through C alone: a loop here would double the time of reading a large table.
        return chain.from_iterable(iter(self.fetchmany, []))

    def _translated(self, error: sqlite3.DatabaseError) -> Exception:
        connection = self.connection
        assert isinstance(connection, StoreConnection)
        return translated(error, connection.path)


class StoreConnection(sqlite3.Connection):
    """A connection whose cursors raise our errors."""

    path = ""
    """The file, for messages."""

    def begin(self) -> None:
        """Begin a transaction that may write: no other connection writes until it ends."""
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End the transaction; what it wrote is durable on return."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction."""
        self.execute("ROLLBACK")

    def execute(self, *given: Any) -> StoreCursor:
        """As in sqlite3."""
        return self.cursor(StoreCursor).execute(*given)

    def stream(self, *given: Any) -> Iterator[Any]:
        """Run a query; SQLite computes its rows one by one."""
        return iter(self.execute(*given))

    def executemany(self, sql: str, rows: Iterable[Any], /) -> StoreCursor:
        """As in sqlite3, which takes longer to read named tuples than to read plain ones."""
        return self.cursor(StoreCursor).executemany(sql, map(tuple, rows))

    def executescript(self, script: str, /) -> StoreCursor:
        """As in sqlite3."""
        return self.cursor(StoreCursor).executescript(script)
