"""Settings: alert rules, and the latest alerts."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import UsageError
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.alerts.rules import OUTCOMES, check_rule
from recrawl.repository.reports.sites import names
from recrawl.serve.api.alerts import put_alert, remove_alert
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.settings.topics import redirect_saved, show_settings
from recrawl.serve.dashboard.views import Views
from recrawl.settings import Alert

_TEXTS = ("name", "target", "site", "path", "selector", "text", "digest", "secret")
_LATEST = 20
_PATH = "/settings/alerts"


def alerts(views: Views, request: Request) -> Response:
    """Show the rules, the latest alerts, and a form for a new rule."""
    return _alerts(views, request, Form({"target": "feed"}, (*_TEXTS, "least", "news")), {"outcomes": []})


def put(views: Views, request: Request, given: FormData) -> Response:
    """Create a rule, or replace the one of the same name."""
    form = Form(given, (*_TEXTS, "least", "news"))
    chosen = {
        "outcomes": [name for name in OUTCOMES if name in given.getlist("outcomes")],
        "significant": bool(given.get("significant")),
        "hold": bool(given.get("hold")),
    }
    rule = {name: form[name].strip() for name in _TEXTS}
    rule["secret"] = rule["secret"] or None  # type: ignore[assignment]
    share, news = form.real("least", most=100.0), form.real("news", most=100.0)
    _check_fields(form, rule)
    if not form.errors:
        try:
            amounts = {"divergence": (share or 0.0) / 100, "significance": (news or 0.0) / 100}
            put_alert(views.context, {**rule, **chosen, **amounts})
        except UsageError as error:
            form.errors["name"] = str(error)
        else:
            return redirect_saved(_PATH)
    return _alerts(views, request, form, chosen)


def remove(views: Views, request: Request, given: FormData) -> Response:
    """Delete a rule."""
    del request
    remove_alert(views.context, {"name": str(given.get("name", ""))})
    return redirect_saved(_PATH)


def _check_fields(form: Form, rule: dict[str, Any]) -> None:
    """Check each field on its own, so that its error is shown next to it."""
    for name in _TEXTS:
        if name == "secret" or (not rule[name] and name not in ("name", "target")):
            continue
        try:
            check_rule(Alert(**{"name": "any", "target": "feed", name: rule[name]}))
        except UsageError as error:
            form.errors[name] = str(error)


def _alerts(views: Views, request: Request, form: Form, chosen: dict[str, Any]) -> Response:
    with views.reading() as repository:
        sent = Outbox(repository).newest(_LATEST)
        sites = names(repository)
    return show_settings(
        views,
        request,
        "settings_alerts.html",
        status=400 if form.errors else 200,
        alerts=views.settings().alerts,
        sent=sent,
        sites=sites,
        outcomes=OUTCOMES,
        form=form.values,
        chosen={"significant": False, "hold": False, **chosen},
        errors=form.errors,
    )
