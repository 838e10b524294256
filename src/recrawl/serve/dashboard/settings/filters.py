"""Settings: noise filters, with a preview on recorded changes."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import UsageError
from recrawl.repository.explain.noise import check_filter
from recrawl.repository.reports.sites import names
from recrawl.serve.api.settings import WRITING
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.settings.topics import lines, redirect_saved, show_settings
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.filter_preview import preview_filter
from recrawl.settings import Filter, write_filters

_FIELDS = ("site", "selectors", "patterns", "do")


def noise(views: Views, request: Request) -> Response:
    """Show the filters, and a form for a new one."""
    return _noise(views, request, Form({}, _FIELDS))


def add(views: Views, request: Request, given: FormData) -> Response:
    """Preview a filter, or add it."""
    form = Form(given, _FIELDS)
    selectors, patterns = lines(form["selectors"]), lines(form["patterns"])
    if not selectors and not patterns:
        form.errors["selectors"] = "give at least one selector or pattern"
    for name, part in (("selectors", {"selectors": selectors}), ("patterns", {"patterns": patterns})):
        try:
            check_filter(**part)
        except UsageError as error:
            form.errors[name] = str(error)
    added = Filter(form["site"], selectors, patterns)
    preview = None
    if not form.errors and (
        form["do"] != "save" or patterns
    ):  # adding also runs the preview, which rejects slow patterns
        preview = _preview(views, form, added)
    if not form.errors and form["do"] == "save":
        with WRITING:
            before = views.settings().filters
            if added not in before:
                write_filters(views.context.settings_file, (*before, added))
                return redirect_saved("/settings/noise")
        form.errors["selectors"] = "this filter already exists"
    return _noise(views, request, form, preview)


def remove(views: Views, request: Request, given: FormData) -> Response:
    """Delete a filter."""
    del request
    number = str(given.get("number", ""))
    with WRITING:
        before = views.settings().filters
        if not number.isdigit() or int(number) >= len(before):
            raise UsageError(f"there is no filter '{number}'")
        write_filters(views.context.settings_file, before[: int(number)] + before[int(number) + 1 :])
    return redirect_saved("/settings/noise")


def _preview(views: Views, form: Form, added: Filter) -> dict[str, Any] | None:
    """Return what the filter would have hidden; None after an error."""
    try:
        return preview_filter(views.context.folder, added)
    except UsageError as error:
        form.errors["patterns" if added.patterns else "selectors"] = str(error)
        return None


def _noise(views: Views, request: Request, form: Form, preview: dict[str, Any] | None = None) -> Response:
    with views.reading() as repository:
        sites = names(repository)
    return show_settings(
        views,
        request,
        "settings_noise.html",
        status=400 if form.errors else 200,
        filters=views.settings().filters,
        sites=sites,
        form=form.values,
        errors=form.errors,
        preview=preview,
    )
