"""`recrawl noise`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from recrawl.cli.output import AsJson, as_json, note, say, table
from recrawl.cli.session import reading
from recrawl.compare.noise.proposals import propose
from recrawl.repository.lookup import page_of
from recrawl.repository.noise import restless, sources

EXAMPLE = "Example: recrawl noise https://example.org/"


def command(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="A page; the ones that always change by default.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Propose filters for dates, counters and the like on pages that change at every visit (spec C8).

    A filter goes into recrawl.toml, for one site or (without site) for all:

    \b
        [[filter]]
        site = "https://example.org"
        selectors = ["#visitors"]
        patterns = ['\\d\\d:\\d\\d Uhr']
    """
    with reading(ctx) as repository:
        pages = [page_of(repository, url)["id"]] if url else restless(repository)
        rows = [
            {"url": address, **asdict(proposal)}
            for address, html in (sources(repository, page) for page in pages)
            for proposal in propose(html)
        ]
    if json:
        as_json(rows)
        return
    if not rows:
        note("nothing to propose: no page changes at every visit without news")
        return
    table(
        ({**row, "hides": f"{row['hides']} of {row['of']}"} for row in rows),
        {"url": "page", "kind": "kind", "value": "filter", "hides": ">would hide", "example": "such as"},
    )
    say("put what you want into recrawl.toml: see 'recrawl noise --help'")
