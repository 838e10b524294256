"""API: status, sites, pages, changes, search, cycles and policies."""

from __future__ import annotations

import inspect
import math
from dataclasses import asdict
from typing import Any, Unpack

from recrawl import parameters as given
from recrawl.choose import parameters as policy_parameters
from recrawl.choose import usable_policies
from recrawl.errors import UsageError
from recrawl.operations import operation
from recrawl.repository.push import receiving
from recrawl.repository.reports import overview
from recrawl.repository.reports import sites as reading
from recrawl.repository.reports.changes import ChangeCursor, Filters
from recrawl.repository.reports.changes import changes as changes_of
from recrawl.serve.api.answers import (
    ChangeAnswer,
    CycleAnswer,
    ListAnswer,
    PageAnswer,
    PolicyAnswer,
    PushSourceAnswer,
    SearchAnswer,
    SearchListAnswer,
    SiteDetailsAnswer,
    SiteSummaryAnswer,
    StatusAnswer,
    UsageAnswer,
    listing,
    made,
)
from recrawl.serve.api.routes import bad_cursor, number_after
from recrawl.serve.context import Context
from recrawl.times import moment

_FURTHEST_HIT = 10_000


@operation(http="GET /status", commands=("status",))
def status(context: Context) -> StatusAnswer:
    """Get the state of the repository."""
    with context.reading() as repository:
        totals, problems = overview.totals(repository), overview.problems(repository)
    return made(StatusAnswer, {**totals, "problems": problems, "scheduler": asdict(context.scheduler.status())})


@operation(http="GET /usage", commands=("usage",))
def usage(context: Context) -> UsageAnswer:
    """Get what takes space on the disk, by kind, site and age."""
    with context.reading() as repository:
        used = repository.usage()
    return made(UsageAnswer, asdict(used))


@operation(http="GET /sites", commands=("sites",))
def sites(context: Context, *, limit: given.PageLimit = 50, after: given.After = "") -> ListAnswer[SiteSummaryAnswer]:
    """List the sites with their totals, by number."""
    with context.reading() as repository:
        found = reading.summaries(repository, number_after(after), limit)
    return listing(SiteSummaryAnswer, found, found[-1]["id"] if len(found) == limit else None)


@operation(http="GET /sites/{site}", commands=("sites",), name="site")
def one_site(context: Context, *, site: given.SiteNumber) -> SiteDetailsAnswer:
    """Get a site with its totals and its latest cycles."""
    with context.reading() as repository:
        return made(SiteDetailsAnswer, reading.summary(repository, site))


@operation(http="GET /pushers", commands=("sites",), name="pushers")
def push_sources(context: Context) -> ListAnswer[PushSourceAnswer]:
    """List the sources of pushes with their precision."""
    with context.reading() as repository:
        return listing(PushSourceAnswer, receiving.sources(repository))


@operation(http="GET /pages", commands=("pages",))
def pages(
    context: Context, *, limit: given.PageLimit = 50, after: given.After = "", **only: Unpack[given.PageQuery]
) -> ListAnswer[PageAnswer]:
    """List pages: those of a site by state, otherwise in order of discovery."""
    with context.reading() as repository:
        number, state = reading.number_named(repository, only.get("site", "")), only.get("state", "")
        if number is None:
            return listing(PageAnswer, *reading.all_pages(repository, number_after(after), state, limit))
        first, _, second = after.partition("_")
        begin = (number_after(first), number_after(second)) if after else (-1, -1)
        found, following = reading.site_pages(repository, number, begin, state, limit)
    return listing(PageAnswer, found, f"{following[0]}_{following[1]}" if following else None)


@operation(http="GET /changes", commands=("changes",))
def changes(
    context: Context, *, limit: given.PageLimit = 50, after: given.After = "", **only: Unpack[given.ChangeQuery]
) -> ListAnswer[ChangeAnswer]:
    """List new, changed and removed pages, newest first."""
    now, place = context.clock(), ChangeCursor.read(after)
    if place is not None and not math.isfinite(place.at):
        raise bad_cursor(after)
    with context.reading() as repository:
        times = {name: moment(str(only[name]), now) for name in ("since", "until") if only.get(name)}
        conditions: dict[str, Any] = {name: value for name, value in only.items() if value is not None}
        filters = Filters(**conditions | {"site": reading.number_named(repository, only.get("site", ""))} | times)
        found = changes_of(repository, filters, limit=limit, after=place)
    return listing(ChangeAnswer, found.rows, found.older)


@operation(http="GET /search", commands=("search",))
def search(
    context: Context,
    *,
    q: given.Query,
    limit: given.HitLimit = 10,
    after: given.After = "",
    **only: Unpack[given.SearchQuery],
) -> SearchListAnswer:
    """Search the newest version of every page: the best pages for a query, with snippets."""
    offset = max(0, number_after(after))
    if offset > _FURTHEST_HIT:
        raise UsageError("search results beyond the first 10,000 are not available; narrow the query")
    with context.reading() as repository:
        hits = repository.search(q, limit=limit, offset=offset, **only)
    part = listing(SearchAnswer, (hit.as_dict() for hit in hits), offset + len(hits) if len(hits) == limit else None)
    return SearchListAnswer(items=part.items, next=part.next, unanswered=list(hits.unanswered))


@operation(http="GET /cycles")
def cycles(context: Context, *, limit: given.PageLimit = 50, after: given.After = "") -> ListAnswer[CycleAnswer]:
    """List crawls and cycles with their results, newest first."""
    with context.reading() as repository:
        found = overview.runs(repository, number_after(after, default=2**53), limit)
    return listing(CycleAnswer, found, found[-1]["id"] if len(found) == limit else None)


@operation(http="GET /policies", commands=("policies",))
def policies(_: Context) -> ListAnswer[PolicyAnswer]:
    """List the policies with their parameters."""
    return listing(
        PolicyAnswer,
        (
            {
                "name": name,
                "what": (inspect.getdoc(kind) or "").partition("\n")[0],
                "parameters": {key: str(value) for key, value in policy_parameters(name).items()},
                "needs": sorted(kind.needs),
                "source": kind.source,
            }
            for name, kind in usable_policies().items()
        ),
    )
