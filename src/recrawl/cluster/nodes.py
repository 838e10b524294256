"""The machines of a cluster: a worker for every shard, on the node where it shall be. Only this package knows Ray."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.overview import AWAY, state_of
from recrawl.cluster.worker import LEASE_SECONDS, ShardWorker
from recrawl.errors import RepositoryError, UsageError
from recrawl.extras import ray, require
from recrawl.record.store.postgres.cluster.store import ClusterStore

# --------------------------------------------------------------------------------------------------------------------
# Which shard runs on which node: as many on each as on any other, with as few moves as possible. No I/O.


def balanced(
    shards: int, nodes: Sequence[str], placed: Mapping[int, str], wanted: Mapping[int, str] | None = None
) -> dict[int, str]:
    """Return the node of each shard; empty without nodes.

    `nodes` are those that may have shards, `placed` is where shards are, `wanted` where the user wants some of them.

    >>> balanced(4, ["a", "b"], {0: "a", 1: "a", 2: "a", 3: "a"})
    {0: 'b', 1: 'b', 2: 'a', 3: 'a'}
    >>> balanced(3, ["a", "b"], {0: "gone"}, {2: "b"})
    {0: 'a', 1: 'a', 2: 'b'}
    """
    if not nodes:
        return {}
    pinned = {shard: node for shard, node in (wanted or {}).items() if node in nodes and shard < shards}
    where = pinned | {shard: node for shard, node in placed.items() if node in nodes and shard not in pinned}
    load = Counter(dict.fromkeys(nodes, 0))
    load.update(where.values())

    def emptiest() -> str:
        return min(nodes, key=lambda node: load[node])

    for shard in range(shards):
        if shard not in where:
            where[shard] = emptiest()
            load[where[shard]] += 1
    for shard in range(shards):
        if shard not in pinned and load[where[shard]] - load[emptiest()] > 1:
            load[where[shard]] -= 1
            where[shard] = emptiest()
            load[where[shard]] += 1
    return dict(sorted(where.items()))


# --------------------------------------------------------------------------------------------------------------------
# The supervisor: lets a worker run for every shard, on the node where it shall be.
#
# It is called now and then while the coordinator leads. Nodes that have come get shards from the fullest ones; shards
# of a node that drains go elsewhere; shards of a node that is gone are started again. A shard that moves is ended
# first: its worker records what was downloaded and releases the lease. While a run is under way, its successor goes on
# with it.


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


# --------------------------------------------------------------------------------------------------------------------
# Workers and coordinator as Ray actors. Ray places and restarts them; no data and no decision goes through it.
#
# Every node has a resource of its own name, by which an actor is bound to it. The name of an actor tells its shard and
# its node, so that a coordinator that is started again finds what is there.


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


# --------------------------------------------------------------------------------------------------------------------
# A node of a cluster on this machine: Ray's processes, in the foreground until it is stopped.
#
# The first node starts the coordinator. Ray's token is made for the cluster and kept in its tables: whoever can read
# them can join. Ray listens on all addresses of a machine whatever it is told: without the token it refuses everybody.


_START_SECONDS = 90.0
_END_SECONDS = 60.0
_POLL = 0.5
_OBJECT_STORE = 80_000_000
"""Bytes of Ray's object store, its least: nothing large goes through it."""
_ADDRESS, _TOKEN, _STOPPING = "ray address", "ray token", "stopping"
_RECORDING = "stopping: workers record what was downloaded"


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How a node runs."""

    name: str
    """Unique in the cluster."""
    host: str = "127.0.0.1"
    """The address under which other nodes reach it."""
    port: int = 6379
    """Of the first node."""
    work: Path = Path("work")
    """The folder for the working folders of shards."""
    lease: float = LEASE_SECONDS


def start_cluster(
    layout: Layout, options: NodeOptions, stop: Callable[[], bool], notify: Callable[[str], None] = lambda _: None
) -> None:
    """Run the first node and the coordinator until `stop` returns True or the cluster is asked to stop."""
    address = f"{options.host}:{options.port}"
    with closing(layout.open()) as cluster:
        if cluster.leader():
            raise UsageError("this cluster is running; stop it with 'recrawl cluster stop', or join it")
        cluster.set_fact(_STOPPING, "")
        cluster.set_fact(_ADDRESS, address)
        cluster.set_fact(_TOKEN, cluster.fact(_TOKEN) or secrets.token_hex(32))
    with _node(layout, options, ["--head", f"--port={options.port}", "--include-dashboard=false"]) as node:
        _connect(address, node, stop)
        actor = ray.remote(CoordinatorActor).options(
            name=COORDINATOR, get_if_exists=True, lifetime="detached", max_restarts=-1, num_cpus=0
        )
        coordinator = actor.remote(layout, options.lease)
        notify(f"node {options.name} runs; others join with: recrawl cluster join {address}")
        _wait(layout, node, stop)
        notify(_RECORDING)
        until = time.monotonic() + _END_SECONDS
        while time.monotonic() < until and not ray.get(coordinator.close.remote()):
            time.sleep(_POLL)
        ray.kill(coordinator, no_restart=True)  # else Ray's processes wait half a minute for it
        ray.shutdown()


def join_cluster(
    layout: Layout,
    options: NodeOptions,
    address: str,
    stop: Callable[[], bool],
    notify: Callable[[str], None] = lambda _: None,
) -> None:
    """Run another node until `stop` returns True or the cluster is asked to stop; then its shards go elsewhere."""
    with closing(layout.open()) as cluster:
        address = address or cluster.fact(_ADDRESS)
    if not address:
        raise UsageError("this cluster is not running; start it with 'recrawl cluster start'")
    with _node(layout, options, [f"--address={address}"]) as node:
        notify(f"node {options.name} has joined {address}")
        _wait(layout, node, stop)
        with closing(layout.open()) as cluster:
            leaving = not cluster.fact(_STOPPING)
            if leaving and not cluster.nodes.drain_node(options.name):
                return
            notify("leaving: the shards of this node go elsewhere" if leaving else _RECORDING)
            until = time.monotonic() + _END_SECONDS
            while time.monotonic() < until and node.poll() is None and _has_shards(layout, options.name):
                time.sleep(_POLL)
            if leaving:
                cluster.nodes.node_gone(options.name)


def _has_shards(layout: Layout, node: str) -> bool:
    return any(shard.node == node for shard in state_of(layout).shards)


def stop_cluster(layout: Layout) -> None:
    """Ask all nodes to end; a run under way is resumed after the next start."""
    with closing(layout.open()) as cluster:
        cluster.set_fact(_STOPPING, "yes")


@contextmanager
def _node(layout: Layout, options: NodeOptions, words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Ray's processes of a node."""
    require("ray")
    with closing(layout.open()) as cluster:
        token = cluster.fact(_TOKEN)
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        WORK: str(options.work.resolve()),
        ADDRESS: options.host,
    }
    command = [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"),
        *(f"--node-ip-address={options.host}", f"--object-store-memory={_OBJECT_STORE}"),
        *(f"--resources={json.dumps({resource(options.name): 1})}", *words),
    ]
    options.work.mkdir(parents=True, exist_ok=True)
    with (options.work / f"ray-{options.name}.log").open("ab") as log:
        # Its own session: Ctrl-C is for us.
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)  # noqa: S603
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def _connect(address: str, node: subprocess.Popen[bytes], stop: Callable[[], bool]) -> None:
    """Connect to the first node once it is there."""
    given: dict[str, Any] = {"namespace": "recrawl", "log_to_driver": False, "logging_level": "ERROR"}
    until, handler = time.monotonic() + _START_SECONDS, signal.getsignal(signal.SIGTERM)
    while not stop():
        if node.poll() is not None or time.monotonic() > until:
            raise RepositoryError(f"Ray does not start at {address}: see ray-NODE.log in its folder")
        if _listens(address):  # else Ray would wait for most of a minute, whether its node has ended or not
            try:
                ray.init(address=address, **given)
            except ConnectionError:
                pass
            else:
                return
            finally:
                signal.signal(signal.SIGTERM, handler)  # Ray's own would end this process at once
        time.sleep(_POLL)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=_POLL):
        return True
    return False


def _wait(layout: Layout, node: subprocess.Popen[bytes], stop: Callable[[], bool]) -> None:
    """Wait until this node or the cluster shall end, or Ray has ended."""
    with closing(layout.open()) as cluster:
        while not stop() and node.poll() is None and not cluster.fact(_STOPPING):
            time.sleep(_POLL)
