"""`recrawl pages`: list the pages."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, table, when
from recrawl.cli.terminal.session import repository

EXAMPLE = "Example: recrawl pages --state live --limit 20"


def command(
    ctx: typer.Context,
    site: Annotated[str, typer.Option(autocompletion=completions.sites, help="Only pages of this site.")] = "",
    state: Annotated[
        str, typer.Option(autocompletion=completions.states, help="Only pages in this state: found, live, gone ...")
    ] = "",
    limit: Annotated[int, typer.Option(min=-1, max=2**62, help="List at most this many pages; -1 for all.")] = -1,
    json: AsJson = False,
) -> None:
    """List the pages: state, depth, visits, changes, last visit, title."""
    with repository(ctx) as repo:
        pages = repo.pages(site=site, state=state, limit=limit)
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
