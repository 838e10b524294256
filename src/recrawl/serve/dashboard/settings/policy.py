"""Settings: the policy with its parameters, the budget and the schedule."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.choose import describe, make_policy, parameter_texts, parameters, usable_policies
from recrawl.errors import UsageError
from recrawl.repository.explain.plans import OBJECTIVES
from recrawl.serve.dashboard.forms import Errors, Form
from recrawl.serve.dashboard.settings.topics import (
    POLICY,
    SCHEDULE,
    field,
    redirect_saved,
    save,
    show_settings,
    value_text,
)
from recrawl.serve.dashboard.views import Views

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
    name = str(given.get(POLICY, ""))
    text, errors = _policy_text(views, name, given)
    days = [str(day) for day in given.getlist(_DAYS)]
    form = save(views, (POLICY, *SCHEDULE), {**given, POLICY: text, _DAYS: ",".join(days)}, errors)
    if form.errors:
        form.values.update({key: str(value) for key, value in given.items() if key.startswith(_PREFIX)})
        return _show(views, request, name if name in usable_policies() else "", form)
    return redirect_saved(request.url.path)


def _policy_text(views: Views, name: str, given: Mapping[str, object]) -> tuple[str, dict[str, str]]:
    """Return the policy as text, and the errors of its parameters."""
    known = usable_policies()
    if name not in known:
        current = views.settings()[POLICY]
        if name == current:
            return name, {}  # a policy of the user's own, which only this machine may change
        try:
            make_policy(name, imports=False)
        except UsageError as error:
            return current, {POLICY: str(error)}
    parts, errors = [], {}
    for key in parameters(name) if name in known else ():
        value = str(given.get(_PREFIX + key, "")).strip()
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
        return views.settings()[POLICY], {POLICY: str(error)}


def _show(views: Views, request: Request, wanted: str, form: Form | None) -> Response:
    values = views.settings()
    current = make_policy(values[POLICY])
    known = usable_policies()
    custom = type(current) is not known.get(current.name)
    name = wanted or ("" if custom else current.name)
    chosen = current if not custom and name == current.name else (known[name]() if name else None)
    schedule = [field(key, form[key] if form else value_text(values[key])) for key in SCHEDULE]
    return show_settings(
        views,
        request,
        "settings_policy.html",
        status=400 if form is not None else 200,
        policies=[(key, _summary(kind)) for key, kind in sorted(known.items())],
        custom=values[POLICY] if custom else "",
        chosen=name,
        summary=_summary(known[name]) if name else "",
        parameters=_fields(name, chosen, form) if name else [],
        schedule=schedule,
        errors=form.errors if form else Errors(),
    )


def _fields(name: str, chosen: Any, form: Form | None) -> list[dict[str, Any]]:
    """Return the parameters of a policy as fields of a form."""
    meanings = parameter_texts(inspect.getdoc(usable_policies()[name]) or "")
    found = []
    for key, default in parameters(name).items():
        value = value_text(getattr(chosen, key))
        if form is not None:
            value = form.values.get(_PREFIX + key, value)
        choices = _CHOICES.get(key, ("true", "false") if isinstance(default, bool) else ())
        found.append(
            {
                "name": _PREFIX + key,
                "label": key.replace("_", " "),
                "help": f"{meanings.get(key, '')} Default: {value_text(default) or 'empty'}.".strip(),
                "kind": "choice" if choices else "text",
                "value": value,
                "choices": [(choice, choice) for choice in choices],
                "suggested": (),
                "days": (),
            }
        )
    return found


def _summary(kind: Any) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]
