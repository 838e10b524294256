"""`recrawl noise`: suggest filters for noise."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say, table
from recrawl.cli.terminal.session import reading
from recrawl.compare.noise.proposals import propose
from recrawl.repository.lookup import page_of
from recrawl.repository.noise import restless, sources

EXAMPLE = "Example: recrawl noise https://example.org/"


def command(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="A page. Default: the pages that change at every visit.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Suggest filters for noise (dates, counters, ads) on pages that change at every visit (spec C8).

    Add a filter to recrawl.toml, for one site or (without site) for all:

    \b
        [[filter]]
        site = "https://example.org"
        selectors = ["#visitors"]
        patterns = ['\\d\\d:\\d\\d Uhr']
    """
    with reading(ctx) as repository:
        pages = [page_of(repository, url)["id"]] if url else restless(repository)
        rows = [
            {"url": page_url, **asdict(proposal)}
            for page_url, html in (sources(repository, page) for page in pages)
            for proposal in propose(html)
        ]
    if json:
        as_json(rows)
        return
    if not rows:
        note("no suggestion: no page changes at every visit because of noise alone")
        return
    table(
        ({**row, "hides": f"{row['hides']} of {row['of']}"} for row in rows),
        {"url": "page", "kind": "kind", "value": "filter", "hides": ">would hide", "example": "example"},
    )
    say("add the filters you want to recrawl.toml; see 'recrawl noise --help'")
