"""Settings: the policy with its parameters, the budget and the schedule."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.choose import describe, make_policy, parameter_texts, parameters, usable_policies
from recrawl.errors import UsageError
from recrawl.repository.explain.plans import OBJECTIVES
from recrawl.serve.dashboard.forms import Errors, Form, value_text
from recrawl.serve.dashboard.settings.topics import (
    POLICY,
    SCHEDULE,
    field,
    redirect_saved,
    save,
    show_settings,
    topic_form,
)
from recrawl.serve.dashboard.views import Views
from recrawl.settings import changing

_PREFIX = "param-"
_CHOICES = {"objective": OBJECTIVES}
"""Parameters with a known list of values."""
_DAYS = "weekdays"


def policy(views: Views, request: Request) -> Response:
    """Show the policies, the parameters of the chosen one, and the schedule."""
    wanted = request.query_params.get(POLICY, "")
    return _show(views, request, wanted if wanted in usable_policies() else "", None)


def set_policy(views: Views, request: Request, given: FormData) -> Response:
    """Change the policy with its parameters, and the schedule: all or nothing."""
    name = str(given.get(POLICY, views.settings()[POLICY]))
    with changing(views.context.settings_file):
        parameters_form = _parameters_form(views, name, given)
        text, errors = _policy_text(views, name, parameters_form)
        fields: dict[str, object] = {**given, POLICY: text}
        if _DAYS in given:  # an empty field of this name, and one for each day that is ticked
            fields[_DAYS] = "\n".join(str(day) for day in given.getlist(_DAYS) if day)
        form = save(views, (POLICY, *SCHEDULE), fields, errors)
    if form.errors:
        form.values.update(parameters_form.values)
        return _show(views, request, name if name in usable_policies() else "", form)
    return redirect_saved(request.url.path)


def _parameters_form(views: Views, name: str, given: Mapping[str, object]) -> Form:
    """Return the parameters of a policy as fields: those of the settings if it is their policy, else its defaults."""
    known = usable_policies().get(name)
    if known is None:
        return Form({}, ())
    current = make_policy(views.settings()[POLICY])
    values = current if type(current) is known else known()
    stored = {_PREFIX + key: value_text(getattr(values, key)) for key in parameters(name)}
    return Form(given, stored, stored)


def _policy_text(views: Views, name: str, form: Form) -> tuple[str, dict[str, str]]:
    """Return the policy as text, and the errors of its parameters; an empty field stands for the default."""
    current = views.settings()[POLICY]
    known = usable_policies()
    said = form.shown.get(POLICY, current)
    if not form.edited and name in (said, said.partition("(")[0]):
        return current, {}
    if name not in known:
        if name == current:
            return name, {}  # a policy of the user's own, which only this machine may change
        try:
            make_policy(name, imports=False)
        except UsageError as error:
            return current, {POLICY: str(error)}
        return name, {}
    parts, errors = [], {}
    stored = _parameters_form(views, name, {})
    for key in parameters(name):
        value = (form if _PREFIX + key in form.edited else stored)[_PREFIX + key].strip()
        if not value:
            continue
        try:
            make_policy(f"{name}({key}={value})", imports=False)
        except UsageError as error:
            errors[_PREFIX + key] = str(error)
        else:
            parts.append(f"{key}={value}")
    if errors:
        return name, errors
    try:
        return describe(make_policy(f"{name}({', '.join(parts)})" if parts else name, imports=False)), {}
    except UsageError as error:
        return current, {POLICY: str(error)}


def _show(views: Views, request: Request, wanted: str, form: Form | None) -> Response:
    values = views.settings()
    current = make_policy(values[POLICY])
    known = usable_policies()
    custom = type(current) is not known.get(current.name)
    name = wanted or ("" if custom else current.name)
    chosen = _parameters_form(views, name, form.values if form else {})
    schedule = form or topic_form(views, SCHEDULE)
    return show_settings(
        views,
        request,
        "settings_policy.html",
        status=400 if form is not None else 200,
        policies=[(key, _summary(kind)) for key, kind in sorted(known.items())],
        custom=values[POLICY] if custom else "",
        chosen=name,
        summary=_summary(known[name]) if name else "",
        parameters=_fields(name, chosen) if name else [],
        schedule=[field(key, schedule[key]) for key in SCHEDULE],
        shown=form.as_shown() if form else json.dumps({POLICY: values[POLICY], **schedule.shown, **chosen.shown}),
        errors=form.errors if form else Errors(),
    )


def _fields(name: str, form: Form) -> list[dict[str, Any]]:
    """Return the parameters of a policy as fields of a form."""
    meanings = parameter_texts(inspect.getdoc(usable_policies()[name]) or "")
    found = []
    for key, default in parameters(name).items():
        choices = _CHOICES.get(key, ("true", "false") if isinstance(default, bool) else ())
        found.append(
            {
                "name": _PREFIX + key,
                "label": key.replace("_", " "),
                "help": f"{meanings.get(key, '')} Default: {value_text(default) or 'empty'}.".strip(),
                "kind": "choice" if choices else "text",
                "value": form[_PREFIX + key],
                "choices": [(choice, choice) for choice in choices],
                "suggested": (),
                "days": (),
            }
        )
    return found


def _summary(kind: Any) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]
