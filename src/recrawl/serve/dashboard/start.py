"""The first question: which site or page to keep. Its crawl begins at once, and its failures have causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import UsageError
from recrawl.operations import members_of
from recrawl.parameters import SiteRules
from recrawl.repository.reports.seeds import SeedState
from recrawl.repository.seed_rules import seed_url
from recrawl.repository.seeds import add_seeds
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.views import Views
from recrawl.settings import Settings, changing
from recrawl.times import duration, span

PAGES = 1000
"""Pages of a site, unless another number is given."""
_RULES = members_of(SiteRules)
_NAMES = ("limit", "delay", "every", "allow_private")
_FIELDS = ("url", "whole", *_NAMES)
_NEED = 20
"""Sites that need attention, listed at most."""


def start_page(views: Views, request: Request) -> Response:
    """Show the form."""
    return views.show(request, "start.html", **shown_start(views.settings()))


def start(views: Views, request: Request, given: FormData) -> Response:
    """Add a site or page; the scheduler crawls it now. The overview shows how it goes."""
    form = Form(given, _FIELDS)
    url = form.read("url", seed_url)
    if url is None and not form.errors:
        form.errors["url"] = "give the address of a site or page"
    rules: dict[str, Any] = {name: form.given(_RULES[name]) for name in _NAMES if form[name].strip()}
    if form["whole"] == "page":
        rules["depth"] = 0
        rules.pop("limit", None)
    with changing(views.context.settings_file):
        if url is not None and not form.errors:
            try:
                add_seeds(views.context.folder, views.settings(), [url], rules)
            except UsageError as error:
                form.errors["url"] = str(error)
            else:
                views.context.scheduler.wake()
                return RedirectResponse("/", 303)
    return views.show(request, "start.html", status=400, **shown_start(views.settings(), form))


def shown_start(values: Settings, form: Form | None = None) -> dict[str, Any]:
    """Return what the form shows: its fields, and what will happen with them."""
    filled = form or Form({"limit": str(PAGES), "whole": "site"}, _FIELDS)
    return {
        "form": filled.values,
        "errors": filled.errors,
        "has_pages": bool(values.seeds),
        "pages": PAGES,
        "delay": f"{values['delay']:g}",
        "period": span(duration(values["every"])),
        "helps": {name: _RULES[name].about.help for name in _NAMES},
    }


def needing(states: Sequence[SeedState]) -> list[SeedState]:
    """Return the seeds whose page cannot be read, at most so many as people look at."""
    return [state for state in states if state.state in ("failing", "missing", "gone")][:_NEED]
