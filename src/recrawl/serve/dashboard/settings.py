"""Settings: tracked sites, policy and limits. A form is saved completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.choose import POLICIES, describe, make_policy, parameters
from recrawl.errors import UnknownName, UsageError
from recrawl.repository.explain.plans import OBJECTIVES
from recrawl.repository.opening import options_of
from recrawl.repository.seed_rules import seed_url
from recrawl.repository.seeds import add_seeds, without_seeds
from recrawl.repository.turns import period_of
from recrawl.serve.api.settings import WRITING
from recrawl.serve.dashboard.forms import Errors, Form
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.job_specs import check_inside
from recrawl.settings import SETTINGS, Setting, Settings, parse_value, write_seeds, write_values

_TABS = (
    ("/settings", "Sites"),
    ("/settings/policy", "Policy and budget"),
    ("/settings/limits", "Limits"),
    ("/settings/noise", "Noise"),
    ("/settings/alerts", "Alerts"),
)
_OBJECTIVE = "objective"
_POLICY_SETTINGS = ("policy", "budget", "every", "seed")
"""Settings on the page "Policy and budget"."""
_HIDDEN = frozenset({"anchors"})
"""Settings that are not shown here."""
_SEED_FIELDS = ("url", "limit", "depth", "include", "exclude", "allow_private")
_TABLE = {setting.name: setting for setting in SETTINGS}


def show_settings(views: Views, request: Request, template: str, **values: Any) -> Response:
    """Render a settings page with its tabs."""
    tabs = [(path, name, path == request.url.path) for path, name in _TABS]
    notice = "Saved. The next cycle uses it." if request.query_params.get("saved") else ""
    return views.show(request, template, tabs=tabs, **{"errors": Errors(), "notice": notice, **values})


def redirect_saved(path: str) -> Response:
    """Redirect to the form, with a notice that it was saved."""
    return RedirectResponse(f"{path}?saved=1", 303)


# -- sites -----------------------------------------------------------------------------------------------------------


def seeds(views: Views, request: Request) -> Response:
    """Show the tracked sites, and a form to add one."""
    return _seeds(views, request, Form({}, _SEED_FIELDS))


def add_seed(views: Views, request: Request, given: FormData) -> Response:
    """Add a site, or change the limits of one."""
    form = Form(given, _SEED_FIELDS)
    url = form.read("url", seed_url)
    if url is None and not form.errors:
        form.errors["url"] = "give the URL of a site or page"
    rules = {
        "limit": form.number("limit", most=10**9),
        "depth": form.number("depth", most=10**6),
        "include": lines(form["include"]) or None,
        "exclude": lines(form["exclude"]) or None,
        "allow_private": form["allow_private"] == "on" or None,
    }
    named = {name: value for name, value in rules.items() if value is not None}
    if url is not None and not form.errors:
        try:
            with WRITING:
                (addition,) = add_seeds(views.context.folder, views.settings(), [url], named)
        except UsageError as error:
            form.errors["include" if "include" in named else "exclude" if "exclude" in named else "url"] = str(error)
        else:
            views.context.scheduler.wake()
            # No redirect: what changed is known only now. To send the form again changes nothing more.
            return _seeds(views, request, Form({}, _SEED_FIELDS), f"Saved: {addition}.")
    return _seeds(views, request, form)


def remove_seed(views: Views, request: Request, given: FormData) -> Response:
    """Remove a site."""
    del request
    with WRITING:
        after, _ = without_seeds(views.settings(), [str(given.get("url", ""))])
        write_seeds(views.context.settings_file, after.seeds)
    views.context.scheduler.wake()
    return redirect_saved("/settings")


def _seeds(views: Views, request: Request, form: Form, notice: str = "") -> Response:
    return show_settings(
        views,
        request,
        "settings_seeds.html",
        status=400 if form.errors else 200,
        seeds=views.settings().seeds,
        form=form.values,
        errors=form.errors,
        notice=notice or ("Saved. The next cycle uses it." if request.query_params.get("saved") else ""),
    )


# -- single values ---------------------------------------------------------------------------------------------------


def policy(views: Views, request: Request) -> Response:
    """Show policy, budget, period and seed."""
    return _values(views, request, _policy_settings(), None)


def limits(views: Views, request: Request) -> Response:
    """Show all other settings."""
    return _values(views, request, _limit_settings(), None)


def set_policy(views: Views, request: Request, given: FormData) -> Response:
    """Change policy, budget, period and seed."""
    text = str(given.get("policy", ""))
    errors = {}
    try:
        text = with_objective(text, str(given.get(_OBJECTIVE, "")))
    except UsageError as error:
        errors[_OBJECTIVE] = str(error)
    return _set(views, request, _policy_settings(), {**given, "policy": text}, errors)


def set_limits(views: Views, request: Request, given: FormData) -> Response:
    """Change the other settings."""
    return _set(views, request, _limit_settings(), given)


def _policy_settings() -> list[Setting]:
    return [_TABLE[name] for name in _POLICY_SETTINGS]


def _limit_settings() -> list[Setting]:
    return [setting for setting in SETTINGS if setting.name not in _HIDDEN and setting.name not in _POLICY_SETTINGS]


def with_objective(text: str, objective: str) -> str:
    """Return a policy with another objective; an invalid policy is returned as it is, and rejected later.

    >>> with_objective("shock(batches=12)", "age"), with_objective("round-robin", "")
    ('shock(objective=age, batches=12)', 'round-robin')
    """
    if not objective:
        return text
    if objective not in OBJECTIVES:
        raise UnknownName("objective", objective, OBJECTIVES)
    try:
        policy = make_policy(text, imports=False)
    except UsageError:
        return text
    known = parameters(policy)
    if _OBJECTIVE not in known:
        able = ", ".join(name for name in sorted(POLICIES) if _OBJECTIVE in parameters(name))
        raise UsageError(f"{policy.name} has no parameter 'objective'; policies with one: {able}")
    values = {name: getattr(policy, name) for name in known} | {_OBJECTIVE: objective}
    return describe(POLICIES[policy.name](**values))


def _set(
    views: Views,
    request: Request,
    settings: list[Setting],
    given: Mapping[str, object],
    errors: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    form = Form(given, (setting.name for setting in settings))
    form.errors.update(errors)
    with WRITING:
        before = views.settings()
        changed: dict[str, Any] = {}
        for setting in settings:
            value = form.read(setting.name, partial(_read, views, setting.name), empty=True)
            if setting.name not in form.errors and value != before[setting.name]:
                changed[setting.name] = value
        if not form.errors:
            try:
                after = Settings({**before.values, **changed}, before.seeds, before.filters)
                options_of(after)
                period_of(after)
            except UsageError as error:
                form.errors[next(iter(changed), settings[0].name)] = str(error)
        if not form.errors:
            write_values(views.context.settings_file, changed)
    if form.errors:
        return _values(views, request, settings, form)
    views.context.scheduler.wake()
    return redirect_saved(request.url.path)


def _read(views: Views, name: str, text: str) -> Any:
    value = parse_value(name, text)
    if name == "importance":
        check_inside(views.context.folder, value)
    if name == "policy" and value != views.context.settings()["policy"]:
        make_policy(value, imports=False)  # raises UsageError for an invalid policy
    return value


def _values(views: Views, request: Request, settings: list[Setting], form: Form | None) -> Response:
    values = views.settings()
    policy_page = settings[0].name in _POLICY_SETTINGS
    fields = [_field(setting, form[setting.name] if form else value_text(values[setting.name])) for setting in settings]
    if policy_page:
        fields.insert(1, _objective(values["policy"]))
    return show_settings(
        views,
        request,
        "settings_values.html",
        status=400 if form is not None else 200,
        fields=fields,
        errors=form.errors if form else Errors(),
        action=request.url.path,
        head="Policy and budget" if policy_page else "Limits",
        text=(
            "A policy may have parameters: shock(objective=freshness). 'recrawl policies' lists them."
            if policy_page
            else "Request rates, sizes and timeouts; a server's robots.txt may set stricter limits."
        ),
        policies=sorted(POLICIES) if policy_page else [],
    )


def _field(setting: Setting, value: str) -> dict[str, Any]:
    kind = "switch" if isinstance(setting.default, bool) else "policy" if setting.name == "policy" else "text"
    return {
        "name": setting.name,
        "label": setting.name.replace("_", " "),
        "help": setting.help,
        "kind": kind,
        "value": value,
    }


def _objective(policy: str) -> dict[str, Any]:
    """Return the field of the objective, which is a parameter of the policy."""
    current = getattr(make_policy(policy), _OBJECTIVE, "") or "built in"
    return {
        "name": _OBJECTIVE,
        "label": _OBJECTIVE,
        "help": "What the policy maximises: changes found, freshness, low age, or new links.",
        "kind": "choice",
        "value": "",
        "choices": [("", f"of the policy ({current})"), *((name, name) for name in OBJECTIVES)],
    }


def value_text(value: object) -> str:
    """Return a setting's value as text that can be parsed again.

    >>> value_text(["a", "b"]), value_text(True), value_text(0.5)
    ('a, b', 'true', '0.5')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(value) if isinstance(value, list) else f"{value}"


def lines(text: str) -> tuple[str, ...]:
    """Split text into its non-empty lines."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())
