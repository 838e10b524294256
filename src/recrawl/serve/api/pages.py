"""API: one page, its versions and visits, differences, visit reasons and change probability.

Each operation is offered twice: for a page named by its URL (`/page/versions?url=`), and by its number in this store
(`/pages/7/versions`), which is no lasting name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from recrawl import parameters as given
from recrawl.operations import Operation, operation
from recrawl.repository.reports import pages as reading
from recrawl.repository.reports.pages import StoredVersion
from recrawl.repository.repository import Repository
from recrawl.repository.results import pictures
from recrawl.serve.api.answers import (
    ListAnswer,
    PageDetailsAnswer,
    PredictionAnswer,
    VersionAnswer,
    VersionDifferenceAnswer,
    VersionTextAnswer,
    VisitAnswer,
    WhyAnswer,
    listing,
    made,
)
from recrawl.serve.context import Context
from recrawl.serve.jobs import subprocess_queries
from recrawl.serve.stored_files import download, picture_response


@operation(http="GET /page")
def lookup(context: Context, *, url: given.Url) -> PageDetailsAnswer:
    """Get a page by URL."""
    with context.reading() as repository:
        return _details(repository, reading.find(repository, url)["id"])


@operation(http="GET /pages/{page}", name="page")
def one_page(context: Context, *, page: given.PageNumber) -> PageDetailsAnswer:
    """Get a page by number."""
    with context.reading() as repository:
        return _details(repository, page)


@operation(http="GET /pages/{page}/versions", commands=("log",))
def versions(context: Context, *, page: given.PageNumber, limit: given.PageLimit = 200) -> ListAnswer[VersionAnswer]:
    """List the newest versions of a page, newest first."""
    with context.reading() as repository:
        known = reading.page(repository, page)
        return listing(VersionAnswer, reading.versions(repository, known["id"], limit))


@operation(http="GET /pages/{page}/visits", commands=("log",))
def visits(context: Context, *, page: given.PageNumber, limit: given.PageLimit = 50) -> ListAnswer[VisitAnswer]:
    """List the newest visits of a page, newest first."""
    with context.reading() as repository:
        known = reading.page(repository, page)
        return listing(VisitAnswer, reading.visits(repository, known["id"], limit))


@operation(http="GET /pages/{page}/text", commands=("show",))
def text(context: Context, *, page: given.PageNumber, version: given.VersionNumber = None) -> VersionTextAnswer:
    """Get the text of a version."""
    with context.reading() as repository:
        known, chosen = _chosen(repository, page, version)
        found = reading.text_of(repository, known["url"], chosen)
    content = {"text": "\n".join(found.lines), "cut": found.cut, "problem": found.problem}
    return made(VersionTextAnswer, {"url": known["url"], **chosen._asdict(), **content})


@operation(http="GET /pages/{page}/source", commands=("show",), returns="application/octet-stream")
async def source(
    context: Context, request: Request, *, page: given.PageNumber, version: given.VersionNumber = None
) -> Response:
    """Download the stored bytes of a version."""
    return await download(context, request, page, version)


@operation(http="GET /pages/{page}/diff", commands=("diff",))
def diff(
    context: Context, *, page: given.PageNumber, old: given.OldVersion = None, new: given.NewVersion = None
) -> VersionDifferenceAnswer:
    """Compare two versions."""
    with context.reading() as repository:
        known, before, after = _pair(repository, page, old, new)
        found = reading.difference(repository, known["url"], before, after)
    return VersionDifferenceAnswer(
        url=known["url"],
        old=made(VersionAnswer, before),
        new=made(VersionAnswer, after),
        divergence=found.share,
        diff=found.unified,
        problem=found.problem,
    )


@operation(http="GET /pages/{page}/screenshot", commands=("show",), returns="image/png")
async def screenshot(
    context: Context, request: Request, *, page: given.PageNumber, version: given.VersionNumber = None
) -> Response:
    """Download the screenshot of a version."""
    del request

    def picture() -> bytes:
        with context.reading() as repository:
            known, chosen = _chosen(repository, page, version)
            return pictures.picture_of(repository, chosen, known["url"])

    return picture_response(await run_in_threadpool(picture))


@operation(http="GET /pages/{page}/visual-diff", commands=("diff",), returns="image/png")
async def visual_diff(
    context: Context,
    request: Request,
    *,
    page: given.PageNumber,
    old: given.OldVersion = None,
    new: given.NewVersion = None,
) -> Response:
    """Compare the screenshots of two versions, side by side, with their differences outlined."""
    del request

    def picture() -> bytes:
        with context.reading() as repository:
            known, *pair = _pair(repository, page, old, new)
            before, after = (pictures.picture_of(repository, it, known["url"]) for it in pair)
        return pictures.compare_pictures(before, after).side_by_side()

    return picture_response(await run_in_threadpool(picture))


@operation(http="GET /pages/{page}/why", commands=("why",))
def why(context: Context, *, page: given.PageNumber) -> WhyAnswer:
    """Explain why a page is visited or not, and whether the next cycle would choose it."""
    with context.reading() as repository:
        known = reading.page(repository, page)
    sentences, plan = subprocess_queries.why(context, known["url"])
    return made(WhyAnswer, {"url": known["url"], "state": known["state"], "why": sentences, "plan": plan})


@operation(http="GET /pages/{page}/predict", commands=("why",))
def predict(context: Context, *, page: given.PageNumber) -> PredictionAnswer:
    """Estimate the probability that a page has changed since its last visit."""
    with context.reading() as repository:
        known = reading.page(repository, page)
    return made(PredictionAnswer, subprocess_queries.predict(context, known["url"]))


def named_by_url(numbered: Operation) -> Operation:
    """The same operation for a page that is named by its URL."""
    function = numbered.function

    def number(context: Context, url: str) -> int:
        with context.reading() as repository:
            return int(reading.find(repository, url)["id"])

    def asked(context: Context, *, url: str, **given_: Any) -> Any:
        return function(context, page=number(context, url), **given_)

    async def asked_stream(context: Context, request: Request, *, url: str, **given_: Any) -> Any:
        return await function(context, request, page=await run_in_threadpool(number, context, url), **given_)

    made: Callable[..., Any] = wraps(function)(asked_stream if inspect.iscoroutinefunction(function) else asked)
    signature = inspect.signature(function)
    named = [it.replace(name="url", annotation=given.Url) if it.name == "page" else it
             for it in signature.parameters.values()]  # fmt: skip
    made.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    path = numbered.http.replace("/pages/{page}", "/page")
    return replace(numbered, name=f"page_{numbered.name.replace('-', '_')}", http=path, function=made)


def _details(repository: Repository, number: int) -> PageDetailsAnswer:
    return made(PageDetailsAnswer, reading.page(repository, number))


def _chosen(repository: Repository, page: int, version: int | None) -> tuple[dict[str, Any], StoredVersion]:
    known = reading.page(repository, page)
    return known, reading.version(repository, known["id"], version)


def _pair(
    repository: Repository, page: int, old: int | None, new: int | None
) -> tuple[dict[str, Any], StoredVersion, StoredVersion]:
    """A page and the two versions that are compared."""
    known = reading.page(repository, page)
    after = reading.version(repository, known["id"], new)
    if old is None:
        return known, reading.version_before(repository, after) or after, after
    return known, reading.version(repository, known["id"], old), after
