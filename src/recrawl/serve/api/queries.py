"""Questions about the repository: how it stands, sites, pages, changes, search, cycles."""

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
from recrawl.record.questions import ask
from recrawl.record.storage import Storage
from recrawl.repository.lookup import origin_of
from recrawl.repository.opening import options_of
from recrawl.repository.times import moment
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import AFTER, LIMIT, Arguments, Operation, rows
from recrawl.serve.context import Context
from recrawl.serve.queries.changes import Cursor, Filters, changes
from recrawl.serve.queries.overview import troubles

SITE = Field("site", "string", "Only this site: its address, or that of any of its pages.", default="")
_STATES = {state.name.lower(): int(state) for state in State}
_NAMES = {number: name for name, number in _STATES.items()}
_WINDOW = 50_000
"""Pages that one question looks through, however few of them are wanted."""
_PAGE = """SELECT p.id, p.url, p.site, p.state, p.depth, p.visits, p.changes, p.failures, p.found, p.last_visit,
                  p.last_change, p.size, v.title FROM pages p LEFT JOIN versions v ON v.id = p.version"""
_CYCLE = """SELECT c.id, c.kind, c.policy, c.budget, c.started, c.finished, s.visits, s.unchanged, s.changed, s.new,
                   s.gone, s.failed, s.not_modified, s.received, s.seconds, s.expected, s.expected_sd, s.failures,
                   s.pages, s.freshness, s.freshness_sd, s.age, s.ages
            FROM cycles c LEFT JOIN cycle_summaries s ON s.cycle = c.id"""


def status(context: Context, _: Arguments) -> dict[str, Any]:
    """How the repository stands, and what the scheduler does."""
    with context.reading() as repository:
        db = repository.store.db
        sums = ask(
            db,
            """SELECT count(*) AS sites, ifnull(sum(pages), 0) AS pages, ifnull(sum(visits), 0) AS visits,
                      ifnull(sum(changes), 0) AS changes, max(last_visit) AS last_visit,
                      ifnull(sum(failing), 0) AS failing FROM site_summaries""",
        )[0]
        states = {
            name: db.execute(f"SELECT ifnull(sum({name}), 0) FROM site_summaries").fetchone()[0]  # noqa: S608
            for name in _STATES
        }
        problems = troubles(db, context.clock())
        archived = db.execute("SELECT ifnull(sum(length), 0) FROM warcs").fetchone()[0]
        last = [_cycle(row) for row in ask(db, f"{_CYCLE} WHERE s.freshness NOT NULL ORDER BY c.id DESC LIMIT 1")]
    return {
        **sums,
        "states": states,
        "archive_bytes": archived,
        "freshness": last[0]["freshness"] if last else None,
        "freshness_sd": last[0]["freshness_sd"] if last else None,
        "last_cycle": last[0] if last else None,
        "problems": problems,
        "scheduler": asdict(context.scheduler.status()),
    }


def sites(context: Context, given: Arguments) -> dict[str, Any]:
    """Sites with their sums, by number."""
    with context.reading() as repository:
        found = ask(
            repository.store.db,
            """SELECT s.id, s.origin AS url, s.robots_status, s.robots_at, s.sitemap_at, s.held_until, t.*
               FROM sites s LEFT JOIN site_summaries t ON t.site = s.id WHERE s.id > ? ORDER BY s.id LIMIT ?""",
            (_number(given["after"]), given["limit"]),
        )
        believed = trust(repository)
    told = [{**row, "hints": believed.get(row["url"], [])} for row in found]
    return rows(told, found[-1]["id"] if len(found) == given["limit"] else None)


def site(context: Context, given: Arguments) -> dict[str, Any]:
    """One site: its sums, and its last cycles."""
    with context.reading() as repository:
        db = repository.store.db
        found = ask(
            db,
            """SELECT s.id, s.origin AS url, s.robots_status, s.robots_at, s.sitemap_at, s.held_until, s.lm_good,
                      s.lm_bad, s.etag_good, s.etag_bad, t.*
               FROM sites s LEFT JOIN site_summaries t ON t.site = s.id WHERE s.id = ?""",
            (given["site"],),
        )
        if not found:
            raise NotKnown("there is no such site here")
        past = ask(db, "SELECT * FROM site_cycles WHERE site = ? ORDER BY cycle DESC LIMIT 100", (given["site"],))
        believed = trust(repository).get(found[0]["url"], [])
    return {**found[0], "hints": believed, "cycles": past}


def senders(context: Context, _: Arguments) -> dict[str, Any]:
    """Who pushes, and how often it was right."""
    with context.reading() as repository:
        return rows(pushers(repository.store.db))


def pages(context: Context, given: Arguments) -> dict[str, Any]:
    """Pages: of a site by state, else in the order in which they were found."""
    with context.reading() as repository:
        db = repository.store.db
        where = origin_of(repository, given["site"])
        if where:
            number = db.execute("SELECT id FROM sites WHERE origin = ?", (where,)).fetchone()[0]
            return _of_site(repository, number, given)
        after = _number(given["after"])
        only = "AND p.state = ?" if given["state"] else ""
        found = ask(
            db,
            f"{_PAGE} WHERE p.id > ? AND p.id <= ? {only} ORDER BY p.id LIMIT ?",
            (after, after + _WINDOW, *([_STATES[given["state"]]] if only else []), given["limit"]),
        )
        more = after + _WINDOW < repository.store.next_id("pages") - 1
    if len(found) == given["limit"]:
        return rows(_named(found), found[-1]["id"])
    return rows(_named(found), after + _WINDOW if more else None)


def _of_site(repository: Storage, site: int, given: Arguments) -> dict[str, Any]:
    """In the order of the index: by state, then by number; so no more is read than is shown."""
    state, _, after = given["after"].partition("_")
    begin = (_number(state), _number(after)) if given["after"] else (-1, -1)
    only = "AND p.state = ?" if given["state"] else ""
    found = ask(
        repository.store.db,
        f"{_PAGE} WHERE p.site = ? AND (p.state, p.id) > (?, ?) {only} ORDER BY p.state, p.id LIMIT ?",
        (site, *begin, *([_STATES[given["state"]]] if only else []), given["limit"]),
    )
    following = f"{found[-1]['state']}_{found[-1]['id']}" if len(found) == given["limit"] else None
    return rows(_named(found), following)


def stream(context: Context, given: Arguments) -> dict[str, Any]:
    """Updates, newest first."""
    now = context.clock()
    with context.reading() as repository:
        db = repository.store.db
        where = origin_of(repository, given["site"])
        number = db.execute("SELECT id FROM sites WHERE origin = ?", (where,)).fetchone()[0] if where else None
        wanted = Filters(
            site=number,
            path=given["path"],
            since=moment(given["since"], now) if given["since"] else None,
            until=moment(given["until"], now) if given["until"] else None,
            divergence=given["divergence"],
            significant=given["significant"],
            outcome=given["outcome"],
        )
        after = Cursor.read(given["after"])
        if after is not None and not math.isfinite(after.at):
            raise UsageError("this is no place in the list: begin at its start")
        found = changes(db, wanted, limit=given["limit"], after=after)
    return rows(found.rows, found.older)


def search(context: Context, given: Arguments) -> dict[str, Any]:
    """The best pages for a query, each quoted."""
    values = context.settings()
    if not values["index"]:
        raise UsageError("the index is switched off here: set 'index' to true, then crawl or cycle")
    begin = max(0, _number(given["after"]))
    if begin > 10_000:
        raise UsageError("a search goes no deeper than 10,000 pages")
    with context.reading() as repository:
        where = origin_of(repository, given["site"])
        noise = options_of(values).noise
        since, until = (moment(given[name], context.clock()) if given[name] else None for name in ("since", "until"))
        many = given["limit"]
        hits = find(repository, given["q"], noise, limit=many, site=where, offset=begin, since=since, until=until)
    following = begin + len(hits) if len(hits) == given["limit"] else None
    return rows([asdict(hit) for hit in hits], following)


def cycles(context: Context, given: Arguments) -> dict[str, Any]:
    """Crawls and cycles, newest first, with what they came to."""
    before = _number(given["after"]) if given["after"] else 2**53
    with context.reading() as repository:
        sql = f"{_CYCLE} WHERE c.id < ? ORDER BY c.id DESC LIMIT ?"
        found = ask(repository.store.db, sql, (before, given["limit"]))
    return rows([_cycle(row) for row in found], found[-1]["id"] if len(found) == given["limit"] else None)


def policies(_: Context, __: Arguments) -> dict[str, Any]:
    """The policies, with their parameters."""
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
    told = {name: json.loads(row[name]) if row[name] else None for name in ("failures", "ages")}
    return {**row, **told}


def _named(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "state": _NAMES[row["state"]]} for row in found]


def _number(text: str) -> int:
    """A cursor that is a number.

    >>> _number(""), _number("7")
    (-1, 7)
    """
    if not text:
        return -1
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UsageError("this is no place in the list: begin at its start")
    return int(text)


_LIST = (LIMIT, AFTER)
OPERATIONS = (
    Operation(
        method="GET",
        path="/status",
        name="status",
        verbs=("status",),
        summary="How the repository stands.",
        answer=status,
    ),
    Operation(
        method="GET",
        path="/sites",
        name="sites",
        verbs=("sites",),
        summary="Sites.",
        answer=sites,
        query=_LIST,
        returns="rows",
    ),
    Operation(method="GET", path="/sites/{site}", name="site", verbs=("sites",), summary="One site.", answer=site),
    Operation(
        method="GET",
        path="/pushers",
        name="pushers",
        summary="Who pushes, and how often it was right.",
        answer=senders,
        returns="rows",
        verbs=("sites",),
    ),
    Operation(
        method="GET",
        path="/pages",
        name="pages",
        verbs=("pages",),
        summary="Pages.",
        answer=pages,
        query=(SITE, Field("state", "string", "Only in this state.", default="", choices=("", *_STATES)), *_LIST),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/changes",
        name="changes",
        verbs=("changes",),
        summary="Pages that are new, changed or gone; newest first.",
        answer=stream,
        query=(
            SITE,
            Field("path", "string", "Only addresses with this in them.", default=""),
            Field("since", "string", "From then on: 2026-03-01, or 2d for the last two days.", default=""),
            Field("until", "string", "Up to then.", default=""),
            Field("outcome", "string", "Only these.", default="", choices=("", "changed", "new", "gone")),
            Field("divergence", "number", "At least this share of words.", default=0.0, least=0, most=1),
            Field("significant", "boolean", "Only significant ones.", default=False),
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
            Field("since", "string", "Only pages that changed from then on: 2026-03-01, or 2d.", default=""),
            Field("until", "string", "Only pages that had changed by then.", default=""),
            Field("limit", "integer", "Most rows.", default=10, least=1, most=100),
            AFTER,
        ),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/cycles",
        name="cycles",
        summary="Crawls and cycles.",
        answer=cycles,
        query=_LIST,
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/policies",
        name="policies",
        verbs=("policies",),
        summary="Policies.",
        answer=policies,
        returns="rows",
    ),
)
