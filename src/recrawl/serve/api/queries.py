"""API: status, sites, pages, changes, search, cycles and policies."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import asdict
from typing import Any

from recrawl.choose import POLICIES, parameters
from recrawl.crawl.hints.push_sources import pushers
from recrawl.crawl.reports.hint_trust import trust
from recrawl.crawl.reports.search import search as find
from recrawl.errors import NotKnown, UsageError
from recrawl.model import State
from recrawl.record.storage import Storage
from recrawl.repository.lookup import origin_of
from recrawl.repository.opening import options_of
from recrawl.repository.reports.changes import Cursor, Filters, changes
from recrawl.repository.status import brake_problems
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import AFTER, LIMIT, Arguments, Operation, bad_cursor, rows
from recrawl.serve.context import Context
from recrawl.serve.push.websub import push_problems
from recrawl.times import moment

SITE = Field("site", "string", "Only this site; the URL of the site or of any of its pages.", default="")
_STATES = {state.name.lower(): int(state) for state in State}
_NAMES = {number: name for name, number in _STATES.items()}
_WINDOW = 50_000
"""Pages scanned per request, however few of them match."""


def status(context: Context, _: Arguments) -> dict[str, Any]:
    """Return the state of the repository and the scheduler."""
    with context.reading() as repository:
        store = repository.store
        sums, states = store.summaries.totals(), store.summaries.states()
        problems = push_problems(store, context.clock()) + brake_problems(store)
        archived = store.warcs.total_bytes()
        last = _cycle(newest) if (newest := store.summaries.latest_cycle()) else None
    return {
        **sums,
        "states": states,
        "archive_bytes": archived,
        "freshness": last["freshness"] if last else None,
        "freshness_sd": last["freshness_sd"] if last else None,
        "last_cycle": last,
        "problems": problems,
        "scheduler": asdict(context.scheduler.status()),
    }


def sites(context: Context, given: Arguments) -> dict[str, Any]:
    """List the sites with their totals, by number."""
    with context.reading() as repository:
        found = repository.store.summaries.sites(_number(given["after"]), given["limit"])
        hints = trust(repository)
    listed = [{**row, "hints": hints.get(row["url"], [])} for row in found]
    return rows(listed, found[-1]["id"] if len(found) == given["limit"] else None)


def site(context: Context, given: Arguments) -> dict[str, Any]:
    """Return a site with its totals and its latest cycles."""
    with context.reading() as repository:
        found = repository.store.summaries.site(given["site"])
        if found is None:
            raise NotKnown(f"there is no site {given['site']}")
        past = repository.store.summaries.site_cycles(given["site"], 100)
        hints = trust(repository).get(found["url"], [])
    return {**found, "hints": hints, "cycles": past}


def push_sources(context: Context, _: Arguments) -> dict[str, Any]:
    """List the sources of pushes with their precision."""
    with context.reading() as repository:
        return rows(pushers(repository.store))


def pages(context: Context, given: Arguments) -> dict[str, Any]:
    """List pages: those of a site by state, otherwise in order of discovery."""
    with context.reading() as repository:
        number = _site_number(repository, given["site"])
        if number is not None:
            return _pages_of_site(repository, number, given)
        after = _number(given["after"])
        found = repository.store.reports.pages_after(after, _WINDOW, given["state"], given["limit"])
        more = after + _WINDOW < repository.store.next_id("pages") - 1
    if len(found) == given["limit"]:
        return rows(_named(found), found[-1]["id"])
    return rows(_named(found), after + _WINDOW if more else None)


def _site_number(repository: Storage, site: str) -> int | None:
    """Return the number of the site that an option names; None for all sites."""
    origin = origin_of(repository, site)
    return repository.store.sites.number(origin) if origin else None


def _pages_of_site(repository: Storage, site: int, given: Arguments) -> dict[str, Any]:
    """List pages in index order (state, then number), so that only the returned rows are read."""
    state, _, after = given["after"].partition("_")
    begin = (_number(state), _number(after)) if given["after"] else (-1, -1)
    found = repository.store.reports.pages_of_site(site, begin, given["state"], given["limit"])
    following = f"{found[-1]['state']}_{found[-1]['id']}" if len(found) == given["limit"] else None
    return rows(_named(found), following)


def stream(context: Context, given: Arguments) -> dict[str, Any]:
    """List updates, newest first."""
    now = context.clock()
    with context.reading() as repository:
        filters = Filters(
            site=_site_number(repository, given["site"]),
            path=given["path"],
            since=moment(given["since"], now) if given["since"] else None,
            until=moment(given["until"], now) if given["until"] else None,
            divergence=given["divergence"],
            significant=given["significant"],
            outcome=given["outcome"],
        )
        after = Cursor.read(given["after"])
        if after is not None and not math.isfinite(after.at):
            raise bad_cursor(given["after"])
        found = changes(repository.store, filters, limit=given["limit"], after=after)
    return rows(found.rows, found.older)


def search(context: Context, given: Arguments) -> dict[str, Any]:
    """Return the best pages for a query, with snippets."""
    values = context.settings()
    if not values["index"]:
        raise UsageError("the search index is disabled: set 'index' to true, then run a crawl or a cycle")
    offset = max(0, _number(given["after"]))
    if offset > 10_000:
        raise UsageError("search results beyond the first 10,000 are not available; narrow the query")
    with context.reading() as repository:
        origin = origin_of(repository, given["site"])
        noise = options_of(values).noise
        since, until = (moment(given[name], context.clock()) if given[name] else None for name in ("since", "until"))
        limit = given["limit"]
        hits = find(repository, given["q"], noise, limit=limit, site=origin, offset=offset, since=since, until=until)
    following = offset + len(hits) if len(hits) == given["limit"] else None
    return rows([asdict(hit) for hit in hits], following)


def cycles(context: Context, given: Arguments) -> dict[str, Any]:
    """List crawls and cycles with their results, newest first."""
    before = _number(given["after"]) if given["after"] else 2**53
    with context.reading() as repository:
        found = repository.store.summaries.cycles(before, given["limit"])
    return rows([_cycle(row) for row in found], found[-1]["id"] if len(found) == given["limit"] else None)


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
            for name, kind in POLICIES.items()
        ]
    )


def _cycle(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: json.loads(row[name]) if row[name] else None for name in ("failures", "ages")}


def _named(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "state": _NAMES[row["state"]]} for row in found]


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
            Field("since", "string", "Only pages changed since this time: 2026-03-01, or 2d.", default=""),
            Field("until", "string", "Only pages changed up to this time.", default=""),
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
