"""API: outbox, and WebSub subscriptions."""

from __future__ import annotations

from starlette.requests import Request

from recrawl import parameters as given
from recrawl.operations import operation
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.push import websub
from recrawl.serve.api.answers import (
    ListAnswer,
    OutboxAnswer,
    RemovedAnswer,
    SubscriptionAnswer,
    listing,
    made,
)
from recrawl.serve.api.routes import number_after
from recrawl.serve.context import Context


@operation(http="GET /outbox")
def outbox(context: Context, *, limit: given.PageLimit = 50, after: given.After = "") -> ListAnswer[OutboxAnswer]:
    """List the updates found by alert rules, newest first, with their delivery state."""
    with context.reading() as repository:
        found = Outbox(repository).newest(limit, number_after(after, default=1 << 62))
    return listing(OutboxAnswer, found, found[-1]["id"] if len(found) == limit else None)


@operation(http="GET /subscriptions")
def subscriptions(context: Context) -> ListAnswer[SubscriptionAnswer]:
    """List the WebSub subscriptions."""
    with context.reading() as repository:
        return listing(SubscriptionAnswer, websub.subscriptions(repository))


@operation(http="POST /subscriptions", status=202, writes=True, asks=True)
def subscribe(context: Context, request: Request, *, topic: given.FeedUrl, hub: given.HubUrl) -> SubscriptionAnswer:
    """Subscribe to a feed through its WebSub hub, which must be able to reach this service."""
    with context.writing() as repository:
        return made(SubscriptionAnswer, websub.subscribe(repository, topic, hub, str(request.base_url)))


@operation(http="DELETE /subscriptions/{name}", writes=True, asks=True)
def unsubscribe(context: Context, request: Request, *, name: given.SubscriptionName) -> RemovedAnswer:
    """Delete a WebSub subscription and tell its hub."""
    with context.writing() as repository:
        return made(RemovedAnswer, websub.unsubscribe(repository, name, str(request.base_url)))
