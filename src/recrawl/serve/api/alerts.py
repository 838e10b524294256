"""Alerts, and subscriptions to hubs of WebSub."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, UsageError
from recrawl.serve.alerts.outbox import listed
from recrawl.serve.alerts.rules import OUTCOMES, check
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import AFTER, LIMIT, Arguments, Operation, as_json, rows
from recrawl.serve.api.settings import WRITING
from recrawl.serve.context import Context
from recrawl.serve.push.websub import listed as subscribed
from recrawl.serve.push.websub import subscribe, unsubscribe
from recrawl.settings import Alert, write_alerts

_MOST = 200


def alerts(context: Context, _: Arguments) -> dict[str, Any]:
    """The rules; secrets are not told."""
    return rows([_told(rule) for rule in context.settings().alerts])


def put_alert(context: Context, given: Arguments) -> dict[str, Any]:
    """Make a rule, or put another in the place of one; a secret that is left out stays."""
    with WRITING:
        before = context.settings().alerts
        old = next((rule for rule in before if rule.name == given["name"]), None)
        values = {name: value for name, value in given.items() if value is not None}
        rule = Alert(**{**values, "outcomes": tuple(given["outcomes"] or ())})
        if given["secret"] is None and old is not None:
            rule = replace(rule, secret=old.secret)
        check(rule)
        if old is None and len(before) >= _MOST:
            raise UsageError(f"there are at most {_MOST} alerts")
        after = tuple(rule if row is old else row for row in before) if old else (*before, rule)
        write_alerts(context.settings_file, after)
    return _told(rule)


def remove_alert(context: Context, given: Arguments) -> dict[str, Any]:
    """Take a rule away; what it has not sent yet is not sent."""
    with WRITING:
        before = context.settings().alerts
        after = tuple(rule for rule in before if rule.name != given["name"])
        if len(after) == len(before):
            raise NotKnown("there is no such alert")
        write_alerts(context.settings_file, after)
    return {"removed": given["name"]}


def outbox(context: Context, given: Arguments) -> dict[str, Any]:
    """What alerts have found, newest first, and what became of it."""
    after = given["after"]
    if after and not (after.isascii() and after.isdigit() and len(after) < 16):
        raise UsageError("this is no place in the list: begin at its start")
    with context.reading() as repository:
        found = listed(repository.store.db, given["limit"], int(after) if after else 1 << 62)
    return rows(found, found[-1]["id"] if len(found) == given["limit"] else None)


def subscriptions(context: Context, _: Arguments) -> dict[str, Any]:
    """Feeds whose hubs tell us of news."""
    with context.reading() as repository:
        return rows(subscribed(repository.store.db))


async def add_subscription(context: Context, request: Request, given: Arguments) -> Response:
    """Ask a hub to tell us of news; the hub must be able to reach us."""
    base = str(request.base_url)

    def begin() -> dict[str, Any]:
        with context.apart() as repository:
            return subscribe(repository.store.db, given["topic"], given["hub"], base, context.clock())

    return as_json(await run_in_threadpool(begin), 202)


async def remove_subscription(context: Context, request: Request, given: Arguments) -> Response:
    """Believe a hub no longer, and tell it so."""
    base = str(request.base_url)

    def end() -> dict[str, Any]:
        with context.apart() as repository:
            return unsubscribe(repository.store.db, given["name"], base)

    return as_json(await run_in_threadpool(end))


def _told(rule: Alert) -> dict[str, Any]:
    return {**asdict(rule), "secret": bool(rule.secret)}


_NAME = Field("name", "string", "The alert's name.", required=True)
_BODY = (
    Field("target", "string", "`feed`, the address of a webhook, or an Apprise address.", required=True),
    Field("site", "string", "Only this site.", default=""),
    Field("path", "string", "Only addresses like this: /news/*, or re:...", default=""),
    Field("selector", "string", "Only when the text of these elements changed.", default=""),
    Field("text", "string", "Only when these words were added, or re:...", default=""),
    Field("divergence", "number", "At least this share of words changed.", default=0.0, least=0, most=1),
    Field("significant", "boolean", "Only significant changes.", default=False),
    Field("outcomes", "strings", f"Only these: {', '.join(OUTCOMES)}."),
    Field("secret", "string", "Signs what a webhook gets; the one that is there if left out."),
    Field("digest", "string", "Collect for so long (1h, 1d); at once if empty.", default=""),
    Field("hold", "boolean", "Wait two visits; say nothing if the page is again as it was.", default=False),
)
OPERATIONS = (
    Operation(method="GET", path="/alerts", name="alerts", summary="Alerts.", answer=alerts, returns="rows"),
    Operation(
        method="PUT",
        path="/alerts/{name}",
        name="put_alert",
        summary="Make or change an alert.",
        answer=put_alert,
        about={"name": _NAME},
        body=_BODY,
    ),
    Operation(
        method="DELETE",
        path="/alerts/{name}",
        name="remove_alert",
        summary="Take an alert away.",
        answer=remove_alert,
        about={"name": _NAME},
    ),
    Operation(
        method="GET",
        path="/outbox",
        name="outbox",
        summary="What alerts have found.",
        answer=outbox,
        query=(LIMIT, AFTER),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/subscriptions",
        name="subscriptions",
        summary="Feeds whose hubs tell us of news (WebSub).",
        answer=subscriptions,
        returns="rows",
    ),
    Operation(
        method="POST",
        path="/subscriptions",
        name="subscribe",
        summary="Subscribe to a feed.",
        handler=add_subscription,
        status=202,
        body=(
            Field("topic", "string", "The feed.", required=True),
            Field("hub", "string", "Its hub, as the feed names it.", required=True),
        ),
    ),
    Operation(
        method="DELETE",
        path="/subscriptions/{name}",
        name="unsubscribe",
        summary="Unsubscribe.",
        handler=remove_subscription,
        about={"name": Field("name", "string", "Of the subscription.", required=True)},
    ),
)
