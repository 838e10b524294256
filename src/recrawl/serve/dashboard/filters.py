"""Noise filters: what does not count as change, tried on what was seen before it is kept."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from recrawl.compare.noise.filters import Noise
from recrawl.errors import UsageError
from recrawl.serve.api.settings import WRITING
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.settings import lines, redirect_saved, show_settings
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.filter_preview import preview_filter
from recrawl.serve.queries.sites import names
from recrawl.settings import Filter, write_filters

_FIELDS = ("site", "selectors", "patterns", "do")


def noise(views: Views, request: Request) -> Response:
    """The filters that there are, and a form for another."""
    return _noise(views, request, Form({}, _FIELDS))


def add(views: Views, request: Request, given: FormData) -> Response:
    """Try a filter, or keep it."""
    form = Form(given, _FIELDS)
    selectors, patterns = lines(form["selectors"]), lines(form["patterns"])
    if not selectors and not patterns:
        form.errors["selectors"] = "name an element or a pattern"
    for name, part in (("selectors", Noise(selectors=selectors)), ("patterns", Noise(patterns=patterns))):
        try:
            part.check()
        except UsageError as error:
            form.errors[name] = str(error)
    added = Filter(form["site"], selectors, patterns)
    preview = None
    if not form.errors and (form["do"] != "save" or patterns):  # a pattern that takes for ever is not kept either
        preview = _preview(views, form, added)
    if not form.errors and form["do"] == "save":
        with WRITING:
            before = views.settings().filters
            if added not in before:
                write_filters(views.context.settings_file, (*before, added))
                return redirect_saved("/settings/noise")
        form.errors["selectors"] = "this filter is there already"
    return _noise(views, request, form, preview)


def remove(views: Views, request: Request, given: FormData) -> Response:
    """Keep a filter no longer."""
    del request
    number = str(given.get("number", ""))
    with WRITING:
        before = views.settings().filters
        if not number.isdigit() or int(number) >= len(before):
            raise UsageError("there is no such filter")
        write_filters(views.context.settings_file, before[: int(number)] + before[int(number) + 1 :])
    return redirect_saved("/settings/noise")


def _preview(views: Views, form: Form, added: Filter) -> dict[str, Any] | None:
    """What the filter would have hidden."""
    try:
        return preview_filter(views.context.folder, added)
    except UsageError as error:
        form.errors["patterns" if added.patterns else "selectors"] = str(error)
        return None


def _noise(views: Views, request: Request, form: Form, preview: dict[str, Any] | None = None) -> Response:
    with views.reading() as repository:
        sites = names(repository.store.db)
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
