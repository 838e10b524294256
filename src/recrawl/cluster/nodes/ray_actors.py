"""Workers and coordinator as Ray actors. Ray places and restarts them; no data and no decision goes through it.

Every node has a resource of its own name, by which an actor is bound to it. The name of an actor tells its shard and
its node, so that a coordinator that is started again finds what is there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.nodes.supervisor import Supervisor
from recrawl.cluster.worker import ShardWorker
from recrawl.extras import ray

WORK = "RECRAWL_WORK"
"""The environment variable with the folder for working folders on a node."""
ADDRESS = "RECRAWL_ADDRESS"
"""The environment variable with the address under which others reach a node."""
COORDINATOR = "coordinator"
_SHARD = "shard"
_PART = 0.0001
"""What an actor takes of its node's resource, of which a node has 1."""


def resource(node: str) -> str:
    """The resource that only this node has."""
    return f"recrawl-{node}"


def _in_thread(work: Callable[[], None]) -> threading.Thread:
    """Run work in a thread; a failure ends the process, which Ray starts again."""

    def guarded() -> None:
        try:
            work()
        finally:
            if sys.exc_info()[0] is not None:
                sys.excepthook(*sys.exc_info())
                os._exit(1)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


class ShardActor:
    """The worker of one shard."""

    def __init__(self, layout: Layout, shard: int, node: str, seconds: float) -> None:
        given: dict[str, Any] = {"node": node, "seconds": seconds, "address": os.environ[ADDRESS], "notify": print}
        self._worker = ShardWorker(layout, shard, Path(os.environ[WORK]), **given)
        self._ending = False
        self._thread = _in_thread(self._work)

    def _work(self) -> None:
        self._worker.run()
        if not self._ending:  # it was drained: Ray starts another one
            os._exit(1)

    def end(self) -> None:
        """Record what was downloaded, release the lease, and end this process."""
        self._ending = True
        self._worker.end()
        self._thread.join()
        ray.actor.exit_actor()  # a node that ends with an actor on it takes half a minute


class CoordinatorActor:
    """The coordinator of a cluster, with its supervisor."""

    def __init__(self, layout: Layout, seconds: float) -> None:
        self._supervisor = Supervisor(RayLauncher(layout, seconds), layout.shards)
        self._coordinator = ClusterCoordinator(layout, notify=print, also=self._supervisor)
        self._thread = _in_thread(self._coordinator.run)

    def close(self) -> bool:
        """End all workers; whether they have ended, so ask again until they have."""
        self._supervisor.close()
        if not self._supervisor.closed:
            return False
        self._coordinator.end()
        self._thread.join()
        return True


class RayLauncher:
    """Starts and ends workers through Ray."""

    def __init__(self, layout: Layout, seconds: float) -> None:
        self._layout, self._seconds = layout, seconds
        self._ending: dict[str, Any] = {}

    def nodes(self) -> dict[str, str]:
        """The nodes that are there, each with its host."""
        alive = [node for node in ray.nodes() if node["Alive"]]
        return {
            name.removeprefix("recrawl-"): str(node["NodeManagerHostname"])
            for node in alive
            for name in node["Resources"]
            if name.startswith("recrawl-")
        }

    def placed(self) -> dict[int, str]:
        """The node of each shard that has a worker."""
        parts = [name.split("/", 2) for name in ray.util.list_named_actors()]
        return {int(shard): node for kind, shard, node in (part for part in parts if part[0] == _SHARD)}

    def start(self, shard: int, node: str) -> None:
        """Start the worker of a shard on a node."""
        actor = ray.remote(ShardActor).options(
            name=_name(shard, node),
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,
            num_cpus=0,
            resources={resource(node): _PART},
        )
        actor.remote(self._layout, shard, node, self._seconds)

    def end(self, shard: int, node: str) -> bool:
        """Ask a worker to end; whether it has ended."""
        name = _name(shard, node)
        if name not in self._ending:
            actor = _found(name)
            if actor is not None:
                self._ending[name] = actor.end.remote()
            return actor is None
        done, _ = ray.wait([self._ending[name]], timeout=0)
        if done:
            del self._ending[name]
            self.forget(shard, node)
        return bool(done)

    def forget(self, shard: int, node: str) -> None:
        """Remove an actor."""
        actor = _found(_name(shard, node))
        if actor is not None:
            ray.kill(actor, no_restart=True)


def _found(name: str) -> Any:
    """The actor of a name; None if it is gone."""
    try:
        return ray.get_actor(name)
    except ValueError:
        return None


def _name(shard: int, node: str) -> str:
    return f"{_SHARD}/{shard}/{node}"
