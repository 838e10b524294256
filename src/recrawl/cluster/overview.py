"""What a cluster is doing: nodes, shards with their workers and leases, the coordinator, the run under way."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from recrawl.cluster.layout import Layout
from recrawl.cluster.run_requests import counts_of
from recrawl.crawl.tally import from_row
from recrawl.errors import NotKnown, UsageError
from recrawl.record.store.postgres.cluster.store import ClusterStore

AWAY = 20.0
"""Seconds after which a node that was not seen counts as gone."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A machine of the cluster."""

    name: str
    host: str
    draining: bool
    seen: float
    """Seconds since it was seen."""
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShardState:
    """A shard of the cluster."""

    shard: int
    worker: str
    """Who owns it; empty if nobody does."""
    node: str
    lease: float
    """Seconds until its lease ends, unless it is renewed."""
    wanted: str
    """The node on which it shall run, if it was moved by hand."""
    state: str
    """What it does in the run under way: ready, running, idle, done, failed; empty without a run."""
    visits: int
    """In the run under way."""
    lag: float
    """Seconds since its last report in the run under way."""
    links: int
    """Links of other shards that wait for it."""
    problem: str


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster."""

    store: str
    shards: tuple[ShardState, ...]
    nodes: tuple[NodeState, ...]
    coordinator: str
    """Who leads; empty if nobody does."""
    run: dict[str, Any] | None
    """The run under way: id, kind, policy, budget, visits."""

    def as_dict(self) -> dict[str, Any]:
        """As `recrawl cluster status --json` prints it."""
        return asdict(self)


def state_of(layout: Layout) -> ClusterState:
    """The state of a cluster now."""
    with closing(layout.open()) as cluster:
        nodes = {worker.name: worker.node for worker in cluster.nodes.workers()}
        shards = _shards(cluster, layout.shards, nodes)
        return ClusterState(
            store=layout.target.name,
            shards=shards,
            nodes=tuple(
                NodeState(
                    *(row.name, row.host, row.draining, row.age),
                    tuple(it.shard for it in shards if it.node == row.name),
                )
                for row in cluster.nodes.nodes()
            ),
            coordinator=cluster.leader(),
            run=_run(cluster),
        )


def move_shard(layout: Layout, shard: int, node: str) -> None:
    """Let a shard run on a node; it is moved while a run is under way, too."""
    layout.store_of(shard)  # raises for a shard that does not exist
    with closing(layout.open()) as cluster:
        _check_node(cluster, node)
        cluster.nodes.place(shard, node)


def drain_node(layout: Layout, node: str, *, draining: bool = True) -> None:
    """Let the shards of a node go elsewhere, and none come; or let it have shards again."""
    with closing(layout.open()) as cluster:
        _check_node(cluster, node)
        others = [row for row in cluster.nodes.nodes() if row.name != node and not row.draining and row.age < AWAY]
        if draining and not others:
            raise UsageError(f"{node} is the only node that can run shards: start another one first")
        cluster.nodes.drain_node(node, draining=draining)


def drain_worker(layout: Layout, worker: str) -> None:
    """Let a worker record what it has downloaded, release its shard and end; another one takes the shard."""
    with closing(layout.open()) as cluster:
        if not cluster.nodes.drain_worker(worker):
            raise NotKnown(f"there is no worker '{worker[:80]}' in this cluster; 'recrawl cluster status' lists them")


def _check_node(cluster: ClusterStore, name: str) -> None:
    known = [row.name for row in cluster.nodes.nodes()]
    if name not in known:
        raise NotKnown(f"there is no node '{name}' in this cluster; there are {', '.join(known) or 'none'}")


def _shards(cluster: ClusterStore, number: int, nodes: dict[str, str]) -> tuple[ShardState, ...]:
    run = cluster.runs.current()
    parts = {} if run is None else cluster.runs.shards(run.id)
    leases = {lease.shard: lease for lease in cluster.leases.holders()}
    wanted, states = cluster.nodes.placements(), []
    for shard in range(number):
        lease, part = leases.get(shard), parts.get(shard)
        worker = "" if lease is None else lease.worker
        states.append(
            ShardState(
                shard=shard,
                worker=worker,
                node=nodes.get(worker, ""),
                lease=0.0 if lease is None else round(lease.seconds, 1),
                wanted=wanted.get(shard, ""),
                state="" if part is None else part.state,
                visits=0 if part is None else from_row(part.tally).visits,
                lag=0.0 if part is None else round(part.age, 1),
                links=cluster.links.count(shard),
                problem="" if part is None else part.problem,
            )
        )
    return tuple(states)


def _run(cluster: ClusterStore) -> dict[str, Any] | None:
    run = cluster.runs.current()
    if run is None:
        return None
    visits = counts_of(cluster, run.id).visits
    return {"id": run.id, "kind": run.kind, "policy": run.policy, "budget": run.visits, "visits": visits}
