"""One page: facts, versions as text, source, screenshot and difference, and the outlook."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.errors import DamagedRecord, NotKnown, RepositoryError, UsageError
from recrawl.repository.explain.prediction import about_relative, sentences
from recrawl.repository.replay import FIRST_CHANGE
from recrawl.repository.reports import pages as reading
from recrawl.repository.reports.pages import StoredVersion
from recrawl.repository.repository import Repository
from recrawl.repository.results.pictures import StoredPicture, compare_pictures, picture_of, stored_picture
from recrawl.repository.results.words import count, size
from recrawl.serve import replay
from recrawl.serve.dashboard import charts
from recrawl.serve.dashboard.charts import TimeRange, time_range
from recrawl.serve.dashboard.forms import Form
from recrawl.serve.dashboard.marks import notice, shown_marks
from recrawl.serve.dashboard.render import percent
from recrawl.serve.dashboard.views import Views
from recrawl.serve.jobs.subprocess_queries import PREDICT, WHY, explained
from recrawl.times import span, stamp

_VISITS = 30
_BARS = 60
_VIEWS = ("inline", "side", "looks", "screenshots")
_TABS = (
    ("", "Overview"),
    ("/look", "As it looked"),
    ("/read", "Read"),
    ("/text", "Text"),
    ("/source", "Source"),
    ("/diff", "Difference"),
    ("/outlook", "Why and when"),
)


def page(views: Views, request: Request) -> Response:
    """Show the facts, the size of changes, the versions and the last visits."""
    shown = time_range(request, views.now())
    with views.reading() as repository:
        found = reading.page(repository, request.path_params["page"])
        versions = reading.versions(repository, found["id"])
        visits = reading.visits(repository, found["id"], _VISITS)
    return _show(
        views,
        request,
        "page.html",
        found,
        "",
        facts=_facts(found, versions, views.now()),
        shown=shown,
        divergence=_divergence(versions, shown),
        versions=[_timeline_entry(row, k + 1 < len(versions)) for k, row in enumerate(versions)],
        cut=len(versions) == reading.MAX_VERSIONS,
        visits=visits,
    )


def look(views: Views, request: Request) -> Response:
    """Show a version as it looked, with a slider over the versions."""
    form = Form(request.query_params, ("version", "place", "view"))
    with views.reading() as repository:
        found = reading.page(repository, request.path_params["page"])
        versions = reading.versions(repository, found["id"])[::-1]
        if not versions:
            raise NotKnown("this page has no downloaded version")
        place = form.number("place", least=1, most=len(versions))
        number = _number(form, "version")
        shown = versions[place - 1] if place else reading.version(repository, found["id"], number)
        picture = _shown_picture(repository, shown)
    listed = [row.id for row in versions]
    at = listed.index(shown.id) if shown.id in listed else -1
    return _show(
        views,
        request,
        "look.html",
        found,
        "/look",
        version=shown,
        picture=picture,
        view="screenshot" if picture and form["view"] == "screenshot" else "replay",
        frame=replay.address(views.context, shown.id, found["url"]),
        place=at + 1,
        times=[row.at for row in versions],
        before=listed[at - 1] if at > 0 else None,
        after=listed[at + 1] if 0 <= at < len(listed) - 1 else None,
    )


def read(views: Views, request: Request) -> Response:
    """Show the content of a version to a reader, without the frame of its site."""
    with views.reading() as repository:
        found, version = _version(repository, request)
        shown = reading.content_of(repository, found["url"], version)
    return _show(views, request, "read.html", found, "/read", version=version, content=shown)


def text(views: Views, request: Request) -> Response:
    """Show a version as text."""
    with views.reading() as repository:
        found, version = _version(repository, request)
        shown = reading.text_of(repository, found["url"], version)
    return _show(views, request, "text.html", found, "/text", version=version, text=shown)


def source(views: Views, request: Request) -> Response:
    """Show the stored source of a version."""
    with views.reading() as repository:
        found, version = _version(repository, request)
        shown, headers = reading.source_of(repository, version)
    return _show(views, request, "source.html", found, "/source", version=version, text=shown, headers=headers)


def difference(views: Views, request: Request) -> Response:
    """Show the difference between two versions; by default the last change."""
    form = Form(request.query_params, ("old", "new", "view"))
    with views.reading() as repository:
        found = reading.page(repository, request.path_params["page"])
        new = reading.version(repository, found["id"], _number(form, "new"))
        number = _number(form, "old")
        if number is None:
            old = reading.version_before(repository, new) or new
        else:
            old = reading.version(repository, found["id"], number)
        shown = reading.difference(repository, found["url"], old, new)
        versions = reading.versions(repository, found["id"])
        view = form["view"] if form["view"] in _VIEWS else "inline"
        pictures = _compared_pictures(repository, found["url"], old, new) if view == "screenshots" else None
    frames = []
    if view == "looks":
        frames = [
            f"{replay.address(views.context, it.id, found['url'], mark=f'{kind}.{other.id}')}#{FIRST_CHANGE}"
            for it, other, kind in ((old, new, "removed"), (new, old, "added"))
        ]
    return _show(
        views,
        request,
        "diff.html",
        found,
        "/diff",
        old=old,
        new=new,
        versions=versions,
        difference=shown,
        view=view,
        frames=frames,
        pictures=pictures,
    )


def outlook(views: Views, request: Request) -> Response:
    """Show the change probability, related pages, and whether the next cycle would visit the page."""
    with views.reading() as repository:
        found = reading.page(repository, request.path_params["page"])
    prediction, why = (explained(views.context, it, found["url"]) for it in (PREDICT, WHY))
    relatives = [
        {"page": row["page"], "url": row["url"], "text": about_relative(row)} for row in prediction["relatives"]
    ]
    return _show(
        views,
        request,
        "outlook.html",
        found,
        "/outlook",
        probability=prediction["probability"],
        sentences=sentences(prediction),
        relatives=relatives,
        why=why["why"],
    )


def _version(repository: Repository, request: Request) -> tuple[dict[str, Any], StoredVersion]:
    """Return the requested page and version; by default the newest version."""
    form = Form(request.query_params, ("version",))
    found = reading.page(repository, request.path_params["page"])
    return found, reading.version(repository, found["id"], _number(form, "version"))


def _number(form: Form, name: str) -> int | None:
    """Return the version number in a field; None if it is empty."""
    found = form.number(name, most=reading.MAX_ID)
    if form.errors[name]:
        raise NotKnown(f"this page has no version '{form[name]}'")
    return found


def _show(views: Views, request: Request, template: str, found: dict[str, Any], tab: str, **values: Any) -> Response:
    tabs = [(f"/pages/{found['id']}{path}", name, path == tab) for path, name in _TABS]
    marks = shown_marks(views, found["url"], found["site"], found["id"])
    return views.show(request, template, page=found, tabs=tabs, marks=marks, notice=notice(request), **values)


def _facts(found: dict[str, Any], versions: list[StoredVersion], now: float) -> list[tuple[str, str]]:
    last = found["last_visit"]
    changed = max(0, found["changes"] - 1)
    newest = versions[0] if versions else None
    stated = {"Language": newest.language, "Description": newest.description} if newest else {}
    dates = {"Published": newest.published, "Updated by its own account": newest.updated} if newest else {}
    return [
        ("Visits", f"{found['visits']:,} ({changed:,} found a change)"),
        ("Last visit", "never" if last is None else f"{stamp(last)}, {span(max(0.0, now - last))} ago"),
        ("Last changed", stamp(found["last_change"])),
        ("Discovered", f"{stamp(found['found'])}, {count(found['depth'], 'link')} from the seed"),
        ("In a sitemap", "yes" if found["listed"] else "no"),
        ("Size", size(found["size"])),
        ("Media type", (versions[0].mime if versions else "") or "not known"),
        ("Consecutive failures", str(found["failures"])),
        *((name, text) for name, text in stated.items() if text),
        *((name, stamp(date)) for name, date in dates.items() if date is not None),
    ]


def _divergence(versions: list[StoredVersion], shown: TimeRange) -> dict[str, Any]:
    """Return the chart of the share of words that each change replaced, oldest first."""
    dated = [row for row in versions if shown.since <= row.at <= shown.until]
    rows = [row for row in reversed(dated) if row.changed and row.divergence is not None][-_BARS:]
    if not rows:
        return {"chart": None}
    texts = [f"{stamp(row.at)[:16]}\n{percent(row.divergence)} of the words" for row in rows]
    columns = [[("changed" if row.significant else "plain", row.divergence or 0.0)] for row in rows]
    axes = charts.Axes("Time of the change (UTC)", "Words replaced (%)")
    chart = charts.bars(columns, texts=texts, times=[row.at for row in rows], axes=axes, percent=True)
    summary = f"{count(len(rows), 'change')}; the last one replaced {percent(rows[-1].divergence)} of the words."
    return {"chart": chart, "summary": summary, "rows": [(stamp(row.at), percent(row.divergence)) for row in rows]}


def _timeline_entry(row: StoredVersion, before: bool) -> dict[str, Any]:
    """Return a version as an entry of the timeline; `before` if an earlier version is listed."""
    kind = "changed" if before else "new"
    parts = [size(row.size)]
    if before and row.divergence is not None:
        parts.append(f"{percent(row.divergence)} of the words{', significant' if row.significant else ''}")
    if row.rendered:
        parts.append("rendered")
    if row.new_links:
        parts.append(count(row.new_links, "new link"))
    return {"id": row.id, "at": row.at, "kind": kind, "before": before, "summary": ", ".join(parts)}


def _shown_picture(repository: Repository, version: StoredVersion) -> dict[str, Any] | None:
    """Return the screenshot of a version; None if there is none."""
    found = stored_picture(repository, version)
    return None if found is None else _picture(version, found)


def _compared_pictures(repository: Repository, url: str, old: StoredVersion, new: StoredVersion) -> dict[str, Any]:
    """Return the screenshots of two versions with their differences, or the reason why there are none."""
    before, after = stored_picture(repository, old), stored_picture(repository, new)
    if before is None or after is None:
        return {
            "problem": "There is no screenshot of " + ("either version" if before is after else "one of them") + "."
        }
    shown: dict[str, Any] = {"before": _picture(old, before), "after": _picture(new, after), "problem": ""}
    try:
        found = compare_pictures(*(picture_of(repository, version, url) for version in (old, new)))
    except (UsageError, DamagedRecord, RepositoryError) as error:
        return {**shown, "problem": f"What changed is not outlined: {error}."}
    shown["before"]["boxes"], shown["after"]["boxes"] = found.boxes
    tops = [min((box.top for box in boxes), default=None) for boxes in found.boxes]
    for name, top in zip(("before", "after"), tops, strict=True):
        shown[name]["first"] = top if top is not None else next((other for other in tops if other is not None), None)
    return {**shown, "regions": found.regions}


def _picture(version: StoredVersion, picture: StoredPicture) -> dict[str, Any]:
    return {
        "source": f"/api/v1/pages/{version.page}/screenshot?version={version.id}",
        "width": picture.width,
        "height": picture.height,
        "at": picture.at,
        "boxes": (),
        "first": None,
    }
