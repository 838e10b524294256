"""The JSON API under /api/v1: operations, each a typed function (see `recrawl.operations`).

Operations that need the repository alone are its methods (`recrawl.Repository.add`): a route calls them. Those here
need the service too.

routes.py    how an operation becomes a route
openapi.py   the OpenAPI document, made from the operations
service.py   the scheduler, events, what has limits over HTTP, a cluster's machines
jobs.py      uploaded files, and long commands as jobs
"""

import sys
from typing import Any

from starlette.routing import Route

from recrawl.operations import Operation, declared, operation
from recrawl.repository.repository import Repository
from recrawl.serve.api import jobs, service
from recrawl.serve.api.openapi import document
from recrawl.serve.api.routes import by_number, route
from recrawl.serve.context import Context


@operation(http="GET /openapi.json")
def openapi(_: Context) -> dict[str, Any]:
    """Get the OpenAPI document."""
    return document(OPERATIONS)


_DECLARED = tuple(
    one for place in (Repository, service, jobs, sys.modules[__name__]) for one in declared(place).values() if one.http
)
_BY_NUMBER = (by_number(one) for one in _DECLARED if one.path == "/page" or one.path.startswith("/page/"))
OPERATIONS: tuple[Operation, ...] = (*_DECLARED, *_BY_NUMBER)
"""All operations of the API."""

NOT_OVER_HTTP = {
    "init": "the service already has a repository",
    "serve": "it is the running service",
    "mcp": "the service answers assistants at /mcp",
    "check": "it reads the whole archive, and its repairs are for whoever has the files",
    "erase": "it cannot be undone, so it is for whoever has the files",
    "thin": "it writes archive files anew; the service does it by itself where `disk` is set",
    "access": "its secrets and certificates belong to whoever has the files",
    "completion": "it prints a script for a shell",
    "chunks": "it reads every changed page from the archive and keeps its place in a file of the caller",
    "plugins": "it imports what is installed, which is for whoever installs it",
    "move": "it needs the repository for itself, and the password of a database",
    "sink": "its secrets and folders belong to whoever has the files; /sinks and /deliveries have the rest",
    "watch": "it runs until it is stopped; POST /seeds adds a site, which is crawled at once",
    "demo": "it creates a demo web and repository in a temporary folder and shows them on a terminal",
    "lab extract": "it reads a file of pages for evaluations, next to the file",
    "lab label": "it judges a list of pairs of versions for evaluations, next to the archives",
    "lab serve": "it is a test server that runs until it is stopped",
}
"""Commands without an API operation, and why."""


def routes(context: Context) -> list[Route]:
    """Return the routes of all operations."""
    return [route(operation, context) for operation in OPERATIONS]
