"""Changes, search and visit reasons."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.reports import changes as reading
from recrawl.repository.reports.pages import find
from recrawl.repository.reports.sites import names
from recrawl.repository.results.values import SearchHits
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs import subprocess_queries

_FEED_ENTRIES = 50
_HITS = 20
_MAX_OFFSET = 1000


def changes(views: Views, request: Request) -> Response:
    """Show the stream of updates."""
    form, filters = _filters(views, request)
    after = form.read("after", reading.ChangeCursor.read)
    with views.reading() as repository:
        found = reading.changes(repository, filters, after=after) if not form.errors else None
        sites, tags, saved = names(repository), repository.tags(), repository.saved_filters()
    given = {name: form[name] for name in form.values if form[name] and name != "after"}
    older = f"?{urlencode({**given, 'after': str(found.older)})}" if found and found.older else ""
    return views.show(
        request,
        "changes.html",
        status=400 if form.errors else 200,
        rows=found.rows if found else [],
        looked_through=bool(found and found.looked_through),
        older=older,
        filtered=bool(given),
        query=f"?{urlencode(given)}" if given else "",
        form=form.values,
        errors=form.errors,
        sites=sites,
        tags=[name for name, _, _ in tags],
        saved=[(name, f"/changes?{urlencode(fields)}", fields == given) for name, fields in saved.items()],
        given=given,
        outcomes=reading.OUTCOMES,
    )


def feed(views: Views, request: Request) -> Response:
    """Return the updates as an Atom feed, with the same filters."""
    form, filters = _filters(views, request)
    if form.errors:
        name, text = next(iter(form.errors.items()))
        raise UsageError(f"{name}: {text}")
    with views.reading() as repository:
        found = reading.changes(repository, filters, limit=_FEED_ENTRIES)
    rows = [{**row, "title": _printable(row["title"] or row["url"])} for row in found.rows]
    root = str(request.base_url).rstrip("/")
    updated = rows[0]["at"] if rows else views.now()
    text = views.text("feed.xml", root=root, own=str(request.url), rows=rows, updated=updated)
    return Response(text, media_type="application/atom+xml")


def _filters(views: Views, request: Request) -> tuple[Form, reading.Filters]:
    """Parse the filters of a request."""
    form = Form(
        request.query_params,
        ("site", "path", "since", "until", "least", "what", "significant", "tag", "unread", "after"),
    )
    now = views.now()
    on = {name: bool(form.switch(name)) for name in ("significant", "unread")}
    form.values.update({name: "1" if value else "" for name, value in on.items() if name not in form.errors})
    return form, reading.Filters(
        site=form.number("site", most=1 << 31),
        path=form["path"],
        since=form.moment("since", now),
        until=form.moment("until", now),
        divergence=(form.real("least", most=100.0) or 0.0) / 100,
        significant=on["significant"],
        outcome=form["what"] if form["what"] in reading.OUTCOMES else "",
        tag=form["tag"].strip(),
        unread=on["unread"],
    )


def _printable(text: str) -> str:
    """Replace characters that XML forbids.

    >>> _printable("a\\x00b")
    'a b'
    """
    return "".join(character if character.isprintable() else " " for character in text)


def search_page(views: Views, request: Request) -> Response:
    """Show full-text search results with snippets."""
    form = Form(request.query_params, ("q", "site", "language", "since", "until", "from"))
    now = views.now()
    only: dict[str, Any] = {"site": form["site"], "language": form["language"].strip()}
    only |= {name: form.moment(name, now) for name in ("since", "until")}
    offset = form.number("from", most=_MAX_OFFSET) or 0
    hits = SearchHits()
    with views.reading() as repository:
        sites = names(repository)
        if form["q"].strip() and not form.errors:
            try:
                hits = repository.search(form["q"], limit=_HITS + 1, offset=offset, **only)
            except (UsageError, NotKnown) as error:
                form.errors["q"] = str(error)
    given = {name: form[name] for name in ("q", "site", "language", "since", "until") if form[name]}
    return views.show(
        request,
        "search.html",
        status=400 if form.errors else 200,
        hits=hits[:_HITS],
        problem=hits.problem,
        older=f"?{urlencode({**given, 'from': offset + _HITS})}" if len(hits) > _HITS else "",
        newer=f"?{urlencode({**given, 'from': max(0, offset - _HITS)})}" if offset else "",
        form=form.values,
        errors=form.errors,
        sites=sites,
    )


def why(views: Views, request: Request) -> Response:
    """Explain why a page is visited or not."""
    form = Form(request.query_params, ("url",))
    with views.reading() as repository:
        page = form.read("url", lambda text: find(repository, text))
    found = page and subprocess_queries.explained(views.context, subprocess_queries.WHY, page["url"])
    return views.show(
        request,
        "why.html",
        status=400 if form.errors else 200,
        page=page,
        sentences=found["why"] if found else [],
        form=form.values,
        errors=form.errors,
    )
