"""Copy a store into another one, table by table, in blocks of rows in the order of their keys.

A block that the target holds already is compared and left alone, so that a copy that was interrupted goes on where it
stopped, and a source that has changed meanwhile is copied where it differs. Afterwards all rows are read again on both
sides and compared by count and digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
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

    @property
    def names(self) -> list[str]:
        """The columns without quotes."""
        return [column.strip('"') for column in self.columns]

    def key_of(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(row[place] for place in self.key)


def block_size() -> int:
    """Rows of a block."""
    return _BLOCK


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


class Stretch(NamedTuple):
    """Rows of a table in the order of its key: all after one key, up to that of the last row or to the end."""

    table: CopiedTable
    rows: Block
    after: tuple[Any, ...] | None
    """The key before the first row; None at the beginning of the table."""
    last: bool
    """Whether nothing may follow."""

    def condition(self) -> tuple[str, list[Any]]:
        """The condition on keys in SQL, and its values."""
        table = self.table
        conditions: list[str] = []
        values: list[Any] = []
        if self.after is not None:
            conditions.append(f"({table.order}) > ({_places(table)})")
            values += self.after
        if not self.last:
            conditions.append(f"({table.order}) <= ({_places(table)})")
            values += table.key_of(self.rows[-1])
        return f"WHERE {' AND '.join(conditions)}" if conditions else "", values


def copy_store(source: SqlStore, target: SqlStore, progress: Callable[[str, int], None]) -> int:
    """Make the target hold what the source holds; the number of rows. `progress` gets each table and its rows."""
    tables = copied_tables()
    for table in tables:
        done = 0
        for stretch in stretches(source, table):
            copy_stretches(target, [stretch])
            done += len(stretch.rows)
            progress(table.name, done)
    _copy_values(source, target)
    target.after_copy()
    return sum(_verify(source, target, table) for table in tables)


def stretches(store: SqlStore, table: CopiedTable, size: int = 0) -> Iterator[Stretch]:
    """All rows of a table, in blocks; the last one is not full."""
    size = size or _BLOCK
    last: tuple[Any, ...] | None = None
    while True:
        where = "" if last is None else f"WHERE ({table.order}) > ({_places(table)})"
        sql = f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {table.order} LIMIT ?"
        block = store.connection.execute(sql, (*(last or ()), size)).fetchall()
        yield Stretch(table, block, last, len(block) < size)
        if len(block) < size:
            return
        last = table.key_of(block[-1])


def copy_stretches(target: SqlStore, wanted: Iterable[Stretch]) -> None:
    """Make the target hold these rows, and no others in their stretches, in one transaction."""
    clean = [it._replace(rows=[target.storable(row) for row in it.rows]) for it in wanted]
    differing = [it for it in clean if not _is_copied(target, it)]
    if not differing:
        return
    with target.transaction():
        for stretch in differing:
            where, values = stretch.condition()
            table = stretch.table
            target.connection.execute(f"DELETE FROM {table.name} {where}", values)
            target.append(table.name, table.columns, table.types, stretch.rows)


def _is_copied(target: SqlStore, stretch: Stretch) -> bool:
    """Whether the target holds these rows, and no others in their stretch."""
    return _digest(_held(target, stretch)) == _digest(stretch.rows)


def check_copied(target: SqlStore, stretch: Stretch) -> int:
    """The number of rows of a stretch that was copied; `StorageFailure` if the target does not hold just these."""
    wanted, held = [target.storable(row) for row in stretch.rows], _held(target, stretch)
    if _digest(held) != _digest(wanted):
        raise _differs(stretch.table.name, len(held), len(wanted))
    return len(wanted)


def _held(target: SqlStore, stretch: Stretch) -> Block:
    """The rows that the target has in a stretch."""
    table, (where, values) = stretch.table, stretch.condition()
    sql = f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {table.order}"
    rows: Block = target.connection.execute(sql, values).fetchall()
    return rows


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
        for stretch in stretches(store, table):
            count += len(stretch.rows)
            digest.update(_digest([target.storable(row) for row in stretch.rows]))
        sums.append((count, digest.digest()))
    if sums[0] != sums[1]:
        raise _differs(table.name, sums[1][0], sums[0][0])
    return sums[0][0]


def _differs(table: str, copied: int, wanted: int) -> StorageFailure:
    """The error of a copy that is not what it was copied from."""
    return StorageFailure(
        f"the copy of the table {table} differs ({copied:,} rows, {wanted:,} in the store): "
        "something has written to it meanwhile; run the command again"
    )


def _digest(rows: Block) -> bytes:
    return hashlib.sha256(repr([tuple(row) for row in rows]).encode("utf-8", "surrogatepass")).digest()


def _places(table: CopiedTable) -> str:
    return ", ".join("?" * len(table.key))
