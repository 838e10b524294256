"""The JSON API under /api/v1.

table.py      what an operation is, and how it becomes a route
fields.py     the values that clients send
openapi.py    the document, made from the table
asking.py     questions about the repository
pages.py      questions about one page
keeping.py    settings, seeds and filters
control.py    the scheduler, events
telling.py    alerts, subscriptions
trying.py     comparisons of policies, rates
working.py    files, and commands that take long as jobs
"""

from starlette.routing import Route

from recrawl.serve.api import alerts, control, jobs, lab, pages, queries, settings
from recrawl.serve.api.openapi import document
from recrawl.serve.api.operations import Arguments, Operation, route
from recrawl.serve.context import Context


def openapi(_: Context, __: Arguments) -> dict[str, object]:
    """This document."""
    return document(OPERATIONS)


OPERATIONS: tuple[Operation, ...] = (
    *queries.OPERATIONS,
    *pages.OPERATIONS,
    *settings.OPERATIONS,
    *control.OPERATIONS,
    *alerts.OPERATIONS,
    *lab.OPERATIONS,
    *jobs.OPERATIONS,
    Operation(method="GET", path="/openapi.json", name="openapi", summary="This document.", answer=openapi),
)
"""Everything that the API can do."""

NOT_OVER_HTTP = {
    "init": "the service has a repository already",
    "serve": "it is what answers",
    "demo": "it builds a web and a repository of its own in a temporary folder, and shows them on a terminal",
    "lab serve": "it is a server itself, and would run until it is stopped; it is for tests beside the service",
}
"""Commands that the API does not have, and why."""


def routes(context: Context) -> list[Route]:
    """The operations as routes."""
    return [route(operation, context) for operation in OPERATIONS]
