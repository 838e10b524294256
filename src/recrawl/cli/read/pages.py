"""`recrawl pages`: list the pages."""

from __future__ import annotations

from typing import Unpack

import typer

from recrawl.cli.terminal.output import AsJson, as_json, table, when
from recrawl.cli.terminal.session import repository
from recrawl.parameters import Limit, PageQuery

EXAMPLE = "Example: recrawl pages --state live --limit 20"


def command(ctx: typer.Context, limit: Limit = -1, json: AsJson = False, **only: Unpack[PageQuery]) -> None:
    """List the pages: state, depth, visits, changes, last visit, title."""
    with repository(ctx) as repo:
        pages = repo.pages(limit=limit, **only)
        if json:
            as_json([page.as_dict() for page in pages])
            return
        table(
            ({**page.as_dict(), "last_visit": when(page.last_visit)} for page in pages),
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
