"""One page: what is known of it, its versions as text, source and difference, and what is to be expected of it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.discover.urls import origin
from recrawl.errors import UsageError
from recrawl.record import questions
from recrawl.record.repository import Repository
from recrawl.record.rows import VersionRow
from recrawl.serve.dashboard import charts
from recrawl.serve.dashboard.desk import Desk
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.render import percent, size
from recrawl.serve.reading import pages as reading
from recrawl.verbs.predict import about_relative, foretold, sentences
from recrawl.verbs.times import span, stamp
from recrawl.verbs.words import count

_VISITS = 30
_BARS = 60
_TABS = (("", "Overview"), ("/text", "Text"), ("/source", "Source"), ("/diff", "Difference"), ("/outlook", "Outlook"))


def page(desk: Desk, request: Request) -> Response:
    """What is known, how much changed, the versions and the last visits."""
    with desk.reading() as repository:
        db = repository.store.db
        told = reading.page(db, request.path_params["page"])
        versions = reading.versions(db, told["id"])
        visits = questions.visits(db, told["id"], limit=_VISITS)
    return _show(
        desk,
        request,
        "page.html",
        told,
        "",
        facts=_facts(told, versions, desk.now()),
        divergence=_divergence(versions),
        versions=[_line(row, k + 1 < len(versions)) for k, row in enumerate(versions)],
        cut=len(versions) == reading.MOST_VERSIONS,
        visits=visits,
    )


def text(desk: Desk, request: Request) -> Response:
    """A version as text."""
    with desk.reading() as repository:
        told, version = _version(repository, request)
        found = reading.text_of(repository, version, desk.noise()(origin(told["url"])))
    return _show(desk, request, "text.html", told, "/text", version=version, text=found)


def source(desk: Desk, request: Request) -> Response:
    """A version as it was stored."""
    with desk.reading() as repository:
        told, version = _version(repository, request)
        found, headers = reading.source_of(repository, version)
    return _show(desk, request, "source.html", told, "/source", version=version, text=found, headers=headers)


def difference(desk: Desk, request: Request) -> Response:
    """What lies between two versions: the last change unless others are named."""
    form = Form(request.query_params, ("old", "new", "view"))
    with desk.reading() as repository:
        db = repository.store.db
        told = reading.page(db, request.path_params["page"])
        new = reading.version(db, told["id"], form.number("new", most=1 << 62))
        wanted = form.number("old", most=1 << 62)
        old = (
            reading.version_before(db, told["id"], new.id)
            if wanted is None
            else reading.version(db, told["id"], wanted)
        )
        old = new if old is None else old
        found = reading.difference(repository, old, new, desk.noise()(origin(told["url"])))
        versions = reading.versions(db, told["id"])
    side = form["view"] == "side"
    return _show(
        desk,
        request,
        "diff.html",
        told,
        "/diff",
        old=old,
        new=new,
        versions=versions,
        difference=found,
        view="side" if side else "inline",
    )


def outlook(desk: Desk, request: Request) -> Response:
    """How likely it has changed by now, by what other pages, and what the next cycle would do with it."""
    now = desk.now()
    with desk.apart() as repository:
        told = reading.page(repository.store.db, request.path_params["page"])
        found = foretold(repository, told, now)
        numbers = _numbers(repository, [row["url"] for row in found["relatives"]])
        why = desk.why(repository, told)
    relatives = [{"page": row["page"], "url": row["url"], "text": about_relative(row)} for row in found["relatives"]]
    return _show(
        desk,
        request,
        "outlook.html",
        told,
        "/outlook",
        chance=found["probability"],
        sentences=sentences(found),
        relatives=relatives,
        why=why,
    )
