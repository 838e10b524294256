"""A node of a cluster on this machine: Ray's processes, in the foreground until it is stopped.

The first node starts the coordinator. Ray's token is made for the cluster and kept in its tables: whoever can read them
can join. Ray listens on all addresses of a machine whatever it is told: without the token it refuses everybody.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.cluster.layout import Layout
from recrawl.cluster.nodes.ray_actors import ADDRESS, COORDINATOR, WORK, CoordinatorActor, resource
from recrawl.cluster.overview import state_of
from recrawl.cluster.worker import LEASE_SECONDS
from recrawl.errors import RepositoryError, UsageError
from recrawl.extras import ray, require

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
