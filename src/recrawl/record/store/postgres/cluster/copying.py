"""Copy a cluster into another database: the schemas of its shards, of the whole, and its own tables.

Machines, workers and leases are not copied: they are those of the processes that use the old one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from recrawl.record.store.postgres.cluster.moves import restart_runs
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.record.store.postgres.gathered.views import own_schema
from recrawl.record.store.postgres.store import PostgresStore
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.record.store.sql.copying import CopiedTable, check_copied, copy_store, copy_stretches, stretches
from recrawl.record.store.sql.store import SqlStore

_ORDER = {"visit_blocks": "place int8 | shard int8, first int8, visits int8", "read_up_to": "shard int8 | value int8"}
_OWN = {
    "runs": "id int8 | kind text, policy text, budget float8, seed int8, settings text, options text, "
    "requested float8, started float8, finished float8, stop bool, visits int8, ending bool",
    "run_shards": "run int8, shard int8 | state text, pages int8, tally text, seen float8, problem text",
    "rounds": "run int8, round int8 | stage text, visits int8, rest int8, returned int8, totals bytea, present int8[], "
    "settled bool",
    "offers": "run int8, round int8, shard int8 | totals bytea, returned int8, offer bytea",
    "cuts": "run int8, round int8, shard int8 | threshold int8, quota int8",
    "outbox_links": "id int8 | shard int8, key int8, url text, depth int8, alias text",
    "outbox_requisites": "id int8 | shard int8, key int8, url text, style int8, level int8, depth int8",
}
"""Columns with their types, those of the key before the bar."""
_NUMBERED = ("outbox_links", "outbox_requisites")
_NOT_COPIED = ("shards", "archive", "move", "moving", "moved to")
"""Facts about the place of the cluster, and about moves."""
CopyProgress = Callable[[str, int], None]


def copy_cluster(old: PostgresTarget, new: PostgresTarget, shards: int, progress: CopyProgress) -> int:
    """Make a new cluster hold what an old one holds, and compare it; the number of rows."""
    rows = 0
    for shard in range(shards):
        with closing(PostgresStore(old.of_shard(shard))) as source, closing(PostgresStore(new.of_shard(shard))) as copy:
            rows += copy_store(source, copy, _of_shard(progress, shard))
    GatheredStore(old, shards).close()  # makes the tables of the whole, if nobody has read the cluster yet
    own = new._replace(schema=own_schema(new.schema))
    with (
        closing(PostgresStore(old._replace(schema=own_schema(old.schema)))) as source,
        closing(PostgresStore(own, create=True)) as copy,
    ):
        rows += copy_store(source, copy, progress)
        GatheredStore(new, shards).close()
        rows += sum(_copy_table(source, copy, table, "", "") for table in _tables(_ORDER))
        for table in _tables(_OWN):
            rows += _copy_table(source, copy, table, old.schema, new.schema)
            progress(table.name, rows)
    return rows


def copy_facts(old: ClusterStore, new: ClusterStore) -> None:
    """Copy the facts of a cluster, and number its next run and its links as the old one would."""
    facts = dict(old.db.run("SELECT name, value FROM facts").fetchall())
    for name, value in facts.items():
        if name not in _NOT_COPIED:
            new.set_fact(name, value)
    for table in _NUMBERED:
        last = new.db.run(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
        new.db.run(f"ALTER TABLE {table} ALTER COLUMN id RESTART WITH {int(last) + 1:d}")
    restart_runs(new, int(old.db.run("SELECT last_value + is_called::int FROM runs_id_seq").fetchone()[0]))


def _copy_table(source: SqlStore, copy: SqlStore, table: CopiedTable, old: str, new: str) -> int:
    """Copy a table of another schema than the stores' own, if one is named; the number of rows."""
    rows = 0
    there = table._replace(name=f"{new}.{table.name}" if new else table.name)
    for part in stretches(source, table._replace(name=f"{old}.{table.name}" if old else table.name)):
        wanted = part._replace(table=there)
        copy_stretches(copy, [wanted])
        rows += check_copied(copy, wanted)
    return rows


def _tables(described: dict[str, str]) -> list[CopiedTable]:
    found = []
    for name, columns in described.items():
        key = columns.partition(" | ")[0].count(",") + 1
        pairs = [column.split() for column in columns.replace(" |", ",").split(", ")]
        names, types = zip(*pairs, strict=True)
        found.append(CopiedTable(name, tuple(f'"{it}"' for it in names), types, tuple(range(key))))
    return found


def _of_shard(progress: CopyProgress, shard: int) -> CopyProgress:
    return lambda table, rows: progress(f"shard {shard}: {table}", rows)
