"""The machines, workers and shards of a cluster."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import UsageError
from recrawl.serve.api import service as api
from recrawl.serve.dashboard.views import Views

_LATE = 60.0
"""Seconds without a report after which a shard of a run is marked."""


def cluster(views: Views, request: Request) -> Response:
    """Show nodes, shards, leases and the run under way."""
    found = api.cluster(views.context)
    return views.show(
        request,
        "cluster.html",
        state=found,
        late=_LATE,
        links=sum(shard.links for shard in found.shards),
        unowned=[shard.shard for shard in found.shards if not shard.worker],
    )


def change(views: Views, request: Request, given: FormData) -> Response:
    """Drain a node or worker, let a node have shards again, or move a shard."""
    del request
    node, worker, shard = (str(given.get(name, "")) for name in ("node", "worker", "shard"))
    match given.get("do"):
        case "drain" | "undo":
            api.drain(views.context, node=node, worker=worker, draining=given.get("do") == "drain")
        case "move":
            if not shard.isascii() or not shard.isdecimal() or len(shard) > 6:
                raise UsageError(f"invalid shard '{shard[:20]}'; use its number")
            api.move_shard(views.context, shard=int(shard), node=node)
        case _:
            raise UsageError(f"unknown action '{str(given.get('do'))[:20]}'; use drain, undo or move")
    return RedirectResponse("/cluster", 303)
