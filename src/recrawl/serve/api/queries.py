"""API: status, sites, pages, changes, search, cycles and policies."""

from __future__ import annotations

import inspect
import math
from dataclasses import asdict
from typing import Any

from recrawl.choose import parameters, usable_policies
from recrawl.errors import UsageError
from recrawl.model import State
from recrawl.repository.push import receiving
from recrawl.repository.reports import overview
from recrawl.repository.reports import sites as reading
from recrawl.repository.reports.changes import ChangeCursor, Filters, changes
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import AFTER, LIMIT, Arguments, Operation, bad_cursor, rows
from recrawl.serve.context import Context
from recrawl.times import moment

SITE = Field("site", "string", "Only this site; the URL of the site or of any of its pages.", default="")
_STATES = tuple(state.name.lower() for state in State)


def status(context: Context, _: Arguments) -> dict[str, Any]:
    """Return the state of the repository and the scheduler."""
    with context.reading() as repository:
        totals, problems = overview.totals(repository), overview.problems(repository)
    return {
        **totals,
        "problems": problems,
        "scheduler": asdict(context.scheduler.status()),
    }


def sites(context: Context, given: Arguments) -> dict[str, Any]:
    """List the sites with their totals, by number."""
    with context.reading() as repository:
        found = reading.summaries(repository, _number(given["after"]), given["limit"])
    return rows(found, found[-1]["id"] if len(found) == given["limit"] else None)


def site(context: Context, given: Arguments) -> dict[str, Any]:
    """Return a site with its totals and its latest cycles."""
    with context.reading() as repository:
        return reading.summary(repository, given["site"])


def push_sources(context: Context, _: Arguments) -> dict[str, Any]:
    """List the sources of pushes with their precision."""
    with context.reading() as repository:
        return rows(receiving.sources(repository))


def pages(context: Context, given: Arguments) -> dict[str, Any]:
    """List pages: those of a site by state, otherwise in order of discovery."""
    state, limit = given["state"], given["limit"]
    with context.reading() as repository:
        number = reading.number_named(repository, given["site"])
        if number is None:
            return rows(*reading.all_pages(repository, _number(given["after"]), state, limit))
        first, _, second = given["after"].partition("_")
        begin = (_number(first), _number(second)) if given["after"] else (-1, -1)
        found, following = reading.site_pages(repository, number, begin, state, limit)
    return rows(found, f"{following[0]}_{following[1]}" if following else None)


def stream(context: Context, given: Arguments) -> dict[str, Any]:
    """List updates, newest first."""
    now = context.clock()
    with context.reading() as repository:
        filters = Filters(
            site=reading.number_named(repository, given["site"]),
            path=given["path"],
            since=moment(given["since"], now) if given["since"] else None,
            until=moment(given["until"], now) if given["until"] else None,
            divergence=given["divergence"],
            significant=given["significant"],
            outcome=given["outcome"],
            tag=given["tag"],
            unread=given["unread"],
        )
        after = ChangeCursor.read(given["after"])
        if after is not None and not math.isfinite(after.at):
            raise bad_cursor(given["after"])
        found = changes(repository, filters, limit=given["limit"], after=after)
    return rows(found.rows, found.older)


def search(context: Context, given: Arguments) -> dict[str, Any]:
    """Return the best pages for a query, with snippets."""
    offset = max(0, _number(given["after"]))
    if offset > 10_000:
        raise UsageError("search results beyond the first 10,000 are not available; narrow the query")
    limit, since, until = given["limit"], given["since"] or None, given["until"] or None
    with context.reading() as repository:
        only: dict[str, Any] = {"site": given["site"], "language": given["language"], "since": since, "until": until}
        hits = repository.search(given["q"], limit=limit, offset=offset, **only)
    found = rows([hit.as_dict() for hit in hits], offset + len(hits) if len(hits) == limit else None)
    return {**found, "unanswered": hits.unanswered} if hits.unanswered else found


def cycles(context: Context, given: Arguments) -> dict[str, Any]:
    """List crawls and cycles with their results, newest first."""
    before = _number(given["after"]) if given["after"] else 2**53
    with context.reading() as repository:
        found = overview.runs(repository, before, given["limit"])
    return rows(found, found[-1]["id"] if len(found) == given["limit"] else None)


def policies(_: Context, __: Arguments) -> dict[str, Any]:
    """List the policies with their parameters."""
    return rows(
        [
            {
                "name": name,
                "what": (inspect.getdoc(kind) or "").partition("\n")[0],
                "parameters": {key: str(value) for key, value in parameters(name).items()},
                "needs": sorted(kind.needs),
                "source": kind.source,
            }
            for name, kind in usable_policies().items()
        ]
    )


def _number(text: str) -> int:
    """Return a numeric cursor; -1 if empty.

    >>> _number(""), _number("7")
    (-1, 7)
    """
    if not text:
        return -1
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise bad_cursor(text)
    return int(text)


_LIST = (LIMIT, AFTER)
OPERATIONS = (
    Operation(
        method="GET",
        path="/status",
        name="status",
        verbs=("status",),
        summary="Get the state of the repository.",
        answer=status,
    ),
    Operation(
        method="GET",
        path="/sites",
        name="sites",
        verbs=("sites",),
        summary="List the sites.",
        answer=sites,
        query=_LIST,
        returns="rows",
    ),
    Operation(method="GET", path="/sites/{site}", name="site", verbs=("sites",), summary="Get a site.", answer=site),
    Operation(
        method="GET",
        path="/pushers",
        name="pushers",
        summary="List the sources of pushes with their precision.",
        answer=push_sources,
        returns="rows",
        verbs=("sites",),
    ),
    Operation(
        method="GET",
        path="/pages",
        name="pages",
        verbs=("pages",),
        summary="List pages.",
        answer=pages,
        query=(SITE, Field("state", "string", "Only pages in this state.", default="", choices=("", *_STATES)), *_LIST),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/changes",
        name="changes",
        verbs=("changes",),
        summary="List new, changed and removed pages, newest first.",
        answer=stream,
        query=(
            SITE,
            Field("path", "string", "Only URLs that contain this text.", default=""),
            Field("since", "string", "Start time: 2026-03-01, or 2d for the last two days.", default=""),
            Field("until", "string", "End time.", default=""),
            Field(
                "outcome",
                "string",
                "Only updates with this outcome.",
                default="",
                choices=("", "changed", "new", "gone"),
            ),
            Field(
                "divergence",
                "number",
                "Only changes of at least this share of the words.",
                default=0.0,
                least=0,
                most=1,
            ),
            Field("significant", "boolean", "Only significant changes.", default=False),
            Field("tag", "string", "Only pages with this tag, or of sites with it.", default=""),
            Field("unread", "boolean", "Only changes that are not marked as read.", default=False),
            *_LIST,
        ),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/search",
        name="search",
        verbs=("search",),
        summary="Search the newest version of every page.",
        answer=search,
        query=(
            Field("q", "string", 'Words, "phrases", +must, -not, title:word.', required=True),
            SITE,
            Field("language", "string", "Only pages that state this language: de, pt-br.", default=""),
            Field(
                "since",
                "string",
                "Only pages dated from this time on, as 2026-03-01 or 2d: the date that the page states, or when its "
                "version was recorded if it states none.",
                default="",
            ),
            Field("until", "string", "Only pages dated before this time.", default=""),
            Field("limit", "integer", "Maximum number of rows.", default=10, least=1, most=100),
            AFTER,
        ),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/cycles",
        name="cycles",
        summary="List crawls and cycles.",
        answer=cycles,
        query=_LIST,
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/policies",
        name="policies",
        verbs=("policies",),
        summary="List the policies.",
        answer=policies,
        returns="rows",
    ),
)
