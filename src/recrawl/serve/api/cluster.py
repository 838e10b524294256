"""API: the machines, workers and shards of a cluster."""

from __future__ import annotations

from typing import Any

from recrawl.cluster.opening import is_cluster
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import Arguments, Operation
from recrawl.serve.context import Context
from recrawl.serve.problems import Problem


def state(context: Context, _: Arguments) -> dict[str, Any]:
    """Return nodes, shards with their workers and leases, and the run under way."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    return overview.state_of(_layout(context)).as_dict()


def move(context: Context, given: Arguments) -> dict[str, Any]:
    """Let a shard run on a node."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    overview.move_shard(_layout(context), given["shard"], given["node"])
    return _changed(context)


def drain(context: Context, given: Arguments) -> dict[str, Any]:
    """Let the shards of a node, or of one worker, go elsewhere."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    if bool(given["node"]) == bool(given["worker"]):
        raise Problem(400, "Name a node or a worker.", field="node")
    if given["worker"]:
        overview.drain_worker(_layout(context), given["worker"])
    else:
        overview.drain_node(_layout(context), given["node"], draining=given["draining"])
    return _changed(context)


def _changed(context: Context) -> dict[str, Any]:
    """Return the state after a change; pages that were rendered before it are rendered again."""
    with context.writing() as repository:
        repository.remember("cluster:changed", context.clock())
    return state(context, {})


def _layout(context: Context) -> Any:
    if not is_cluster(context.folder):
        raise Problem(404, "This repository is not a cluster.")
    from recrawl.cluster.layout import layout_of  # lazy: needs the extra `postgres`

    return layout_of(context.folder)


OPERATIONS = (
    Operation(
        method="GET",
        path="/cluster",
        name="cluster",
        verbs=("cluster",),
        summary="Get the nodes, shards, workers and leases of a cluster, and the run under way.",
        answer=state,
    ),
    Operation(
        method="POST",
        path="/cluster/move",
        name="move_shard",
        verbs=("cluster",),
        summary="Let a shard run on a node, also during a run.",
        answer=move,
        body=(
            Field("shard", "integer", "Number of the shard.", required=True, least=0, most=2**31),
            Field("node", "string", "Name of the node.", required=True),
        ),
    ),
    Operation(
        method="POST",
        path="/cluster/drain",
        name="drain",
        verbs=("cluster",),
        summary="Let the shards of a node or of one worker go elsewhere, also during a run.",
        answer=drain,
        body=(
            Field("node", "string", "Name of the node.", default=""),
            Field("worker", "string", "Name of the worker: it ends, and another one takes its shard.", default=""),
            Field("draining", "boolean", "False lets a node have shards again.", default=True),
        ),
    ),
)
