"""One page: what is known of it, its versions as text, source and difference, and what is to be expected of it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.discover.urls import origin
from recrawl.errors import NotKnown
from recrawl.record import questions
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.repository.prediction import about_relative, sentences
from recrawl.repository.times import span, stamp
from recrawl.repository.words import count
from recrawl.serve.dashboard import charts
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.render import percent, size
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.queries import pages as reading

_VISITS = 30
_BARS = 60
_TABS = (("", "Overview"), ("/text", "Text"), ("/source", "Source"), ("/diff", "Difference"), ("/outlook", "Outlook"))


def page(views: Views, request: Request) -> Response:
    """What is known, how much changed, the versions and the last visits."""
    with views.reading() as repository:
        db = repository.store.db
        told = reading.page(db, request.path_params["page"])
        versions = reading.versions(db, told["id"])
        visits = questions.visits(db, told["id"], limit=_VISITS)
    return _show(
        views,
        request,
        "page.html",
        told,
        "",
        facts=_facts(told, versions, views.now()),
        divergence=_divergence(versions),
        versions=[_line(row, k + 1 < len(versions)) for k, row in enumerate(versions)],
        cut=len(versions) == reading.MOST_VERSIONS,
        visits=visits,
    )


def text(views: Views, request: Request) -> Response:
    """A version as text."""
    with views.reading() as repository:
        told, version = _version(repository, request)
        found = reading.text_of(repository, version, views.noise()(origin(told["url"])))
    return _show(views, request, "text.html", told, "/text", version=version, text=found)


def source(views: Views, request: Request) -> Response:
    """A version as it was stored."""
    with views.reading() as repository:
        told, version = _version(repository, request)
        found, headers = reading.source_of(repository, version)
    return _show(views, request, "source.html", told, "/source", version=version, text=found, headers=headers)


def difference(views: Views, request: Request) -> Response:
    """What lies between two versions: the last change unless others are named."""
    form = Form(request.query_params, ("old", "new", "view"))
    with views.reading() as repository:
        db = repository.store.db
        told = reading.page(db, request.path_params["page"])
        new = reading.version(db, told["id"], _number(form, "new"))
        wanted = _number(form, "old")
        old = (
            reading.version_before(db, told["id"], new.id)
            if wanted is None
            else reading.version(db, told["id"], wanted)
        )
        old = new if old is None else old
        found = reading.difference(repository, old, new, views.noise()(origin(told["url"])))
        versions = reading.versions(db, told["id"])
    side = form["view"] == "side"
    return _show(
        views,
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


def outlook(views: Views, request: Request) -> Response:
    """How likely it has changed by now, by what other pages, and what the next cycle would do with it."""
    with views.reading() as repository:
        told = reading.page(repository.store.db, request.path_params["page"])
    found = subprocess_queries.predict(views.context, told)
    why, _ = subprocess_queries.why(views.context, told)
    relatives = [{"page": row["page"], "url": row["url"], "text": about_relative(row)} for row in found["relatives"]]
    return _show(
        views,
        request,
        "outlook.html",
        told,
        "/outlook",
        chance=found["probability"],
        sentences=sentences(found),
        relatives=relatives,
        why=why,
    )


def _version(repository: Storage, request: Request) -> tuple[dict[str, Any], VersionRow]:
    """The page that the address names, and the version: the newest unless another is asked for."""
    form = Form(request.query_params, ("version",))
    told = reading.page(repository.store.db, request.path_params["page"])
    return told, reading.version(repository.store.db, told["id"], _number(form, "version"))


def _number(form: Form, name: str) -> int | None:
    """The number of a version, None when none is named."""
    found = form.number(name, most=reading.LARGEST)
    if form.errors[name]:
        raise NotKnown("this page has no such version")
    return found


def _show(views: Views, request: Request, template: str, told: dict[str, Any], tab: str, **values: Any) -> Response:
    tabs = [(f"/pages/{told['id']}{path}", name, path == tab) for path, name in _TABS]
    return views.show(request, template, page=told, tabs=tabs, **values)


def _facts(told: dict[str, Any], versions: list[VersionRow], now: float) -> list[tuple[str, str]]:
    seen = told["last_visit"]
    changed = max(0, told["changes"] - 1)
    return [
        ("Visits", f"{told['visits']:,}, of which {changed:,} found a change"),
        ("Last looked at", "never" if seen is None else f"{stamp(seen)}, {span(max(0.0, now - seen))} ago"),
        ("Last changed", stamp(told["last_change"])),
        ("Found", f"{stamp(told['found'])}, {count(told['depth'], 'link')} from where the crawl began"),
        ("In a sitemap", "yes" if told["listed"] else "no"),
        ("Size", size(told["size"])),
        ("Kind", (versions[0].mime if versions else "") or "not known"),
        ("Failures in a row", str(told["failures"])),
    ]


def _divergence(versions: list[VersionRow]) -> dict[str, Any]:
    """How much each change replaced, oldest first."""
    rows = [row for row in reversed(versions) if row.changed and row.divergence is not None][-_BARS:]
    if not rows:
        return {"chart": None}
    texts = [f"{stamp(row.at)}: {percent(row.divergence)}" for row in rows]
    columns = [[("changed" if row.significant else "plain", row.divergence or 0.0)] for row in rows]
    chart = charts.bars(columns, texts=texts, ticks=[stamp(row.at)[:10] for row in rows], percent=True)
    said = f"{count(len(rows), 'change')}, the last of which replaced {percent(rows[-1].divergence)} of the words."
    return {"chart": chart, "said": said, "rows": [(stamp(row.at), percent(row.divergence)) for row in rows]}


def _line(row: VersionRow, before: bool) -> dict[str, Any]:
    """A version in the timeline."""
    kind = "changed" if before else "new"
    parts = [size(row.size)]
    if before and row.divergence is not None:
        parts.append(f"{percent(row.divergence)} of the words{', significant' if row.significant else ''}")
    if row.new_links:
        parts.append(count(row.new_links, "new link"))
    return {"id": row.id, "at": row.at, "kind": kind, "before": before, "said": ", ".join(parts)}
