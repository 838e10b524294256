"""The tables of a cluster, opened: facts, leases, runs, rounds, links, nodes. One thread uses it at a time."""

from __future__ import annotations

import contextlib

from recrawl.errors import RepositoryError
from recrawl.record.store.leases import Lease
from recrawl.record.store.postgres.cluster.channels import channels
from recrawl.record.store.postgres.cluster.links import OutboxLinks, OutboxRequisites
from recrawl.record.store.postgres.cluster.nodes import NodeTable
from recrawl.record.store.postgres.cluster.rounds import RoundJournal
from recrawl.record.store.postgres.cluster.runs import RunTable
from recrawl.record.store.postgres.cluster.schema import CLUSTER_STEPS
from recrawl.record.store.postgres.connection import PostgresConnection
from recrawl.record.store.postgres.leases import Fence, PostgresLeases
from recrawl.record.store.postgres.schema import applied, has_steps, migrate
from recrawl.record.store.postgres.target import PostgresTarget
from recrawl.record.store.postgres.writer_lock import end_writers
from recrawl.record.store.sql.base import Transaction

COORDINATOR = -2
"""The row of the coordinator in `leases`."""


class ClusterStore:
    """The schema of a cluster."""

    def __init__(self, target: PostgresTarget, *, create: bool = False) -> None:
        """Connect; `create` makes the tables of a new cluster."""
        self.target = target
        self.db = PostgresConnection(target)
        with contextlib.ExitStack() as failing:
            failing.callback(self.db.close)
            if create and has_steps(self.db):
                raise RepositoryError(f"{target.name} holds a repository: choose another schema with ?schema=NAME")
            if create or len(applied(self.db, CLUSTER_STEPS)) < len(CLUSTER_STEPS):
                migrate(self.db, CLUSTER_STEPS)
            failing.pop_all()
        self.leases = PostgresLeases(self.db)
        self.runs = RunTable(self.db)
        self.rounds = RoundJournal(self.db)
        self.links = OutboxLinks(self.db)
        self.requisites = OutboxRequisites(self.db)
        self.nodes = NodeTable(self.db)

    def fact(self, name: str) -> str:
        """A value that all processes of the cluster share; empty if it was never set."""
        found = self.db.run("SELECT value FROM facts WHERE name = %s", (name,)).fetchone()
        return found[0] if found else ""

    def set_fact(self, name: str, value: str) -> None:
        """Set such a value."""
        self.db.run(
            "INSERT INTO facts VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
        )

    def remove_fact(self, name: str) -> None:
        """Remove such a value."""
        self.db.run("DELETE FROM facts WHERE name = %s", (name,))

    def wait(self, seconds: float) -> bool:
        """Wait until the coordinator has written something that shards wait for, at most so many seconds; whether."""
        return self.db.wait(channels(self.target.schema)[0], seconds)

    def wait_for_shards(self, seconds: float) -> bool:
        """Wait until a shard or a command has written for the coordinator, at most so many seconds; whether."""
        return self.db.wait(channels(self.target.schema)[1], seconds)

    def end_writer(self, schema: str) -> None:
        """End the connection of whoever writes in the schema of a shard: its lease has been taken over."""
        end_writers(self.db, schema)

    def leader(self) -> str:
        """The name of the coordinator; empty if there is none."""
        sql = "SELECT worker FROM leases WHERE shard = %s AND ends > extract(epoch FROM clock_timestamp())"
        found = self.db.run(sql, (COORDINATOR,)).fetchone()
        return str(found[0]) if found else ""

    def fence(self, lease: Lease) -> None:
        """Refuse transactions from now on once this lease is taken over."""
        self.db.fence = Fence(lease)

    def first_fact(self, name: str, value: str) -> str:
        """Set a value that nobody has set before; returns what it is now."""
        self.db.run("INSERT INTO facts VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", (name, value))
        return self.fact(name)

    def transaction(self) -> Transaction:
        """Commit at the end of the `with` block, or roll back if it raises."""
        return Transaction(self.db)

    def close(self) -> None:
        """Close the connection."""
        self.db.close()
