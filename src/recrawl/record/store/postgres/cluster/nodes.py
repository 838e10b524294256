"""Machines and workers of a cluster, and the machines on which shards shall run."""

from __future__ import annotations

from typing import NamedTuple

from recrawl.record.store.postgres.connection import PostgresConnection

_NOW = "extract(epoch FROM clock_timestamp())::float8"


class NodeRow(NamedTuple):
    """A machine, or a part of one."""

    name: str
    host: str
    started: float
    seen: float
    draining: bool
    """Whether its shards shall go elsewhere."""
    age: float
    """Seconds since it was seen, by the clock of the database."""


class WorkerRow(NamedTuple):
    """A process that runs shards."""

    name: str
    node: str
    host: str
    pid: int
    started: float
    seen: float
    draining: bool
    """Whether it shall release its shards and end."""
    age: float


class NodeTable:
    """The tables `nodes`, `workers` and `placements`."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db

    def node_seen(self, name: str, host: str) -> None:
        """A machine is there."""
        self._db.run(
            f"""INSERT INTO nodes (name, host, started, seen) VALUES (%s, %s, {_NOW}, {_NOW})
            ON CONFLICT (name) DO UPDATE SET seen = excluded.seen""",
            (name, host),
        )

    def worker_seen(self, name: str, node: str, host: str, pid: int) -> bool:
        """A worker is there; returns whether it shall end."""
        found = self._db.run(
            f"""INSERT INTO workers (name, node, host, pid, started, seen) VALUES (%s, %s, %s, %s, {_NOW}, {_NOW})
            ON CONFLICT (name) DO UPDATE SET seen = excluded.seen RETURNING draining""",
            (name, node, host, pid),
        ).fetchone()
        return bool(found[0])

    def worker_gone(self, name: str) -> None:
        """A worker has ended."""
        self._db.run("DELETE FROM workers WHERE name = %s", (name,))

    def forget_workers(self, seconds: float) -> None:
        """Remove workers that were not seen for so long: they were killed."""
        self._db.run(f"DELETE FROM workers WHERE seen < {_NOW} - %s", (seconds,))

    def node_gone(self, name: str) -> None:
        """A machine has left."""
        self._db.run("DELETE FROM nodes WHERE name = %s", (name,))

    def drain_worker(self, name: str) -> bool:
        """Ask a worker to release its shards and end; whether it is known."""
        return self._db.run("UPDATE workers SET draining = true WHERE name = %s", (name,)).rowcount == 1

    def drain_node(self, name: str, *, draining: bool = True) -> bool:
        """Ask for the shards of a machine to go elsewhere, or let it have shards again; whether it is known."""
        return self._db.run("UPDATE nodes SET draining = %s WHERE name = %s", (draining, name)).rowcount == 1

    def nodes(self) -> list[NodeRow]:
        """All machines, in the order in which they came."""
        sql = f"SELECT name, host, started, seen, draining, {_NOW} - seen FROM nodes ORDER BY started, name"
        return [NodeRow(*row) for row in self._db.run(sql)]

    def workers(self) -> list[WorkerRow]:
        """All workers, in the order in which they came."""
        sql = f"""SELECT name, node, host, pid, started, seen, draining, {_NOW} - seen FROM workers
            ORDER BY started, name"""
        return [WorkerRow(*row) for row in self._db.run(sql)]

    def place(self, shard: int, node: str) -> None:
        """A shard shall run on this machine."""
        self._db.run(
            "INSERT INTO placements VALUES (%s, %s) ON CONFLICT (shard) DO UPDATE SET node = excluded.node",
            (shard, node),
        )

    def placements(self) -> dict[int, str]:
        """The machine on which each shard shall run."""
        return dict(self._db.run("SELECT shard, node FROM placements ORDER BY shard").fetchall())
