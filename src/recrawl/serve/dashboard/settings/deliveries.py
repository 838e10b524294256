"""Settings: sinks, and what is parked of sinks and alerts."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import NotKnown, UsageError
from recrawl.serve.dashboard.settings.topics import show_settings
from recrawl.serve.dashboard.views import Views

_PATH = "/settings/deliveries"
_SHOWN = 100


def deliveries(views: Views, request: Request) -> Response:
    """Show the sinks and the changes that are parked."""
    with views.reading() as repository:
        sinks, parked = repository.sinks(), repository.parked(limit=_SHOWN + 1)
    return show_settings(
        views, request, "settings_deliveries.html", sinks=sinks, parked=parked[:_SHOWN], more=len(parked) > _SHOWN
    )


def settle(views: Views, request: Request, given: FormData) -> Response:
    """Send a parked change again, or drop it; without a number all of a receiver, or all."""
    del request
    number, receiver, action = (str(given.get(name, "")) for name in ("number", "receiver", "do"))
    if action not in ("retry", "drop"):
        raise UsageError(f"unknown action '{action}'; use retry or drop")
    if number and not (number.isascii() and number.isdigit() and len(number) < 16):
        raise NotKnown(f"no change with the number {number} is parked")
    with views.context.writing() as repository:
        do = repository.retry_parked if action == "retry" else repository.drop_parked
        do(receiver, [int(number)] if number else [])
    return RedirectResponse(_PATH, 303)
