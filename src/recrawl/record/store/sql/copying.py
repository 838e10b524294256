"""Copy a store into another one, table by table, in blocks of rows in the order of their keys.

A block that the target holds already is compared and left alone, so that a copy that was interrupted goes on where it
stopped, and a source that has changed meanwhile is copied where it differs. Afterwards all rows are read again on both
sides and compared by count and digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from recrawl.errors import StorageFailure
from recrawl.record.store.sql.store import SqlStore
from recrawl.record.store.sqlite.store import SqliteStore

TOKEN = "moving"  # noqa: S105
"""Name in `meta` of what marks the two stores of a move that is not finished."""
_BLOCK = 5000
_TYPES = {"INTEGER": "int8", "REAL": "float8", "TEXT": "text", "BLOB": "bytea"}
Block = list[tuple[Any, ...]]


class CopiedTable(NamedTuple):
    """A table with its columns, their types in PostgreSQL, and the places of its key among them."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[int, ...]

    @property
    def order(self) -> str:
        """The columns of the key in SQL."""
        return ", ".join(self.columns[place] for place in self.key)


def copied_tables() -> list[CopiedTable]:
    """All tables but `meta`, whose values the stores write in their own ways, and the list of migrations."""
    found = []
    with closing(SqliteStore(Path(":memory:"), create=True)) as model:
        names = model.db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (name,) in names:
            if name in ("meta", "migrations"):
                continue
            rows = model.db.execute(f"PRAGMA table_info({name})").fetchall()
            places = sorted((row[5], place) for place, row in enumerate(rows) if row[5])
            columns = tuple(f'"{row[1]}"' for row in rows)
            types = tuple(_TYPES[row[2]] for row in rows)
            found.append(CopiedTable(name, columns, types, tuple(place for _, place in places)))
    return found


def copy_store(source: SqlStore, target: SqlStore, progress: Callable[[str, int], None]) -> int:
    """Make the target hold what the source holds; the number of rows. `progress` gets each table and its rows."""
    tables = copied_tables()
    for table in tables:
        done = 0
        for block, first in _blocks(source, table):
            _copy_block(target, table, block, first)
            done += len(block)
            progress(table.name, done)
    _copy_values(source, target)
    target.after_copy()
    return sum(_verify(source, target, table) for table in tables)


def _blocks(store: SqlStore, table: CopiedTable) -> Iterator[tuple[Block, tuple[Any, ...] | None]]:
    """Blocks of rows by key, each with the key before it; the last one is not full."""
    last: tuple[Any, ...] | None = None
    while True:
        where = "" if last is None else f"WHERE ({table.order}) > ({_places(table)})"
        sql = f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {table.order} LIMIT ?"
        block = store.connection.execute(sql, (*(last or ()), _BLOCK)).fetchall()
        yield block, last
        if len(block) < _BLOCK:
            return
        last = tuple(block[-1][place] for place in table.key)


def _copy_block(target: SqlStore, table: CopiedTable, block: Block, first: tuple[Any, ...] | None) -> None:
    """Make the target hold these rows, and no others, after a key and up to the key of the last row."""
    conditions, values = ([f"({table.order}) > ({_places(table)})"], [*first]) if first is not None else ([], [])
    if len(block) == _BLOCK:  # a block that is not full is the last one: nothing may follow
        conditions.append(f"({table.order}) <= ({_places(table)})")
        values += [block[-1][place] for place in table.key]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {table.order}"
    block = [target.storable(row) for row in block]
    if _digest(target.connection.execute(sql, values).fetchall()) == _digest(block):
        return
    with target.transaction():
        target.connection.execute(f"DELETE FROM {table.name} {where}", values)
        target.append(table.name, table.columns, table.types, block)


def _copy_values(source: SqlStore, target: SqlStore) -> None:
    names = {row[0] for row in source.connection.execute("SELECT name FROM meta")}
    with target.transaction():
        target.connection.execute("DELETE FROM meta WHERE name != ?", (TOKEN,))
        for name in sorted(names - {TOKEN}):
            target.meta.set(name, source.meta.get(name, None))


def _verify(source: SqlStore, target: SqlStore, table: CopiedTable) -> int:
    """The number of rows of a table; `StorageFailure` if count or digest differ."""
    sums = []
    for store in (source, target):
        count, digest = 0, hashlib.sha256()
        for block, _ in _blocks(store, table):
            count += len(block)
            digest.update(_digest([target.storable(row) for row in block]))
        sums.append((count, digest.digest()))
    if sums[0] != sums[1]:
        raise StorageFailure(
            f"the copy of the table {table.name} differs ({sums[1][0]:,} rows, {sums[0][0]:,} in the store): "
            "something has written to it meanwhile; run the command again"
        )
    return sums[0][0]


def _digest(rows: Block) -> bytes:
    return hashlib.sha256(repr([tuple(row) for row in rows]).encode("utf-8", "surrogatepass")).digest()


def _places(table: CopiedTable) -> str:
    return ", ".join("?" * len(table.key))
