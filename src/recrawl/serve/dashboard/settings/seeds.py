"""Settings: tracked sites and pages, with their rules. A form is saved completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, UsageError
from recrawl.operations import members_of
from recrawl.parameters import SiteRules
from recrawl.repository.seed_rules import seed_url
from recrawl.repository.seeds import add_seeds, with_seeds, without_seeds
from recrawl.serve.dashboard.forms import Form, as_field, value_text
from recrawl.serve.dashboard.settings.topics import redirect_saved, show_settings
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.job_specs import level_inside
from recrawl.settings import Seed, Settings, changing, write_seeds

_RULES = members_of(SiteRules)
_FIELDS = ("url", *_RULES)
_LISTS = tuple(name for name, given in _RULES.items() if given.many)


def seeds(views: Views, request: Request) -> Response:
    """Show the tracked sites, and a form to add one, or with `edit` to change the rules of one."""
    edit = request.query_params.get("edit", "")
    if not edit:
        return _seeds(views, request, _form({}, None))
    seed = next((seed for seed in views.settings().seeds if seed.url == edit), None)
    if seed is None:
        raise NotKnown(f"'{edit}' was never added")
    return _seeds(views, request, _form({}, seed), editing=True)


def save_seed(views: Views, request: Request, given: FormData) -> Response:
    """Add a site with its rules, or change those rules of one that were edited.

    When a seed is edited, an empty field removes its rule. When a site is added, an empty field says nothing.
    """
    editing = bool(given.get("editing"))
    with changing(views.context.settings_file):
        stored = {seed.url: seed for seed in views.settings().seeds}
        before = stored.get(str(given.get("url", ""))) if editing else None
        form = _form(given, before)
        url = form.read("url", seed_url)
        if editing and before is None:
            form.errors["url"] = "this site is not tracked any more"
        elif url is None and not form.errors:
            form.errors["url"] = "give the URL of a site or page"
        named = _rules(form)
        level = form.read("change", partial(level_inside, views.context.folder)) if named.get("change") else None
        if level:
            named["change"] = level
        if url is not None and not form.errors:
            try:
                (addition,) = add_seeds(views.context.folder, views.settings(), [url], named)
            except UsageError as error:
                form.errors.update(_wrong(views.settings(), url, named) or {"url": str(error)})
            else:
                views.context.scheduler.wake()
                # No redirect: what changed is known only now. To send the form again changes nothing more.
                return _seeds(views, request, _form({}, None), f"Saved: {addition}.")
    return _seeds(views, request, form, editing=editing)


def remove_seed(views: Views, request: Request, given: FormData) -> Response:
    """Remove a site."""
    del request
    with changing(views.context.settings_file):
        after, _ = without_seeds(views.settings(), [str(given.get("url", ""))])
        write_seeds(views.context.settings_file, after.seeds)
    views.context.scheduler.wake()
    return redirect_saved("/settings")


def _form(given: Mapping[str, object], seed: Seed | None) -> Form:
    """Return the form for a seed, or for a new one, filled with its rules or as it was submitted."""
    stored = {name: value_text(getattr(seed, name)) if seed else "" for name in _FIELDS}
    return Form(given, _FIELDS, stored, lists=_LISTS)


def _rules(form: Form) -> dict[str, Any]:
    """Return the rules that were edited; one whose field is empty has the value of a seed without it."""
    found = {name: form.given(given) for name, given in _RULES.items()}
    for name in set(form.errors) & set(_RULES) - form.edited:
        del form.errors[name]
    return {name: value for name, value in found.items() if name in form.edited}


def _wrong(before: Settings, url: str, named: Mapping[str, Any]) -> dict[str, str]:
    """Return the errors of rules that are wrong whatever the others are."""
    found = {}
    for name, value in named.items():
        try:
            with_seeds(before, [url], {name: value})
        except UsageError as error:
            found[name] = str(error)
    return found


def _tags(seed: Seed) -> list[str]:
    """Return the rules of a seed, each in a few words."""
    found: list[str] = []
    for name, given in _RULES.items():
        value, label = getattr(seed, name), name.replace("_", " ")
        if value is True:
            found.append(label)
        elif given.many:
            found += [f"{label} {item}" for item in value]
        elif value is not None and value is not False and value != "":
            found.append(
                f"{label} {value:,g}"
                if isinstance(value, float)
                else f"{label} {value:,}"
                if isinstance(value, int)
                else f"{label} {value}"
            )
    return found


def _seeds(views: Views, request: Request, form: Form, notice: str = "", *, editing: bool = False) -> Response:
    return show_settings(
        views,
        request,
        "settings_seeds.html",
        status=400 if form.errors else 200,
        seeds=[(seed.url, _tags(seed)) for seed in views.settings().seeds],
        form=form.values,
        shown=form.as_shown(),
        errors=form.errors,
        editing=editing,
        fields=[as_field(given, form[name]) for name, given in _RULES.items()],
        notice=notice or ("Saved. The next cycle uses it." if request.query_params.get("saved") else ""),
    )
