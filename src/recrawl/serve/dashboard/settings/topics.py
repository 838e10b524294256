"""Settings by topic: each topic is a page with a form, saved completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.opening import options_of
from recrawl.serve.dashboard.forms import Errors, Form, lines, value_text
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.job_specs import check_inside, level_inside
from recrawl.settings import SETTINGS, Setting, Settings, changing, checked, parse_value, period_of, write_values
from recrawl.times import WEEKDAYS

POLICY = "policy"
SCHEDULE = ("budget", "every", "quiet_hours", "weekdays", "bytes", "seed")
"""Settings on the page of the policy, besides the policy itself."""
_TOPICS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "politeness",
        "Politeness",
        "How gently servers are treated; a server's robots.txt may set stricter limits.",
        ("contact", "delay", "per_server", "per_second", "max_delay", "retries", "patience", "robots_hours"),
    ),
    (
        "discovery",
        "Discovery",
        "Which pages are found, and which of them are kept.",
        ("order", "sitemaps", "sitemap_hours", "feed_hours", "redirects", "content_types", "tracking",
         "keep_parameters", "max_queries", "max_folder", "gone_hours"),
    ),
    (
        "changes",
        "Changes",
        "What counts as a change, and what a page is worth.",
        ("change", "importance", "cost", "site_share", "reserve_new", "reserve_pushed"),
    ),
    (
        "limits",
        "Downloads",
        "Sizes, timeouts, page requisites, search index and archive.",
        ("max_bytes", "timeout", "connect_timeout", "stall", "requisites", "requisite_budget", "requisite_bytes",
         "requisite_hours", "index", "archive_format", "warc_megabytes", "readers", "parse_seconds"),
    ),
)  # fmt: skip
_OTHER = ("other", "Other", "Everything else.")
_HIDDEN = frozenset({"anchors"})
"""Settings that are not shown here."""
_TABLE = {setting.name: setting for setting in SETTINGS}
_LISTS = frozenset(setting.name for setting in SETTINGS if isinstance(setting.default, list))
NO_ERRORS: Mapping[str, str] = MappingProxyType({})
_SUGGESTED = {
    "requisites": ("none", "css", "all"),
    "importance": ("even", "pagerank"),
    "change": ("content", "text", "significant", "divergence:0.1", "words:20", "new-link", "out-link"),
}
"""Values to suggest where others are possible, too."""


def _topics() -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Return label, text and settings of each topic; what no topic names is in the last one."""
    named = {name for *_, names in _TOPICS for name in names} | {POLICY, *SCHEDULE} | _HIDDEN
    rest = tuple(setting.name for setting in SETTINGS if setting.name not in named)
    found = {path: (label, text, names) for path, label, text, names in _TOPICS}
    return {**found, _OTHER[0]: (_OTHER[1], _OTHER[2], rest)} if rest else found


def _tabs() -> list[tuple[str, str]]:
    topics = [(f"/settings/{path}", label) for path, (label, _, _) in _topics().items()]
    first = [("/settings", "Sites"), ("/settings/policy", "Policy and schedule")]
    return [
        *first,
        *topics,
        ("/settings/noise", "Noise"),
        ("/settings/deliveries", "Deliveries"),
    ]


def show_settings(views: Views, request: Request, template: str, **values: Any) -> Response:
    """Render a settings page with its tabs."""
    tabs = [(path, name, path == request.url.path) for path, name in _tabs()]
    notice = "Saved. The next cycle uses it." if request.query_params.get("saved") else ""
    return views.show(request, template, **{"tabs": tabs, "notice": notice, "errors": Errors(), **values})


def redirect_saved(path: str) -> Response:
    """Redirect to the form, with a notice that it was saved."""
    return RedirectResponse(f"{path}?saved=1", 303)


def topic(views: Views, request: Request) -> Response:
    """Show the settings of a topic."""
    return _show_topic(views, request, None)


def set_topic(views: Views, request: Request, given: FormData) -> Response:
    """Change the settings of a topic."""
    names = _topic_of(request)[2]
    form = save(views, names, given)
    return _show_topic(views, request, form) if form.errors else redirect_saved(request.url.path)


def topic_form(
    views: Views, names: Sequence[str], given: Mapping[str, object] | None = None, errors: Mapping[str, str] = NO_ERRORS
) -> Form:
    """Return the form of these settings, filled with their values or as it was submitted."""
    values = views.settings()
    form = Form(given or {}, names, {name: value_text(values[name]) for name in names}, lists=_LISTS)
    form.errors.update(errors)
    return form


def save(
    views: Views, names: Sequence[str], given: Mapping[str, object], errors: Mapping[str, str] = NO_ERRORS
) -> Form:
    """Write the settings that were edited, all of them or none; returns the form with its errors."""
    with changing(views.context.settings_file):
        form = topic_form(views, names, given, errors)
        before = views.settings()
        changed: dict[str, Any] = {}
        for name in (name for name in names if name in form.edited):
            value = form.read(name, partial(_read, views, name), empty=True)
            if name not in form.errors and value != before[name]:
                changed[name] = value
        if not form.errors:
            try:
                after = Settings({**before.values, **changed}, before.seeds, before.filters)
                options_of(after)
                period_of(after)
            except UsageError as error:
                form.errors[next(iter(changed), names[0])] = str(error)
        if not form.errors and changed:
            write_values(views.context.settings_file, changed)
    if not form.errors:
        views.context.scheduler.wake()
    return form


def field(name: str, value: str) -> dict[str, Any]:
    """Return a setting as a field of a form."""
    setting = _TABLE[name]
    return {
        "name": name,
        "label": name.replace("_", " "),
        "help": setting.help,
        "kind": _kind(setting),
        "value": value,
        "default": value_text(setting.default),
        "choices": [(choice, choice) for choice in setting.choices],
        "suggested": _SUGGESTED.get(name, ()),
        "days": WEEKDAYS if name == "weekdays" else (),
    }


def _kind(setting: Setting) -> str:
    if setting.name == "weekdays":
        return "days"
    if isinstance(setting.default, bool):
        return "switch"
    if setting.choices:
        return "choice"
    if isinstance(setting.default, list):
        return "list"
    return "number" if isinstance(setting.default, (int, float)) else "text"


def _read(views: Views, name: str, text: str) -> Any:
    value = checked(name, list(lines(text))) if name in _LISTS else parse_value(name, text)
    if name == "importance":
        check_inside(views.context.folder, value)
    if name == "change":
        value = level_inside(views.context.folder, value)
    return value


def _topic_of(request: Request) -> tuple[str, str, tuple[str, ...]]:
    path = request.path_params["topic"]
    found = _topics().get(path)
    if found is None:
        raise NotKnown(f"there are no settings '{path}'")
    return found


def _show_topic(views: Views, request: Request, form: Form | None) -> Response:
    label, text, names = _topic_of(request)
    form = form or topic_form(views, names)
    return show_settings(
        views,
        request,
        "settings_values.html",
        status=400 if form.errors else 200,
        fields=[field(name, form[name]) for name in names],
        shown=form.as_shown(),
        errors=form.errors,
        action=request.url.path,
        head=label,
        text=text,
    )
