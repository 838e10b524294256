"""API: one page, its versions and visits, differences, visit reasons and change probability."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from recrawl.repository.reports import pages as reading
from recrawl.repository.reports.pages import StoredVersion
from recrawl.repository.repository import Repository
from recrawl.repository.results import pictures
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import LIMIT, Arguments, Operation, rows
from recrawl.serve.context import Context
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.stored_files import download, picture_response

_HIDDEN = frozenset({"key", "payload", "digest", "noise", "folder"})
"""Columns that are internal to the store."""


def lookup(context: Context, given: Arguments) -> dict[str, Any]:
    """Return a page by URL."""
    with context.reading() as repository:
        return _page(repository, reading.find(repository, given["url"])["id"])


def page(context: Context, given: Arguments) -> dict[str, Any]:
    """Return a page by number."""
    with context.reading() as repository:
        return _page(repository, given["page"])


def versions(context: Context, given: Arguments) -> dict[str, Any]:
    """List the newest versions, newest first."""
    with context.reading() as repository:
        known = reading.page(repository, given["page"])
        return rows([_version(row) for row in reading.versions(repository, known["id"])])


def visits(context: Context, given: Arguments) -> dict[str, Any]:
    """List the newest visits, newest first."""
    with context.reading() as repository:
        known = reading.page(repository, given["page"])
        return rows(reading.visits(repository, known["id"], given["limit"]))


def text(context: Context, given: Arguments) -> dict[str, Any]:
    """Return the text of a version."""
    with context.reading() as repository:
        known, version = _chosen(repository, given)
        found = reading.text_of(repository, known["url"], version)
    content = {"text": "\n".join(found.lines), "cut": found.cut, "problem": found.problem}
    return {"url": known["url"], **_version(version), **content}


async def source(context: Context, request: Request, given: Arguments) -> Response:
    """Download the stored bytes of a version."""
    return await download(context, request, given["page"], given["version"])


def diff(context: Context, given: Arguments) -> dict[str, Any]:
    """Return the difference between two versions."""
    with context.reading() as repository:
        known, old, new = _pair(repository, given)
        found = reading.difference(repository, known["url"], old, new)
    return {
        "url": known["url"],
        "old": _version(old),
        "new": _version(new),
        "divergence": found.share,
        "diff": found.unified,
        "problem": found.problem,
    }


async def screenshot(context: Context, request: Request, given: Arguments) -> Response:
    """Download the screenshot of a version."""
    del request
    return picture_response(await run_in_threadpool(_screenshot, context, given))


async def visual_diff(context: Context, request: Request, given: Arguments) -> Response:
    """Download the screenshots of two versions side by side, with their differences outlined."""
    del request
    return picture_response(await run_in_threadpool(_visual_diff, context, given))


def _screenshot(context: Context, given: Arguments) -> bytes:
    with context.reading() as repository:
        known, version = _chosen(repository, given)
        return pictures.picture_of(repository, version, known["url"])


def _visual_diff(context: Context, given: Arguments) -> bytes:
    with context.reading() as repository:
        known, old, new = _pair(repository, given)
        before, after = (pictures.picture_of(repository, it, known["url"]) for it in (old, new))
    return pictures.compare_pictures(before, after).side_by_side()


def why(context: Context, given: Arguments) -> dict[str, Any]:
    """Return why a page was visited or not, and whether the next cycle would choose it."""
    with context.reading() as repository:
        known = reading.page(repository, given["page"])
    sentences, plan = subprocess_queries.why(context, known["url"])
    return {"url": known["url"], "state": known["state"], "why": sentences, "plan": plan}


def predict(context: Context, given: Arguments) -> dict[str, Any]:
    """Return the probability that a page has changed since its last visit."""
    with context.reading() as repository:
        known = reading.page(repository, given["page"])
    return subprocess_queries.predict(context, known["url"])


def _page(repository: Repository, number: int) -> dict[str, Any]:
    found = reading.page(repository, number)
    return {name: value for name, value in found.items() if name not in _HIDDEN}


def _chosen(repository: Repository, given: Arguments) -> tuple[dict[str, Any], StoredVersion]:
    known = reading.page(repository, given["page"])
    return known, reading.version(repository, known["id"], given["version"])


def _pair(repository: Repository, given: Arguments) -> tuple[dict[str, Any], StoredVersion, StoredVersion]:
    """A page and the two versions that are compared."""
    known = reading.page(repository, given["page"])
    new = reading.version(repository, known["id"], given["new"])
    if given["old"] is None:
        return known, reading.version_before(repository, new) or new, new
    return known, reading.version(repository, known["id"], given["old"]), new


def _version(row: StoredVersion) -> dict[str, Any]:
    names = (
        *("id", "at", "divergence", "new_links", "size", "title", "mime", "encoding", "digest"),
        *("language", "description", "image", "published", "updated"),
    )
    values = {name: getattr(row, name) for name in names}
    significant = None if row.significant is None else bool(row.significant)
    flags = {"changed": bool(row.changed), "significant": significant, "rendered": bool(row.rendered)}
    return {**values, **flags}


_VERSION = Field("version", "integer", "Number (`id`) of the version; omitted: the newest.", least=0, most=2**53)
_COMPARED = (
    Field("old", "integer", "Earlier version; omitted: the one before `new`.", least=0, most=2**53),
    Field("new", "integer", "Later version; omitted: the newest.", least=0, most=2**53),
)
OPERATIONS = (
    Operation(
        method="GET",
        path="/page",
        name="lookup",
        summary="Get a page by URL.",
        answer=lookup,
        query=(Field("url", "string", "URL of the page.", required=True),),
    ),
    Operation(method="GET", path="/pages/{page}", name="page", summary="Get a page by number.", answer=page),
    Operation(
        method="GET",
        path="/pages/{page}/versions",
        name="versions",
        verbs=("log",),
        summary="List the versions of a page.",
        answer=versions,
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/visits",
        name="visits",
        verbs=("log",),
        summary="List the visits of a page.",
        answer=visits,
        query=(LIMIT,),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/text",
        name="text",
        verbs=("show",),
        summary="Get the text of a version.",
        answer=text,
        query=(_VERSION,),
    ),
    Operation(
        method="GET",
        path="/pages/{page}/source",
        name="source",
        verbs=("show",),
        summary="Download the stored bytes of a version.",
        handler=source,
        query=(_VERSION,),
        returns="application/octet-stream",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/diff",
        name="diff",
        verbs=("diff",),
        summary="Compare two versions.",
        answer=diff,
        query=_COMPARED,
    ),
    Operation(
        method="GET",
        path="/pages/{page}/screenshot",
        name="screenshot",
        verbs=("show",),
        summary="Download the screenshot of a version.",
        handler=screenshot,
        query=(_VERSION,),
        returns="image/png",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/visual-diff",
        name="visual_diff",
        verbs=("diff",),
        summary="Compare the screenshots of two versions.",
        handler=visual_diff,
        query=_COMPARED,
        returns="image/png",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/why",
        name="why",
        verbs=("why",),
        summary="Explain why a page is visited or not.",
        answer=why,
    ),
    Operation(
        method="GET",
        path="/pages/{page}/predict",
        name="predict",
        verbs=("predict",),
        summary="Estimate the probability that a page has changed.",
        answer=predict,
    ),
)
