"""The supervisor: lets a worker run for every shard, on the node where it shall be.

It is called now and then while the coordinator leads. Nodes that have come get shards from the fullest ones; shards of
a node that drains go elsewhere; shards of a node that is gone are started again. A shard that moves is ended first: its
worker records what was downloaded and releases the lease. While a run is under way, its successor goes on with it.
"""

from __future__ import annotations

from typing import Protocol

from recrawl.cluster.nodes.balance import balanced
from recrawl.cluster.overview import AWAY
from recrawl.record.store.postgres.cluster.store import ClusterStore

_FORGOTTEN = 600.0
"""Seconds after which a worker that was killed is no longer listed."""


class Launcher(Protocol):
    """Starts and ends the workers of shards on nodes."""

    def nodes(self) -> dict[str, str]:
        """The nodes that are there, each with its host."""
        ...

    def placed(self) -> dict[int, str]:
        """The node of each shard that has a worker."""
        ...

    def start(self, shard: int, node: str) -> None:
        """Start the worker of a shard on a node."""
        ...

    def end(self, shard: int, node: str) -> bool:
        """Ask a worker to end, if it was not asked before; whether it has ended."""
        ...

    def forget(self, shard: int, node: str) -> None:
        """A worker is gone with its node: do not start it there again."""
        ...


class Supervisor:
    """Keeps the workers of all shards where they shall be."""

    def __init__(self, launcher: Launcher, shards: int) -> None:
        self._launcher, self._shards = launcher, shards
        self._closing = False

    def __call__(self, cluster: ClusterStore) -> None:
        """Look at nodes and shards, and act on it."""
        alive = self._launcher.nodes()
        for name, host in alive.items():
            cluster.nodes.node_seen(name, host)
        cluster.nodes.forget_workers(_FORGOTTEN)
        known = cluster.nodes.nodes()
        for row in known:
            if row.name not in alive and row.age > AWAY:
                cluster.nodes.node_gone(row.name)
        draining = {row.name for row in known if row.draining}
        placed = self._launcher.placed()
        for shard, node in list(placed.items()):
            if node not in alive:
                self._launcher.forget(shard, node)
                del placed[shard]
        usable = [name for name in alive if name not in draining]
        where = {} if self._closing else balanced(self._shards, usable, placed, cluster.nodes.placements())
        for shard in range(self._shards):
            self._move(shard, placed.get(shard), where.get(shard))

    def _move(self, shard: int, here: str | None, there: str | None) -> None:
        if here == there:
            return
        if (here is None or self._launcher.end(shard, here)) and there is not None:
            self._launcher.start(shard, there)

    def close(self) -> None:
        """From now on, end all workers."""
        self._closing = True

    @property
    def closed(self) -> bool:
        """Whether all workers have ended after `close`."""
        return self._closing and not self._launcher.placed()
