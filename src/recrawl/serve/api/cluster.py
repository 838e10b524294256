"""API: the machines, workers and shards of a cluster."""

from __future__ import annotations

from typing import Any

from recrawl import parameters as given
from recrawl.cluster.opening import is_cluster
from recrawl.operations import operation
from recrawl.serve.api.answers import ClusterAnswer, made
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem


@operation(http="GET /cluster", commands=("cluster",), name="cluster")
def state(context: Context) -> ClusterAnswer:
    """Get the nodes, shards, workers and leases of a cluster, and the run under way."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    return made(ClusterAnswer, overview.state_of(_layout(context)).as_dict())


@operation(http="POST /cluster/move", commands=("cluster",), name="move_shard", writes=True)
def move(context: Context, *, shard: given.ShardNumber, node: given.NodeName) -> ClusterAnswer:
    """Let a shard run on a node, also during a run."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    overview.move_shard(_layout(context), shard, node)
    return _changed(context)


@operation(http="POST /cluster/drain", commands=("cluster",), writes=True)
def drain(
    context: Context,
    *,
    node: given.DrainedNode = "",
    worker: given.DrainedWorker = "",
    draining: given.Draining = True,
) -> ClusterAnswer:
    """Let the shards of a node or of one worker go elsewhere, also during a run."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    if bool(node) == bool(worker):
        raise Problem(400, "Name a node or a worker.", field="node")
    if worker:
        overview.drain_worker(_layout(context), worker)
    else:
        overview.drain_node(_layout(context), node, draining=draining)
    return _changed(context)


def _changed(context: Context) -> ClusterAnswer:
    """Return the state after a change; pages that were rendered before it are rendered again."""
    with context.writing() as repository:
        repository.remember("cluster:changed", context.clock())
    return state(context)


def _layout(context: Context) -> Any:
    if not is_cluster(context.folder):
        raise Problem(404, "This repository is not a cluster.")
    from recrawl.cluster.layout import layout_of  # lazy: needs the extra `postgres`

    return layout_of(context.folder)
