"""The JSON API under /api/v1. Each module below `openapi` declares its operations in a tuple OPERATIONS.

operations.py   what an operation is, and how it becomes a route
fields.py       declaration and validation of request values
openapi.py      the OpenAPI document, generated from the operations
queries.py      status, sites, pages, changes, search, cycles, policies
pages.py        one page: versions, visits, text, diff, reasons, prediction
settings.py     settings, seeds, noise filters, anchors
control.py      scheduler and event stream
cluster.py      machines, workers and shards of a cluster
alerts.py       alert rules, outbox, WebSub subscriptions
marks.py        requested visits, tags, read marks, saved filters
lab.py          policy comparison and change rates
jobs.py         uploaded files and long commands as jobs
"""

from starlette.routing import Route

from recrawl.serve.api import alerts, cluster, control, jobs, lab, marks, pages, queries, settings
from recrawl.serve.api.openapi import document
from recrawl.serve.api.operations import Arguments, Operation, route
from recrawl.serve.context import Context


def openapi(_: Context, __: Arguments) -> dict[str, object]:
    """Return the OpenAPI document."""
    return document(OPERATIONS)


OPERATIONS: tuple[Operation, ...] = (
    *queries.OPERATIONS,
    *pages.OPERATIONS,
    *settings.OPERATIONS,
    *control.OPERATIONS,
    *cluster.OPERATIONS,
    *alerts.OPERATIONS,
    *marks.OPERATIONS,
    *lab.OPERATIONS,
    *jobs.OPERATIONS,
    Operation(method="GET", path="/openapi.json", name="openapi", summary="Get the OpenAPI document.", answer=openapi),
)
"""All operations of the API."""

NOT_OVER_HTTP = {
    "init": "the service already has a repository",
    "serve": "it is the running service",
    "check": "it reads the whole archive, and its repairs are for whoever has the files",
    "access": "its secrets and certificates belong to whoever has the files",
    "completion": "it prints a script for a shell",
    "chunks": "it reads every changed page from the archive and keeps its place in a file of the caller",
    "plugins": "it imports what is installed, which is for whoever installs it",
    "move": "it needs the repository for itself, and the password of a database",
    "sink": "its secrets and folders belong to whoever has the files; the service delivers after each cycle",
    "demo": "it creates a demo web and repository in a temporary folder and shows them on a terminal",
    "lab label": "it judges a list of pairs of versions for evaluations, next to the archives",
    "lab serve": "it is a test server that runs until it is stopped",
}
"""Commands without an API operation, and why."""


def routes(context: Context) -> list[Route]:
    """Return the routes of all operations."""
    return [route(operation, context) for operation in OPERATIONS]
