"""What a move writes into the tables of a cluster: divided archive files, the order of visits, the next run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from recrawl.errors import RepositoryError
from recrawl.record.shards.archive_parts import StoredPart
from recrawl.record.store.postgres.cluster.schema import CLUSTER_STEPS
from recrawl.record.store.postgres.cluster.store import ClusterStore
from recrawl.record.store.postgres.connection import PostgresConnection
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.record.store.postgres.gathered.views import shard_schema
from recrawl.record.store.postgres.schema import has_steps
from recrawl.record.store.postgres.store import is_taken
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.record.store.sql.base import Transaction

_FILE = "divided file "
_MOVE = "move"
"""The fact with the mark of the move that makes the cluster."""


def claim_cluster(
    target: PostgresTarget, token: str, facts: Mapping[str, str], shards: int, *, has_runs: bool = False
) -> ClusterStore:
    """The tables of the cluster that a move makes; `RepositoryError` if the schema holds anything else.

    The same move, with the same facts, may claim them again after it was interrupted; `has_runs` if it copies runs.
    """
    taken = RepositoryError(f"{target.name} holds a repository: choose another schema with ?schema=NAME")
    with contextlib.closing(PostgresConnection(target)) as db:
        steps = {row[0] for row in db.run("SELECT name FROM migrations")} if has_steps(db) else set()
    if steps - {name for name, _ in CLUSTER_STEPS}:
        raise taken
    with contextlib.ExitStack() as failing:
        cluster = ClusterStore(target, create=not steps)
        failing.callback(cluster.close)
        before = cluster.fact(_MOVE)
        used = bool(cluster.leases.holders() or cluster.leader() or (cluster.runs.newest(1) and not has_runs))
        if (before or cluster.fact("shards")) and (before != token or used):
            raise taken
        if not before:
            if any(is_taken(target.of_shard(shard)) for shard in range(shards)):
                raise taken
            cluster.set_fact(_MOVE, token)
        for name, value in facts.items():
            if (given := cluster.first_fact(name, value)) != value:
                raise RepositoryError(
                    f"a move to {target.name} was interrupted, with {name} = {given}: run it again with that, "
                    "or choose another schema with ?schema=NAME"
                )
        failing.pop_all()
    return cluster


def finish_move(cluster: ClusterStore, shards: int) -> None:
    """The cluster is complete: machines may join it."""
    cluster.set_fact("shards", str(shards))


def forget_move(cluster: ClusterStore) -> None:
    """The cluster is in use: no move may write to it any more."""
    cluster.db.run("DELETE FROM facts WHERE name = %s OR starts_with(name, %s)", (_MOVE, _FILE))


class DividedFiles:
    """The archive files of a repository that is divided, in the tables `warcs` of the shards."""

    def __init__(self, cluster: ClusterStore, shards: int) -> None:
        self._db = cluster.db
        self._shards = shards

    def tokens(self) -> dict[int, str]:
        """For each file that is divided what it was divided by."""
        sql = "SELECT name, value FROM facts WHERE starts_with(name, %s)"
        return {int(name.removeprefix(_FILE)): value for name, value in self._db.run(sql, (_FILE,))}

    def record(self, file: int, token: str, parts: Mapping[int, StoredPart]) -> None:
        """The parts of a file are in the object store."""
        with Transaction(self._db):
            for shard in range(self._shards):
                table = f"{shard_schema(self._db.target.schema, shard)}.warcs"
                self._db.run(f"DELETE FROM {table} WHERE id = %s", (file,))
                if shard in parts:
                    self._db.run(f"INSERT INTO {table} VALUES (%s, %s, %s, 1)", (file, *parts[shard]))
            self._db.run(
                "INSERT INTO facts VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (f"{_FILE}{file}", token),
            )

    def parts(self, file: int) -> dict[int, StoredPart]:
        """The parts of a file that were recorded, by shard."""
        found = {}
        for shard in range(self._shards):
            sql = f"SELECT name, length FROM {shard_schema(self._db.target.schema, shard)}.warcs WHERE id = %s"
            if (row := self._db.run(sql, (file,)).fetchone()) is not None:
                found[shard] = StoredPart(*row)
        return found


def restart_runs(cluster: ClusterStore, run: int) -> None:
    """Let the next run have this number: shards give it to their cycles."""
    cluster.db.run(f"ALTER TABLE runs ALTER COLUMN id RESTART WITH {run:d}")


def write_order(
    whole: GatheredStore, blocks: Iterable[tuple[int, int, int, int]], read_up_to: Sequence[tuple[int, int]]
) -> None:
    """Write the order of all visits, and up to which of them changes are read."""
    db = whole.db
    with Transaction(db):
        db.run("DELETE FROM visit_blocks; DELETE FROM read_up_to")
        db.copy("COPY visit_blocks (place, shard, first, visits) FROM STDIN (FORMAT BINARY)", ["int8"] * 4, blocks)
        db.copy("COPY read_up_to (shard, value) FROM STDIN (FORMAT BINARY)", ["int8"] * 2, read_up_to)
