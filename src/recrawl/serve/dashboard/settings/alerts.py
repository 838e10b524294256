"""Alert rules, written and tried, and the latest alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.alerts.rules import OUTCOMES, check_rule
from recrawl.repository.alerts.trial import AlertTrial, name_of_value, watches_value
from recrawl.repository.reports import pages
from recrawl.repository.reports.sites import names
from recrawl.repository.repository import Repository
from recrawl.serve import replay
from recrawl.serve.dashboard.charts import values_chart
from recrawl.serve.dashboard.forms import Form, value_text
from recrawl.serve.dashboard.settings.topics import redirect_saved
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.job_specs import level_inside
from recrawl.settings import LEVELS, Alert, changing

_TEXTS = (
    *("target", "site", "page", "tag", "path", "selector", "ignore", "when", "text", "change", "digest", "quiet"),
    *("subject", "message", "secret"),
)
_SWITCHES = ("significant", "hold")
_SHARES = {"least": "divergence", "news": "significance"}
"""Fields in percent, and the condition of each."""
_FIELDS = ("name", *_TEXTS, *_SWITCHES, *_SHARES, "outcomes", "forget_secret")
_LATEST = 20
_MOST_DIGITS = 16
_PATH = "/alerts"


def alerts(views: Views, request: Request) -> Response:
    """Show the rules, the latest alerts, and a form for a new rule, or with `edit` for one that exists."""
    name = request.query_params.get("edit", "")
    rule = _rule(views, name)
    if name and rule is None:
        raise NotKnown(f"there is no alert '{name}'")
    form = _form({}, rule)
    if rule is None and (number := request.query_params.get("page", "")).isdecimal() and len(number) < _MOST_DIGITS:
        with views.reading() as repository:
            form.values["page"] = pages.page(repository, int(number))["url"]
    return _alerts(views, request, form, editing=rule is not None)


def moved(views: Views, request: Request) -> Response:
    """The address at which this page was before."""
    del views
    return RedirectResponse(f"{_PATH}?{request.url.query}" if request.url.query else _PATH, 301)


def put(views: Views, request: Request, given: FormData) -> Response:
    """Create a rule, or change those conditions of one that were edited."""
    editing = bool(given.get("editing"))
    with changing(views.context.settings_file):
        name = str(given.get("name", "")).strip()
        before = _rule(views, name)
        fields: dict[str, object] = {**given}
        if "outcomes" in given:  # an empty field of this name, and one for each outcome that is ticked
            fields["outcomes"] = "\n".join(str(outcome) for outcome in given.getlist("outcomes") if outcome)
        form = _form(fields, before if editing else None)
        if editing and before is None:
            form.errors["name"] = "there is no rule of this name any more"
        elif before is not None and not editing:
            form.errors["name"] = "there is a rule of this name; use its link 'edit'"
        rule: dict[str, Any] = asdict(before) if editing and before else {"target": form["target"].strip()}
        tried = given.get("do") == "try"
        rule |= {"name": name or "trial" * tried, "secret": None} | _conditions(form)
        _check_fields(views, form, rule)
        if form.switch("forget_secret"):
            rule["secret"] = ""
        if tried and not form.errors:
            return _alerts(views, request, form, editing=editing, trial=_try(views, form, rule))
        if not form.errors:
            try:
                with views.context.writing() as repository:
                    level = level_inside(views.context.folder, rule.get("change", ""))
                    repository.put_alert(**rule | {"change": level})
            except UsageError as error:
                form.errors["name"] = str(error)
            else:
                return redirect_saved(_PATH)
    return _alerts(views, request, form, editing=editing)


def test(views: Views, request: Request, given: FormData) -> Response:
    """Send a test message."""
    del request
    with views.context.writing() as repository:
        repository.test_alert(name=str(given.get("name", "")))
    return RedirectResponse(f"{_PATH}?tested=1", 303)


def _try(views: Views, form: Form, rule: dict[str, Any]) -> AlertTrial | None:
    """What the rule of a form would have sent for what is recorded."""
    try:
        with views.context.dedicated() as repository:
            return repository.try_alert(**{**rule, "outcomes": list(rule.get("outcomes", ()))})
    except (UsageError, NotKnown) as error:
        form.errors["page"] = str(error)
        return None


def _shown_page(views: Views, repository: Repository, form: Form) -> dict[str, Any]:
    """The stored page on which elements are chosen, and the values that the chosen ones had; empty without a page."""
    try:
        found = pages.find(repository, form["page"]) if form["page"].strip() else None
    except (NotKnown, UsageError):
        found = None
    newest = pages.versions(repository, found["id"], 1) if found else []
    if not found or not newest:
        return {"frame": "", "values": {"chart": None, "rows": []}}
    try:
        rule = Alert("any", "feed", selector=form["selector"], when=form["when"])
        watches = watches_value(rule)
        rows = repository.watched_values(url=found["url"], selector=rule.selector, words=name_of_value(rule))
    except (UsageError, NotKnown, ValueError):
        watches, rows = False, []
    return {
        "frame": replay.address(views.context, newest[0].id, found["url"], mark="pick"),
        "values": values_chart(rows) if watches else {"chart": None, "rows": []},
    }


def remove(views: Views, request: Request, given: FormData) -> Response:
    """Delete a rule."""
    del request
    with views.context.writing() as repository:
        repository.remove_alert(name=str(given.get("name", "")))
    return redirect_saved(_PATH)


def _rule(views: Views, name: str) -> Alert | None:
    return next((rule for rule in views.settings().alerts if rule.name == name), None)


def _form(given: Mapping[str, object], rule: Alert | None) -> Form:
    """Return the form for a rule, or for a new one, filled with its conditions or as it was submitted."""
    stored = dict.fromkeys(_FIELDS, "") | ({"target": "feed"} if not given else {})
    if rule is not None:
        stored |= {name: value_text(getattr(rule, name)) for name in ("name", *_TEXTS, *_SWITCHES, "outcomes")}
        stored |= {field: f"{getattr(rule, name) * 100:.10g}" for field, name in _SHARES.items()}
    stored["secret"] = ""  # never shown
    return Form(given, _FIELDS, stored, lists=("outcomes",))


def _conditions(form: Form) -> dict[str, Any]:
    """Return the conditions that were edited; one whose field is empty does not hold."""
    found: dict[str, Any] = {name: form[name].strip() for name in _TEXTS}
    found |= {name: bool(form.switch(name)) for name in _SWITCHES}
    found["outcomes"] = [name for name in OUTCOMES if name in form.lines("outcomes")]
    edited = {name: value for name, value in found.items() if name in form.edited}
    for field, name in _SHARES.items():
        share = form.real(field, most=100.0)
        if field in form.edited:
            edited[name] = (share or 0.0) / 100
    return edited


def _check_fields(views: Views, form: Form, rule: dict[str, Any]) -> None:
    """Check each field on its own, so that its error is shown next to it."""
    for name in ("name", *_TEXTS):
        value = rule.get(name, "")
        if name in form.errors or name == "secret" or (not value and name not in ("name", "target")):
            continue
        try:
            value = level_inside(views.context.folder, value) if name == "change" else value
            given: dict[str, Any] = {"name": "any", "target": "feed", name: value}
            check_rule(Alert(**given))
        except UsageError as error:
            form.errors[name] = str(error)


def _alerts(views: Views, request: Request, form: Form, *, editing: bool, trial: AlertTrial | None = None) -> Response:
    with views.reading() as repository:
        sent = Outbox(repository).newest(_LATEST)
        sites, tags = names(repository), [name for name, _, _ in repository.tags()]
        shown = _shown_page(views, repository, form)
    rule = _rule(views, form["name"]) if editing else None
    notice = "Saved." if request.query_params.get("saved") else ""
    return views.show(
        request,
        "alerts.html",
        notice="The test message was sent." if request.query_params.get("tested") else notice,
        tags=tags,
        trial=trial,
        **shown,
        status=400 if form.errors else 200,
        alerts=views.settings().alerts,
        sent=sent,
        sites=sites,
        outcomes=OUTCOMES,
        form=form.values,
        levels=LEVELS,
        shown=form.as_shown(),
        chosen=form.lines("outcomes"),
        errors=form.errors,
        editing=editing,
        has_secret=bool(rule and rule.secret),
    )
