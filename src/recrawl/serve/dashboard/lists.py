"""Changes, pages and search."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.reports import changes as reading
from recrawl.repository.reports.pages import find
from recrawl.repository.reports.sites import all_pages, names, site_pages
from recrawl.repository.results.values import SearchHits
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.views import Views

_FEED_ENTRIES = 50
_HITS = 20
_MAX_OFFSET = 1000
_PAGES = 100
STATES = ("live", "missing", "gone", "moved", "barred", "found", "dropped")


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


def pages(views: Views, request: Request) -> Response:
    """List pages by site and state, or go to the page with an address."""
    form = Form(request.query_params, ("site", "state", "url", "after"))
    if form["url"].strip():
        with views.reading() as repository:
            found = form.read("url", lambda text: find(repository, text))
        if found is not None:
            return RedirectResponse(f"/pages/{found['id']}", 303)
    site, after = form.number("site", most=1 << 31), form["after"]
    state = form["state"] if form["state"] in STATES else ""
    place = [int(part) for part in after.split(".") if part.isascii() and part.isdigit() and len(part) < 16]
    with views.reading() as repository:
        if site is None:
            rows, older = all_pages(repository, place[0] if place else -1, state, _PAGES)
            next_place = "" if older is None else str(older)
        else:
            begin = (place[0], place[1]) if len(place) > 1 else (-1, -1)
            rows, pair = site_pages(repository, site, begin, state, _PAGES)
            next_place = "" if pair is None else f"{pair[0]}.{pair[1]}"
        sites = names(repository)
    given = {name: form[name] for name in ("site", "state") if form[name]}
    return views.show(
        request,
        "pages.html",
        status=400 if form.errors else 200,
        rows=rows,
        sites=sites,
        states=STATES,
        form=form.values,
        errors=form.errors,
        older=f"?{urlencode({**given, 'after': next_place})}" if next_place else "",
    )


def why(views: Views, request: Request) -> Response:
    """Go to the part of a page that says why it is visited."""
    url = request.query_params.get("url", "").replace("\0", "").strip()
    if not url:
        return RedirectResponse("/pages", 303)
    with views.reading() as repository:
        return RedirectResponse(f"/pages/{find(repository, url)['id']}/outlook", 303)
