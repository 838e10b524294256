"""Settings: tracked sites and pages, with their rules. A form is saved completely or not at all."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.seed_rules import seed_url
from recrawl.repository.seeds import RULES, add_seeds, without_seeds
from recrawl.serve.api.settings import WRITING
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.settings.topics import lines, redirect_saved, show_settings, value_text
from recrawl.serve.dashboard.views import Views
from recrawl.settings import SETTINGS, Seed, write_seeds

_LISTS = ("include", "exclude")
_FIELDS = ("url", *RULES)
_LONGEST_DELAY = 86400
_LABELS = {
    "every": ("Interval", "Visit its pages at least this often: 30m, 6h, 1d. Empty: the policy decides."),
    "change": ("What counts as a change", "text, content, significant or divergence:X. Empty: the general setting."),
    "requisites": (
        "Page requisites",
        "What is kept to show pages as they looked: stylesheets, or images and fonts too.",
    ),
    "render": ("Rendering", "Whether a browser runs the scripts of its pages; auto learns where that matters."),
    "screenshots": ("Screenshots", "Pictures of each new version, or at every visit; both need the browser."),
}
"""Label and help of rules that are plain text or a choice; others are shown with their name."""
_CHOICES = {setting.name: setting.choices for setting in SETTINGS if setting.choices and setting.name in RULES}
"""Rules with the choices of the setting of the same name."""


def seeds(views: Views, request: Request) -> Response:
    """Show the tracked sites, and a form to add one, or with `edit` to change the rules of one."""
    edit = request.query_params.get("edit", "")
    if not edit:
        return _seeds(views, request, Form({}, _FIELDS))
    seed = next((seed for seed in views.settings().seeds if seed.url == edit), None)
    if seed is None:
        raise NotKnown(f"'{edit}' was never added")
    return _seeds(views, request, Form(_as_form(seed), _FIELDS), editing=True)


def save_seed(views: Views, request: Request, given: FormData) -> Response:
    """Add a site with its rules; or, when editing, replace all rules of one."""
    form, editing = Form(given, _FIELDS), bool(given.get("editing"))
    url = form.read("url", seed_url)
    if url is None and not form.errors:
        form.errors["url"] = "give the URL of a site or page"
    named = {name: value for name, value in _rules(form).items() if value not in (None, (), "", False)}
    if url is not None and not form.errors:
        clear = [name for name in RULES if name not in named] if editing else []
        try:
            with WRITING:
                (addition,) = add_seeds(views.context.folder, views.settings(), [url], named, clear)
        except UsageError as error:
            form.errors[_blamed(named, str(error))] = str(error)
        else:
            views.context.scheduler.wake()
            # No redirect: what changed is known only now. To send the form again changes nothing more.
            return _seeds(views, request, Form({}, _FIELDS), f"Saved: {addition}.")
    return _seeds(views, request, form, editing=editing)


def remove_seed(views: Views, request: Request, given: FormData) -> Response:
    """Remove a site."""
    del request
    with WRITING:
        after, _ = without_seeds(views.settings(), [str(given.get("url", ""))])
        write_seeds(views.context.settings_file, after.seeds)
    views.context.scheduler.wake()
    return redirect_saved("/settings")


def _rules(form: Form) -> dict[str, Any]:
    """Return the rules as the form gives them; None for what it leaves empty."""
    plain: dict[str, Any] = {name: form[name].strip() for name in RULES}
    return {
        **plain,
        "limit": form.number("limit", most=10**9),
        "depth": form.number("depth", most=10**6),
        "delay": form.real("delay", most=_LONGEST_DELAY),
        **{name: lines(form[name]) for name in _LISTS},
        "allow_private": form["allow_private"] == "on",
    }


def _blamed(named: dict[str, Any], error: str) -> str:
    """Return the field that an error is about."""
    return next((name for name in named if name in error), next((name for name in _LISTS if name in named), "url"))


def _as_form(seed: Seed) -> dict[str, str]:
    """Return the fields of the form for a seed."""
    made = {"url": seed.url, "allow_private": "on" if seed.allow_private else ""}
    for name in RULES:
        value = getattr(seed, name)
        if name in _LISTS:
            made[name] = "\n".join(value)
        elif name not in made:
            made[name] = "" if value is None else value_text(value)
    return made


def _seeds(views: Views, request: Request, form: Form, notice: str = "", *, editing: bool = False) -> Response:
    known = {"limit", "depth", "delay", "include", "exclude", "allow_private"}
    return show_settings(
        views,
        request,
        "settings_seeds.html",
        status=400 if form.errors else 200,
        seeds=views.settings().seeds,
        form=form.values,
        errors=form.errors,
        editing=editing,
        labels=_LABELS,
        choices=_CHOICES,
        texts=[name for name in RULES if name not in known],
        notice=notice or ("Saved. The next cycle uses it." if request.query_params.get("saved") else ""),
    )
