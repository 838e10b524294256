"""Actions on pages, sites and changes: recheck now, tags, intervals, read marks, saved filters."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import UsageError
from recrawl.repository.marks import FILTER_FIELDS
from recrawl.repository.reports.marks import interval_of, seeds_with_interval, tags_of
from recrawl.repository.seeds import add_seeds
from recrawl.serve.access.security import local_path
from recrawl.serve.api import service as api
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.views import Views
from recrawl.settings import changing

_NOTICES = {
    "requested": "A visit is requested and starts as soon as nothing else writes to the repository.",
    "queued": "A visit is requested; it is made as soon as what runs now has ended.",
}
"""Notices after an action, by the value of `done`."""


def notice(request: Request) -> str:
    """Return the notice of the action that led to this page."""
    return _NOTICES.get(request.query_params.get("done", ""), "")


def shown_marks(views: Views, url: str, site: int, page: int | None) -> dict[str, Any]:
    """Return the tags and the interval of a page, or of a site."""
    with views.reading() as repository:
        tags = tags_of(repository, site, page)
        every = [name for name, _, _ in repository.tags()]
    return {
        "target": url,
        "page": page,
        "tags": tags,
        "all_tags": every,
        "every": interval_of(views.settings(), url, is_page=page is not None),
    }


def recheck(views: Views, request: Request, given: FormData) -> Response:
    """Visit a page or site now."""
    del request
    answer = api.recheck(views.context, target=_text(given, "target"))
    return _back(given, "requested" if answer.started else "queued")


def tag(views: Views, request: Request, given: FormData) -> Response:
    """Add or remove a tag."""
    del request
    with views.context.writing() as repository:
        change = repository.untag if given.get("do") == "remove" else repository.tag
        change(_text(given, "name"), _text(given, "target"))
    return _back(given)


def interval(views: Views, request: Request, given: FormData) -> Response:
    """Set or clear the interval of a page or site: the rule `every` of its seeds, and nothing else of them."""
    del request
    url, is_page = _text(given, "target"), bool(given.get("page"))
    with changing(views.context.settings_file):
        values = views.settings()
        form = Form(given, ("every",), {"every": interval_of(values, url, is_page=is_page) or ""})
        if "every" in form.edited:
            every = form["every"].strip()
            seeds = [seed.url for seed in seeds_with_interval(values, url, is_page=is_page)]
            if seeds:
                add_seeds(views.context.folder, values, seeds, {"every": every})
            elif every:
                add_seeds(views.context.folder, values, [url], {"every": every, "depth": 0})
            views.context.scheduler.wake()
    return _back(given)


def mark_read(views: Views, request: Request, given: FormData) -> Response:
    """Mark one change, or all, as read or unread."""
    del request
    number = _text(given, "id")
    if "id" in given and not (number.isascii() and number.isdigit() and len(number) < 16):
        raise UsageError(f"invalid change '{number}'")
    with views.context.writing() as repository:
        repository.mark_read(ids=[int(number)] if number else None, read=given.get("do") != "unread")
    return _back(given)


def save_filter(views: Views, request: Request, given: FormData) -> Response:
    """Save the filters of the list of changes under a name, or delete a saved filter."""
    del request
    name = _text(given, "name")
    fields: Any = {key: _text(given, key) for key in FILTER_FIELDS}
    with views.context.writing() as repository:
        if given.get("do") == "remove":
            repository.remove_filter(name)
            return RedirectResponse("/changes", 303)
        repository.save_filter(name, **fields)
    return RedirectResponse(f"/changes?{urlencode({key: value for key, value in fields.items() if value})}", 303)


def _text(given: FormData, name: str) -> str:
    value = given.get(name, "")
    return value.replace("\0", "").strip()[:4096] if isinstance(value, str) else ""


def _back(given: FormData, done: str = "") -> Response:
    """Redirect to the page that the form was on."""
    path = local_path(_text(given, "back") or "/")
    mark = f"{'&' if '?' in path else '?'}done={done}" if done else ""
    return RedirectResponse(path + mark, 303)
