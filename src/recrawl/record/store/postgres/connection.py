"""A connection to PostgreSQL that comes back when it was cut, and whose errors are `StorageFailure`s.

With a fence (see `record.store.leases`) each write is in a transaction that checks it.

A statement is repeated on a new connection only where that is safe: a query outside a transaction, and the beginning of
a transaction. A write that was cut may or may not have been done; the next command finds out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any, TypeVar

import psycopg

from recrawl.errors import DiskFull, RepositoryError, StorageFailure
from recrawl.record.store.postgres.adapters import adapt
from recrawl.record.store.postgres.dialect import spelled
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.record.store.sql.base import SqlCursor, Transaction

_OLDEST = 120000
"""PostgreSQL 12, as the server counts."""
_SECONDS = 10
"""Time to connect."""
_PAUSES = (0.1, 0.4, 1.0, 2.0, 4.0)
"""Seconds between tries to connect again: a server that restarts is back by then."""
_BLOCK = 5000
"""Rows of a large result that are read at once."""
_READ_ONLY = "SET default_transaction_read_only = on"
REFUSALS = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.ProgrammingError,
    psycopg.errors.ProgramLimitExceeded,  # a text that is too long for an index
)
"""What the server raises for rows that it cannot take."""
_Result = TypeVar("_Result")


class PostgresConnection:
    """One connection; each statement is a transaction of its own unless one has begun."""

    def __init__(self, target: PostgresTarget, changed: Callable[[], None] = lambda: None) -> None:
        """Connect; `changed` is called after each write that others see."""
        self.target = target
        self._changed = changed
        self._read_only = False
        self._begun = False
        self._numbers = count()
        self._listening: psycopg.Connection[Any] | None = None
        self.fence: Callable[[PostgresConnection], None] | None = None
        """Called at the beginning of each transaction that may write; raises if it must not."""
        self.resumed: Callable[[Callable[..., Any]], None] | None = None
        """Called with `execute` of a connection that replaces one that was cut."""
        self._raw = self._connect()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        return self._begun

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> SqlCursor:
        """Run a shared statement."""
        text = spelled(sql)
        query = sql.lstrip().startswith("SELECT")
        if self._must_begin(query):
            with Transaction(self):
                return self.execute(sql, values)
        done = self._run(lambda raw: raw.cursor(binary=True).execute(text, values), repeatable=query)
        if not query and not self._begun:
            self._changed()
        return done

    def stream(self, sql: str, values: Sequence[Any] = (), /) -> Iterator[Any]:
        """Run a shared query and read it through a cursor of the server, which outlives the transaction.

        A connection that is cut meanwhile is a `StorageFailure`.
        """

        def declare(raw: psycopg.Connection[Any]) -> psycopg.ServerCursor[Any]:
            name = f"rows_{next(self._numbers)}"
            return raw.cursor(name, withhold=True).execute(spelled(sql), values, binary=True)

        cursor = self._run(declare, repeatable=True)
        return chain.from_iterable(self._blocks(cursor))

    def _blocks(self, cursor: psycopg.ServerCursor[Any]) -> Iterator[list[Any]]:
        with cursor:
            while rows := self._run(lambda _: cursor.fetchmany(_BLOCK)):
                yield rows

    def executemany(self, sql: str, rows: Iterable[Any], /) -> None:
        """Run a shared statement for each row."""
        given = list(rows)
        if given and self._must_begin(False):
            with Transaction(self):
                self.executemany(sql, given)
        elif given:
            self._run(lambda raw: raw.cursor().executemany(spelled(sql), given))

    def run(self, sql: str, values: Sequence[Any] = ()) -> SqlCursor:
        """Run a statement in PostgreSQL's own spelling; it may be a script if there are no values."""
        return self._run(lambda raw: raw.execute(sql, values or None))

    def copy(self, sql: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Run a binary COPY FROM STDIN with these rows."""

        def send(raw: psycopg.Connection[Any]) -> None:
            with raw.cursor() as cursor, cursor.copy(sql) as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)

        self._run(send)

    def wait(self, channel: str, seconds: float) -> bool:
        """Wait until the channel is notified, at most so many seconds; whether it was.

        The first call only begins to listen, so that nothing is missed by a caller that looks, waits and looks again.
        """

        def listen(raw: psycopg.Connection[Any]) -> bool:
            if self._listening is not raw:
                raw.execute(f"LISTEN {channel}")
                self._listening = raw
                return False
            return bool(list(raw.notifies(timeout=seconds, stop_after=1)))

        return self._run(listen, repeatable=True)

    def begin(self) -> None:
        """Begin a transaction, on a new connection if this one was cut."""
        self._run(lambda raw: raw.execute("BEGIN"), repeatable=True)
        self._begun = True
        if self.fence is not None:
            with contextlib.ExitStack() as failing:
                failing.callback(self.rollback)
                self.fence(self)
                failing.pop_all()

    def _must_begin(self, query: bool) -> bool:
        """Whether a statement needs a transaction, because the fence is checked in it."""
        return not (query or self._begun or self.fence is None)

    def commit(self) -> None:
        """End the transaction; what it wrote is durable on return."""
        self._run(lambda raw: raw.execute("COMMIT"))
        self._begun = False
        self._changed()

    def rollback(self) -> None:
        """Undo the transaction; a cut connection has done so."""
        self._begun = False
        with contextlib.suppress(psycopg.Error):
            self._raw.execute("ROLLBACK")

    def read_only(self) -> None:
        """Refuse writes from now on."""
        self._read_only = True
        self._raw.execute(_READ_ONLY)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()

    def _run(self, work: Callable[[psycopg.Connection[Any]], _Result], *, repeatable: bool = False) -> _Result:
        if self._raw.closed and not self._begun:
            self._reconnect()
        try:
            return work(self._raw)
        except psycopg.Error as error:
            if not self._raw.closed or not repeatable or self._begun:
                raise _translated(error, self.target) from error
        self._reconnect()
        try:
            return work(self._raw)
        except psycopg.Error as error:
            raise _translated(error, self.target) from error

    def _reconnect(self) -> None:
        for pause in _PAUSES:
            try:
                self._resume()
            except StorageFailure:
                time.sleep(pause)
            else:
                return
        self._resume()

    def _resume(self) -> None:
        raw = self._connect()
        with contextlib.ExitStack() as failing:
            failing.callback(raw.close)
            if self.resumed is not None:
                with self._own_errors():
                    self.resumed(raw.execute)
            failing.pop_all()
        self._raw = raw

    def _connect(self) -> psycopg.Connection[Any]:
        password = self.target.revealed()
        options: dict[str, Any] = {"password": password} if password else {}
        try:
            raw = psycopg.connect(
                self.target.url, autocommit=True, connect_timeout=_SECONDS, client_encoding="utf8", **options
            )
        except psycopg.OperationalError as error:
            raise _translated(error, self.target) from None  # the cause could show what was given
        except psycopg.Error:
            raise RepositoryError(f"invalid URL of a store: {self.target.name}") from None
        if raw.info.server_version < _OLDEST:
            found = raw.info.parameter_status("server_version")
            raw.close()
            raise RepositoryError(f"{self.target.name} runs PostgreSQL {found}: recrawl needs version 12 or later")
        with self._own_errors():  # a server that stops can cut it before its first statement
            adapt(raw)
            raw.execute(f"SET search_path TO {self.target.schema}")
            if self._read_only:
                raw.execute(_READ_ONLY)
        return raw

    @contextlib.contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise _translated(error, self.target) from error


def _translated(error: psycopg.Error, target: PostgresTarget) -> Exception:
    """The error as ours, in one line that says what to do; errors in rows stay what they are."""
    if isinstance(error, REFUSALS):
        return error
    said = " ".join(str(error).split())
    if "password" in said:
        advice = "the password is wrong or missing: check its reference in store.toml"
    elif isinstance(error, psycopg.errors.DiskFull):
        return DiskFull(f"{target.name} cannot be written: its disk is full; free some space and run the command again")
    elif isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        advice = "it cannot be written: check that the server is not a standby"
    elif "does not exist" in said:
        advice = "create the database or the user, or correct the URL in store.toml"
    else:
        advice = "check that the server runs and run the command again"
    return StorageFailure(f"{target.name} cannot be used ({said}): {advice}")
