"""`recrawl pages`: list the pages."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, table
from recrawl.cli.terminal.session import reading
from recrawl.errors import UnknownName
from recrawl.model import State
from recrawl.repository.lookup import origin_of
from recrawl.times import iso, stamp

EXAMPLE = "Example: recrawl pages --state live --limit 20"
_TIMES = ("found", "last_visit", "last_change")


def command(
    ctx: typer.Context,
    site: Annotated[str, typer.Option(help="Only pages of this site.")] = "",
    state: Annotated[str, typer.Option(help="Only pages in this state: found, live, missing, gone ...")] = "",
    limit: Annotated[int, typer.Option(min=-1, max=2**62, help="List at most this many pages; -1 for all.")] = -1,
    json: AsJson = False,
) -> None:
    """List the pages: state, depth, visits, changes, last visit, title."""
    names = [name.name.lower() for name in State]
    if state and state not in names:
        raise UnknownName("state", state, names)
    with reading(ctx) as repository:
        where = origin_of(repository, site)
        rows = repository.store.reports.pages(site=where, state=state, limit=limit)
    if json:
        as_json([{**row, **{name: iso(row[name]) for name in _TIMES}} for row in rows])
        return
    table(
        ({**row, "last_visit": stamp(row["last_visit"])} for row in rows),
        {
            "url": "page",
            "state": "state",
            "depth": ">depth",
            "visits": ">visits",
            "changes": ">changes",
            "last_visit": "last visit",
            "title": "title",
        },
    )
