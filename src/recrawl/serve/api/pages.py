"""One page: what is known of it, its versions and visits, what changed, why it is visited, what is to be expected."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from recrawl.compare.diff import unified
from recrawl.discover.urls import origin
from recrawl.record import questions
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.repository.lookup import page_of
from recrawl.repository.opening import options_of
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import LIMIT, Arguments, Operation, rows
from recrawl.serve.context import Context
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.queries import pages as reading
from recrawl.serve.stored_files import download

_HIDDEN = frozenset({"key", "payload", "digest", "noise", "folder"})
"""Columns that mean nothing outside the store."""


def lookup(context: Context, given: Arguments) -> dict[str, Any]:
    """A page by its address."""
    with context.reading() as repository:
        number = page_of(repository, given["url"])["id"]
        return _page(repository, number)


def page(context: Context, given: Arguments) -> dict[str, Any]:
    """A page by its number."""
    with context.reading() as repository:
        return _page(repository, given["page"])


def versions(context: Context, given: Arguments) -> dict[str, Any]:
    """Versions, newest first; of very many the newest."""
    with context.reading() as repository:
        known = reading.page(repository.store.db, given["page"])
        return rows([_version(row) for row in reading.versions(repository.store.db, known["id"])])


def visits(context: Context, given: Arguments) -> dict[str, Any]:
    """Visits, newest first; of very many the newest."""
    with context.reading() as repository:
        known = reading.page(repository.store.db, given["page"])
        return rows(questions.visits(repository.store.db, known["id"], limit=given["limit"]))


def text(context: Context, given: Arguments) -> dict[str, Any]:
    """What a version says."""
    noise = options_of(context.settings()).noise
    with context.reading() as repository:
        known, version = _chosen(repository, given)
        found = reading.text_of(repository, version, noise(origin(known["url"])))
    told = {"text": "\n".join(found.lines), "cut": found.cut, "problem": found.problem}
    return {"url": known["url"], **_version(version), **told}


async def source(context: Context, request: Request, given: Arguments) -> Response:
    """A version as it was stored, to be kept and not to be shown."""
    return await download(context, request, given["page"], given["version"])


def diff(context: Context, given: Arguments) -> dict[str, Any]:
    """What changed from one version to another."""
    noise = options_of(context.settings()).noise
    with context.reading() as repository:
        db = repository.store.db
        known = reading.page(db, given["page"])
        new = reading.version(db, known["id"], given["new"])
        earlier = reading.version_before(db, known["id"], new.id)
        old = reading.version(db, known["id"], given["old"]) if given["old"] is not None else earlier or new
        found = reading.difference(repository, old, new, noise(origin(known["url"])))
    return {
        "url": known["url"],
        "old": _version(old),
        "new": _version(new),
        "divergence": found.share,
        "diff": unified(found.hunks),
        "problem": found.problem,
    }


def why(context: Context, given: Arguments) -> dict[str, Any]:
    """Why it was visited or not, and whether the next cycle would choose it."""
    with context.reading() as repository:
        known = reading.page(repository.store.db, given["page"])
    sentences, plan = subprocess_queries.why(context, known)
    return {"url": known["url"], "state": known["state"], "why": sentences, "plan": plan}


def predict(context: Context, given: Arguments) -> dict[str, Any]:
    """How likely it has changed by now."""
    with context.reading() as repository:
        known = reading.page(repository.store.db, given["page"])
    return subprocess_queries.foretold(context, known)


def _page(repository: Storage, number: int) -> dict[str, Any]:
    found = reading.page(repository.store.db, number)
    return {name: value for name, value in found.items() if name not in _HIDDEN}


def _chosen(repository: Storage, given: Arguments) -> tuple[dict[str, Any], VersionRow]:
    known = reading.page(repository.store.db, given["page"])
    return known, reading.version(repository.store.db, known["id"], given["version"])


def _version(row: VersionRow) -> dict[str, Any]:
    names = ("id", "at", "divergence", "new_links", "size", "title", "mime", "encoding", "digest")
    told = {name: getattr(row, name) for name in names}
    significant = None if row.significant is None else bool(row.significant)
    return {**told, "changed": bool(row.changed), "significant": significant}


_VERSION = Field("version", "integer", "A version's number (`id`); the newest if not given.", least=0, most=2**53)
OPERATIONS = (
    Operation(
        method="GET",
        path="/page",
        name="lookup",
        summary="A page by its address.",
        answer=lookup,
        query=(Field("url", "string", "The address.", required=True),),
    ),
    Operation(method="GET", path="/pages/{page}", name="page", summary="A page by its number.", answer=page),
    Operation(
        method="GET",
        path="/pages/{page}/versions",
        name="versions",
        verbs=("log",),
        summary="Its versions.",
        answer=versions,
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/visits",
        name="visits",
        verbs=("log",),
        summary="Its visits.",
        answer=visits,
        query=(LIMIT,),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/text",
        name="text",
        verbs=("show",),
        summary="A version as text.",
        answer=text,
        query=(_VERSION,),
    ),
    Operation(
        method="GET",
        path="/pages/{page}/source",
        name="source",
        verbs=("show",),
        summary="A version as it was stored, as a file.",
        handler=source,
        query=(_VERSION,),
        returns="application/octet-stream",
    ),
    Operation(
        method="GET",
        path="/pages/{page}/diff",
        name="diff",
        verbs=("diff",),
        summary="What changed from one version to another.",
        answer=diff,
        query=(
            Field("old", "integer", "The earlier version; the one before if not given.", least=0, most=2**53),
            Field("new", "integer", "The later version; the newest if not given.", least=0, most=2**53),
        ),
    ),
    Operation(
        method="GET",
        path="/pages/{page}/why",
        name="why",
        verbs=("why",),
        summary="Why it is visited, or not.",
        answer=why,
    ),
    Operation(
        method="GET",
        path="/pages/{page}/predict",
        name="predict",
        verbs=("predict",),
        summary="How likely it has changed by now.",
        answer=predict,
    ),
)
