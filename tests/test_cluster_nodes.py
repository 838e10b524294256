"""Which shard runs on which node, and how shards move; Ray itself is tried by `python -m benchmarks.cluster_demo`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.cluster import nodes, overview
from recrawl.cluster.coordinator import ClusterCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.nodes import NodeOptions, Supervisor, _connect, balanced, join_cluster
from recrawl.errors import NotKnown, RepositoryError, UsageError
from tests import clusters
from tests.world import command

NewCluster = Callable[[int], Layout]
names = st.sampled_from("abcde")


@given(
    st.integers(1, 40),
    st.lists(names, unique=True, min_size=1),
    st.dictionaries(st.integers(0, 39), names),
    st.dictionaries(st.integers(0, 39), names, max_size=3),
)
def test_nodes_have_as_many_shards_and_few_move(
    shards: int, nodes: list[str], placed: dict[int, str], wanted: dict[int, str]
) -> None:
    placed = {shard: node for shard, node in placed.items() if shard < shards}
    where = balanced(shards, nodes, placed, wanted)
    assert list(where) == list(range(shards))
    assert all(where[shard] == node for shard, node in wanted.items() if shard < shards and node in nodes)
    load = Counter(dict.fromkeys(nodes, 0))
    load.update(where.values())
    if not wanted:
        assert max(load.values()) - min(load.values()) <= 1
    assert balanced(shards, nodes, where, wanted) == where
    if not wanted and max(Counter(placed.values()).values(), default=0) <= shards // len(nodes):
        assert all(where[shard] == node for shard, node in placed.items() if node in nodes)


class Nodes:
    """Nodes that start nothing, and end a worker when it is asked for the second time."""

    def __init__(self, *names: str) -> None:
        self.alive = set(names)
        self.shards: dict[int, str] = {}
        self.ending: set[int] = set()

    def nodes(self) -> dict[str, str]:
        return dict.fromkeys(sorted(self.alive), "host")

    def placed(self) -> dict[int, str]:
        return dict(self.shards)

    def start(self, shard: int, node: str) -> None:
        assert shard not in self.shards
        self.shards[shard] = node

    def end(self, shard: int, node: str) -> bool:
        assert self.shards[shard] == node
        if shard not in self.ending:
            self.ending.add(shard)
            return False
        self.ending.remove(shard)
        self.forget(shard, node)
        return True

    def forget(self, shard: int, node: str) -> None:
        assert self.shards.pop(shard) == node


def test_shards_follow_nodes_that_come_drain_and_go(new_cluster: NewCluster) -> None:
    layout, nodes = new_cluster(4), Nodes("a")
    supervisor = Supervisor(nodes, 4)
    with closing(layout.open()) as cluster:
        supervisor(cluster)
        assert Counter(nodes.shards.values()) == {"a": 4}
        nodes.alive.add("b")
        for _ in range(2):
            supervisor(cluster)
        assert Counter(nodes.shards.values()) == {"a": 2, "b": 2}
        assert [row.name for row in cluster.nodes.nodes()] == ["a", "b"]
        overview.drain_node(layout, "b")
        with pytest.raises(UsageError, match="only node"):
            overview.drain_node(layout, "a")
        for _ in range(2):
            supervisor(cluster)
        assert Counter(nodes.shards.values()) == {"a": 4}
        overview.drain_node(layout, "b", draining=False)
        overview.move_shard(layout, 3, "b")
        for _ in range(2):
            supervisor(cluster)
        assert nodes.shards[3] == "b"
        nodes.alive.remove("b")
        supervisor(cluster)
        assert Counter(nodes.shards.values()) == {"a": 4}
        supervisor.close()
        for _ in range(2):
            supervisor(cluster)
        assert supervisor.closed
        with pytest.raises(NotKnown, match="no node 'c'"):
            overview.move_shard(layout, 0, "c")
        with pytest.raises(UsageError, match="no shard 9"):
            overview.move_shard(layout, 9, "a")


def test_status_shows_workers_and_leases(tmp_path: Path, new_cluster: NewCluster) -> None:
    layout, folder = new_cluster(2), tmp_path / "cluster"
    assert command("-C", folder, "cluster", "status").code == 0
    with clusters.working(ClusterCoordinator(layout), *clusters.workers(layout, tmp_path / "work")):
        state = overview.state_of(layout)
        while not state.coordinator or not all(it.worker for it in state.shards):
            state = overview.state_of(layout)
        shown = command("-C", folder, "cluster", "status")
    assert shown.code == 0, shown.err
    assert "coordinator" in shown.out
    state = overview.state_of(layout)
    assert not state.coordinator
    assert not any(it.worker for it in state.shards)


def test_a_node_whose_ray_has_ended_is_not_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as node:
        node.wait()
        began = time.monotonic()
        with pytest.raises(RepositoryError, match=r"Ray does not start at 127\.0\.0\.1"):
            _connect("127.0.0.1:1", node, lambda: False)
        assert time.monotonic() - began < 60


def test_a_node_keeps_its_handler_of_sigterm_when_it_connects_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeRay:
        def init(self, **_: Any) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Ray sets one that ends the process at once

    monkeypatch.setattr(nodes, "ray", FakeRay())
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            subprocess.Popen(["/bin/sleep", "60"]) as node,
        ):
            _connect(f"127.0.0.1:{server.getsockname()[1]}", node, lambda: False)
            node.kill()
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("stopping", ["yes", ""])
def test_a_joined_node_ends_when_its_workers_have_released_their_shards(
    new_cluster: NewCluster, monkeypatch: pytest.MonkeyPatch, stopping: str
) -> None:
    layout = new_cluster(2)
    events: list[str] = []
    with closing(layout.open()) as cluster:
        cluster.set_fact("stopping", stopping)
        cluster.nodes.node_seen("two", "host")
        cluster.nodes.worker_seen("two/1", "two", "host", 1)
        lease = cluster.leases.take(1, "two/1", 60.0)
        assert lease is not None

        @contextmanager
        def node(*_: Any) -> Iterator[Any]:
            yield SimpleNamespace(poll=lambda: None)
            events.append("node ends")

        def sleep(_: float) -> None:
            events.append("waits")
            if events.count("waits") == 2:
                cluster.leases.release(lease)

        monkeypatch.setattr(nodes, "_node", node)
        monkeypatch.setattr(time, "sleep", sleep)
        join_cluster(layout, NodeOptions("two"), "127.0.0.1:1", stop=lambda: True)
        assert events == ["waits", "waits", "node ends"]
        assert [row.name for row in cluster.nodes.nodes()] == (["two"] if stopping else [])
