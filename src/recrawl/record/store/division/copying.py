"""Copy a store into those of shards, or shards into one store, and compare the copy; what is there already stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from recrawl.record.store.division.own_rows import OwnRows, Values
from recrawl.record.store.division.projection import OWN_TABLES, Projection
from recrawl.record.store.sql import copying
from recrawl.record.store.sql.copying import (
    TOKEN,
    Block,
    CopiedTable,
    Stretch,
    check_copied,
    copied_tables,
    copy_stretches,
    stretches,
)
from recrawl.record.store.sql.store import SqlStore

_BLOCKS = 8
"""Blocks of a store that are read before the rows of all shards are written."""
_BY_FILES = frozenset({"warcs"})
"""Tables that the division of the archive writes."""
ShardSchema = Callable[[int], str]
"""The schema of a shard."""


class BlockCopy:
    """A copy that is made and compared block by block."""

    def __init__(self, target: SqlStore, tables: Sequence[CopiedTable]) -> None:
        self._target = target
        self._tables = tables

    def copy(self, progress: Callable[[str, int], None]) -> None:
        """Make the target hold what it shall hold; `progress` gets each table and its rows."""
        for table in self._tables:
            done = 0
            for rows, parts in self._parts(table):
                copy_stretches(self._target, parts)
                done += rows
                progress(table.name, done)

    def verify(self, progress: Callable[[str, int], None]) -> int:
        """The number of rows in the target, after each was compared; `StorageFailure` if one differs."""
        total = 0
        for table in self._tables:
            done = 0
            for rows, parts in self._parts(table):
                total += sum(check_copied(self._target, part) for part in parts)
                done += rows
                progress(f"comparing {table.name}", done)
        return total

    def _parts(self, table: CopiedTable) -> Iterator[tuple[int, list[Stretch]]]:
        """Blocks of a table: the number of rows, and the stretches that the target shall hold."""
        raise NotImplementedError


class DividedCopy(BlockCopy):
    """The copy of a store in the schemas of shards, all of them through one connection."""

    def __init__(
        self, source: SqlStore, target: SqlStore, projection: Projection, shards: int, schema_of: ShardSchema
    ) -> None:
        super().__init__(target, [it for it in copied_tables() if it.name not in OWN_TABLES | _BY_FILES])
        self._source = source
        self._projection = projection
        self._shards = shards
        self._schema_of = schema_of

    def _parts(self, table: CopiedTable) -> Iterator[tuple[int, list[Stretch]]]:
        """Blocks of a table: the number of rows, and the stretches of the shards."""
        after: list[tuple[Any, ...] | None] = [None] * self._shards
        for stretch in stretches(self._source, table, _BLOCKS * copying.block_size()):
            rows: dict[int, Block] = dict(self._projection.divided(table, stretch.rows))
            parts = []
            for shard in range(self._shards):
                own = rows.get(shard, [])
                if not own and not stretch.last:
                    continue
                there = table._replace(name=f"{self._schema_of(shard)}.{table.name}")
                parts.append(Stretch(there, own, after[shard], stretch.last))
                after[shard] = table.key_of(own[-1]) if own else after[shard]
            yield len(stretch.rows), parts


class JoinedCopy(BlockCopy):
    """The copy of all shards of a cluster in one store."""

    def __init__(self, target: SqlStore, blocks: Callable[[CopiedTable], Iterator[Block]]) -> None:
        """`blocks` gives the rows of a table in the order of their keys."""
        super().__init__(target, copied_tables())
        self._blocks = blocks

    def _parts(self, table: CopiedTable) -> Iterator[tuple[int, list[Stretch]]]:
        after: tuple[Any, ...] | None = None
        for rows in self._blocks(table):
            if rows:
                yield len(rows), [Stretch(table, rows, after, False)]
                after = table.key_of(rows[-1])
        yield 0, [Stretch(table, [], after, True)]


def copy_own_rows(target: SqlStore, own: OwnRows) -> int:
    """Make the tables of the whole hold what belongs there; the number of rows, after they were compared."""
    total = 0
    for table in copied_tables():
        if table.name in OWN_TABLES:
            stretch = Stretch(table, own.rows(table), None, True)
            copy_stretches(target, [stretch])
            total += check_copied(target, stretch)
    copy_values(target, own.values())
    return total


def copy_values(target: SqlStore, values: Values) -> None:
    """Make the single values of a store these; the mark of the move stays."""
    with target.transaction():
        target.connection.execute("DELETE FROM meta WHERE name != ?", (TOKEN,))
        for name, value in sorted(values.items()):
            target.meta.set(name, value)
