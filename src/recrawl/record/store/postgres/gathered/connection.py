"""A connection that sees the views of a cluster before the tables of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import psycopg

from recrawl.errors import StorageFailure, UsageError
from recrawl.record.store.postgres.connection import PostgresConnection
from recrawl.record.store.postgres.gathered.views import own_schema, views_schema
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.record.store.sql.base import SqlCursor
from recrawl.record.store.sql.tables.marks import READ_MARK

# PostgreSQL has no statistics of a view over several tables: it expects hundreds of rows for each number that it looks
# up, and would rather read all pages once more for each row of a join.
_PLANNER = "SET enable_seqscan = off; SET enable_material = off; SET enable_mergejoin = off; SET jit = off"
_AFTER = "v.id > ?"
"""The condition of shared queries that read visits after one."""


_READ_MARK = "(SELECT r.value FROM read_up_to r WHERE r.shard = v.shard)"


WORKERS_WRITE = "this is a cluster: the workers of its shards alone write pages"
_Result = TypeVar("_Result")


class Block(NamedTuple):
    """Consecutive visits of a shard, by their numbers in the whole: after `low`, up to `high`."""

    shard: int
    low: int
    high: int


class GatheredConnection(PostgresConnection):
    """Reads the views of a cluster, and writes the tables of the whole."""

    def __init__(self, target: PostgresTarget, changed: Callable[[], None] = lambda: None) -> None:
        """Connect to a cluster; `target` names the schema of its tables."""
        self.cluster = target.schema
        self._block: Block | None = None
        super().__init__(target._replace(schema=own_schema(target.schema)), changed)

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> SqlCursor:
        if self._block is not None:
            shard, _, high = self._block
            sql = sql.replace(_AFTER, f"v.shard = {shard:d} AND v.id <= {high:d} AND {_AFTER}")
        return super().execute(sql.replace(READ_MARK, _READ_MARK), values)

    @contextmanager
    def within(self, block: Block) -> Iterator[None]:
        """Let shared queries that read visits after one read those of a block alone."""
        self._block = block
        try:
            yield
        finally:
            self._block = None

    def _run(self, work: Callable[[psycopg.Connection[Any]], _Result], *, repeatable: bool = False) -> _Result:
        try:
            return super()._run(work, repeatable=repeatable)
        except StorageFailure as error:
            if isinstance(error.__cause__, psycopg.errors.ObjectNotInPrerequisiteState):  # a view cannot be written
                raise UsageError(WORKERS_WRITE) from error
            raise

    def _connect(self) -> psycopg.Connection[Any]:
        raw = super()._connect()
        raw.execute(f"SET search_path TO {views_schema(self.cluster)}, {own_schema(self.cluster)}")
        raw.execute(_PLANNER)
        return raw
