"""`recrawl cluster`: run the nodes of a cluster, and look at it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say, table
from recrawl.cli.terminal.signals import Stop

if TYPE_CHECKING:
    from recrawl.cluster.layout import Layout

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Store = Annotated[
    str,
    typer.Option(
        "--store", metavar="URL", help="The cluster's store, on a machine without its folder: 'postgresql://...'."
    ),
]
Node = Annotated[str, typer.Option("--node", metavar="NAME", help="Name of this node. Default: that of the machine.")]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="IP address under which the other nodes reach this one.")]
Work = Annotated[
    Path | None, typer.Option("--work", metavar="DIR", help="Folder for the shards that run here. Default: ./work.")
]
Lease = Annotated[float, typer.Option(metavar="SECONDS", help="Length of the leases of shards.")]


def _layout(ctx: typer.Context, store: str) -> Layout:
    from recrawl.cluster.layout import layout_at, layout_of  # lazy: needs the extra `postgres`

    return layout_at(store) if store else layout_of(ctx.obj or Path())


def _node_options(node: str, host: str, work: Path | None, **more: Any) -> Any:
    from recrawl.cluster.nodes import NodeOptions  # lazy: needs the extra `ray`

    return NodeOptions(name=node or socket.gethostname(), host=host, work=work or Path("work"), **more)


def _end(text: str, json: bool, **fields: Any) -> None:
    """Print what was done."""
    as_json(fields) if json else say(text)


@app.command(epilog="Example: recrawl cluster start --host 10.0.0.1")
def start(
    ctx: typer.Context,
    store: Store = "",
    node: Node = "",
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port under which other nodes join.")] = 6379,
    work: Work = None,
    lease: Lease = 30.0,
    json: AsJson = False,
) -> None:
    """Run the first node of a cluster, with the coordinator, until Ctrl-C or 'recrawl cluster stop'.

    Shards run on all nodes that have joined, as many on each as on any other.
    """
    from recrawl.cluster.nodes import start_cluster  # lazy: needs the extra `ray`

    options = _node_options(node, host, work, port=port, lease=lease)
    start_cluster(_layout(ctx, store), options, Stop(), note)
    _end(f"node {options.name} has stopped", json, node=options.name)


@app.command(epilog="Example: recrawl cluster join 10.0.0.1:6379 --store 'postgresql://me@db/crawl?schema=news'")
def join(
    ctx: typer.Context,
    address: Annotated[str, typer.Argument(help="Address of the first node. Default: where it was started.")] = "",
    store: Store = "",
    node: Node = "",
    host: Host = "127.0.0.1",
    work: Work = None,
    json: AsJson = False,
) -> None:
    """Run another node of a cluster until Ctrl-C or 'recrawl cluster stop'. It gets shards, also during a run.

    It needs the URL of the store and the keys of the object store, as on the first node.
    """
    from recrawl.cluster.nodes import join_cluster  # lazy: needs the extra `ray`

    options = _node_options(node, host, work)
    join_cluster(_layout(ctx, store), options, address, Stop(), note)
    _end(f"node {options.name} has left", json, node=options.name)


@app.command(epilog="Example: recrawl cluster status --json")
def status(ctx: typer.Context, store: Store = "", json: AsJson = False) -> None:
    """Show the nodes, the shards with their workers and leases, and the run under way."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    state = overview.state_of(_layout(ctx, store)).as_dict()
    if json:
        as_json(state)
        return
    run = state["run"]
    say(f"coordinator: {state['coordinator'] or 'none'}")
    say(f"run: {run['kind']} {run['id']}, {run['visits']:,} visits" if run else "run: none")
    say()
    nodes = ({**it, "shards": len(it["shards"]), "seen": f"{it['seen']:.0f} s ago"} for it in state["nodes"])
    table(nodes, {"name": "node", "host": "host", "shards": ">shards", "seen": ">seen", "draining": "draining"})
    say()
    columns = {"shard": ">shard", "node": "node", "lease": ">lease", "state": "state", "visits": ">visits"}
    table(state["shards"], {**columns, "lag": ">lag", "links": ">links", "problem": "problem"})


@app.command(epilog="Example: recrawl cluster stop")
def stop(ctx: typer.Context, store: Store = "", json: AsJson = False) -> None:
    """Stop all nodes after recording what was downloaded. A run under way goes on after the next start."""
    from recrawl.cluster.nodes import stop_cluster  # lazy: needs the extra `ray`

    stop_cluster(_layout(ctx, store))
    _end("asked all nodes to stop", json, stopping=True)


@app.command(epilog="Example: recrawl cluster move 7 machine-2")
def move(
    ctx: typer.Context,
    shard: Annotated[int, typer.Argument(help="Number of the shard.")],
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    store: Store = "",
    json: AsJson = False,
) -> None:
    """Let a shard run on a node, also during a run."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    overview.move_shard(_layout(ctx, store), shard, node)
    _end(f"shard {shard} goes to {node}", json, shard=shard, node=node)


@app.command(epilog="Example: recrawl cluster drain machine-2")
def drain(
    ctx: typer.Context,
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    undo: Annotated[bool, typer.Option("--undo", help="Let it have shards again.")] = False,
    store: Store = "",
    json: AsJson = False,
) -> None:
    """Let the shards of a node go to others, also during a run; it gets no shards until --undo."""
    from recrawl.cluster import overview  # lazy: needs the extra `postgres`

    overview.drain_node(_layout(ctx, store), node, draining=not undo)
    said = f"{node} {'may have shards again' if undo else 'gives its shards to others'}"
    _end(said, json, node=node, draining=not undo)
