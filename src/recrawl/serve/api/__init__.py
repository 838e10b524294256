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
"""

from starlette.routing import Route

from recrawl.serve.api import asking, control, keeping, pages, telling, trying
from recrawl.serve.api.openapi import document
from recrawl.serve.api.table import Arguments, Operation, route
from recrawl.serve.context import Context


def openapi(_: Context, __: Arguments) -> dict[str, object]:
    """This document."""
    return document(OPERATIONS)


OPERATIONS: tuple[Operation, ...] = (
    *asking.OPERATIONS,
    *pages.OPERATIONS,
    *keeping.OPERATIONS,
    *control.OPERATIONS,
    *telling.OPERATIONS,
    *trying.OPERATIONS,
    Operation(method="GET", path="/openapi.json", name="openapi", summary="This document.", answer=openapi),
)
"""Everything that the API can do."""


def routes(context: Context) -> list[Route]:
    """The operations as routes."""
    return [route(operation, context) for operation in OPERATIONS]
