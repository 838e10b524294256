"""Settings: noise filters, with a preview on recorded changes."""

from __future__ import annotations

import json
from dataclasses import asdict

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.explain.noise import Preview, check_filter
from recrawl.repository.reports.sites import names
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.settings.topics import redirect_saved, show_settings
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.filter_preview import preview_filter
from recrawl.settings import Filter, changing

_FIELDS = ("site", "selectors", "patterns", "do")


def noise(views: Views, request: Request) -> Response:
    """Show the filters, and a form for a new one."""
    return _noise(views, request, Form({}, _FIELDS))


def add(views: Views, request: Request, given: FormData) -> Response:
    """Preview a filter, or add it."""
    form = Form(given, _FIELDS)
    selectors, patterns = form.lines("selectors"), form.whole_lines("patterns")
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
        try:
            with views.context.writing() as repository:
                repository.add_noise_filter(site=form["site"], selectors=[*selectors], patterns=[*patterns])
            return redirect_saved("/settings/noise")
        except UsageError as error:
            form.errors["selectors"] = str(error)
    return _noise(views, request, form, preview)


def remove(views: Views, request: Request, given: FormData) -> Response:
    """Delete a filter."""
    del request
    with changing(views.context.settings_file):
        texts = [_as_text(row) for row in views.settings().filters]
        if given.get("filter") not in texts:
            raise NotKnown("there is no such filter any more")
        with views.context.writing() as repository:
            repository.remove_noise_filter(number=texts.index(str(given.get("filter"))))
    return redirect_saved("/settings/noise")


def _as_text(row: Filter) -> str:
    """Return a filter as one text: a form that removes it says what it removes, as its number may change meanwhile."""
    return json.dumps(asdict(row), ensure_ascii=False)


def _preview(views: Views, form: Form, added: Filter) -> Preview | None:
    """Return what the filter would have hidden; None after an error."""
    try:
        return preview_filter(views.context.folder, added)
    except UsageError as error:
        form.errors["patterns" if added.patterns else "selectors"] = str(error)
        return None


def _noise(views: Views, request: Request, form: Form, preview: Preview | None = None) -> Response:
    with views.reading() as repository:
        sites = names(repository)
    return show_settings(
        views,
        request,
        "settings_noise.html",
        status=400 if form.errors else 200,
        filters=[(row, _as_text(row)) for row in views.settings().filters],
        sites=sites,
        form=form.values,
        errors=form.errors,
        preview=preview,
    )
