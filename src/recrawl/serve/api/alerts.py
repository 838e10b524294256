"""API: alert rules, outbox, and WebSub subscriptions."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.alerts.rules import OUTCOMES, check_rule
from recrawl.repository.push import websub
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import AFTER, LIMIT, Arguments, Operation, as_json, bad_cursor, rows
from recrawl.serve.api.settings import WRITING
from recrawl.serve.context import Context
from recrawl.settings import Alert, write_alerts

_MAX_ALERTS = 200


def alerts(context: Context, _: Arguments) -> dict[str, Any]:
    """List the rules, without their secrets."""
    return rows([_without_secret(rule) for rule in context.settings().alerts])


def put_alert(context: Context, given: Arguments) -> dict[str, Any]:
    """Create or replace a rule; without `secret`, an existing secret is kept."""
    with WRITING:
        before = context.settings().alerts
        old = next((rule for rule in before if rule.name == given["name"]), None)
        values = {name: value for name, value in given.items() if value is not None}
        rule = Alert(**{**values, "outcomes": tuple(given["outcomes"] or ())})
        if given["secret"] is None and old is not None:
            rule = replace(rule, secret=old.secret)
        check_rule(rule)
        if old is None and len(before) >= _MAX_ALERTS:
            raise UsageError(f"the limit is {_MAX_ALERTS} alerts; delete one first")
        after = tuple(rule if row is old else row for row in before) if old else (*before, rule)
        write_alerts(context.settings_file, after)
    return _without_secret(rule)


def remove_alert(context: Context, given: Arguments) -> dict[str, Any]:
    """Delete a rule; its waiting updates are not sent."""
    with WRITING:
        before = context.settings().alerts
        after = tuple(rule for rule in before if rule.name != given["name"])
        if len(after) == len(before):
            raise NotKnown(f"there is no alert '{given['name']}'")
        write_alerts(context.settings_file, after)
    return {"removed": given["name"]}


def outbox(context: Context, given: Arguments) -> dict[str, Any]:
    """List the updates found by alert rules, newest first, with their delivery state."""
    after = given["after"]
    if after and not (after.isascii() and after.isdigit() and len(after) < 16):
        raise bad_cursor(after)
    with context.reading() as repository:
        found = Outbox(repository).newest(given["limit"], int(after) if after else 1 << 62)
    return rows(found, found[-1]["id"] if len(found) == given["limit"] else None)


def subscriptions(context: Context, _: Arguments) -> dict[str, Any]:
    """List the WebSub subscriptions."""
    with context.reading() as repository:
        return rows(websub.subscriptions(repository))


async def add_subscription(context: Context, request: Request, given: Arguments) -> Response:
    """Subscribe to a feed; the hub must be able to reach this service."""
    base = str(request.base_url)

    def send() -> dict[str, Any]:
        with context.writing() as repository:
            return websub.subscribe(repository, given["topic"], given["hub"], base)

    return as_json(await run_in_threadpool(send), 202)


async def remove_subscription(context: Context, request: Request, given: Arguments) -> Response:
    """Delete a subscription and tell its hub."""
    base = str(request.base_url)

    def send() -> dict[str, Any]:
        with context.writing() as repository:
            return websub.unsubscribe(repository, given["name"], base)

    return as_json(await run_in_threadpool(send))


def _without_secret(rule: Alert) -> dict[str, Any]:
    return {**asdict(rule), "secret": bool(rule.secret)}


_NAME = Field("name", "string", "The alert's name.", required=True)
_BODY = (
    Field("target", "string", "`feed`, the URL of a webhook, or an Apprise URL.", required=True),
    Field("site", "string", "Only this site.", default=""),
    Field("path", "string", "Only URLs that match this pattern: /news/*, or re:...", default=""),
    Field("selector", "string", "Only if the text of these elements changed (CSS selector).", default=""),
    Field("text", "string", "Only if this text was added; a regular expression after re:.", default=""),
    Field("divergence", "number", "Only if at least this share of the words changed.", default=0.0, least=0, most=1),
    Field("significant", "boolean", "Only changes that pass the chi-squared test.", default=False),
    Field("significance", "number", "Only if it is news with this probability.", default=0.0, least=0, most=1),
    Field("outcomes", "strings", f"Only these outcomes: {', '.join(OUTCOMES)}; all if omitted."),
    Field("secret", "string", "Key that signs webhook requests; if omitted, the existing one is kept."),
    Field("digest", "string", "Collect updates for this long (1h, 1d); empty: send immediately.", default=""),
    Field("hold", "boolean", "Wait two visits; send nothing if the page reverts.", default=False),
)
OPERATIONS = (
    Operation(
        method="GET", path="/alerts", name="alerts", summary="List the alert rules.", answer=alerts, returns="rows"
    ),
    Operation(
        method="PUT",
        path="/alerts/{name}",
        name="put_alert",
        summary="Create or replace an alert rule.",
        answer=put_alert,
        about={"name": _NAME},
        body=_BODY,
    ),
    Operation(
        method="DELETE",
        path="/alerts/{name}",
        name="remove_alert",
        summary="Delete an alert rule.",
        answer=remove_alert,
        about={"name": _NAME},
    ),
    Operation(
        method="GET",
        path="/outbox",
        name="outbox",
        summary="List the updates found by alert rules.",
        answer=outbox,
        query=(LIMIT, AFTER),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/subscriptions",
        name="subscriptions",
        summary="List the WebSub subscriptions.",
        answer=subscriptions,
        returns="rows",
    ),
    Operation(
        method="POST",
        path="/subscriptions",
        name="subscribe",
        summary="Subscribe to a feed through its WebSub hub.",
        handler=add_subscription,
        status=202,
        body=(
            Field("topic", "string", "URL of the feed.", required=True),
            Field("hub", "string", "URL of the hub, as given in the feed.", required=True),
        ),
    ),
    Operation(
        method="DELETE",
        path="/subscriptions/{name}",
        name="unsubscribe",
        summary="Delete a WebSub subscription.",
        handler=remove_subscription,
        about={"name": Field("name", "string", "Name of the subscription.", required=True)},
    ),
)
