"""`recrawl noise`: suggest filters for noise."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say, table
from recrawl.cli.terminal.session import repository

EXAMPLE = "Example: recrawl noise https://example.org/"


def command(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="A page. Default: the pages that change at every visit.")
    ] = None,
    frame: Annotated[
        str, typer.Option("--frame", metavar="SITE", help="List what was learned as the frame of a site instead.")
    ] = "",
    json: AsJson = False,
) -> None:
    """Suggest filters for noise (dates, counters, ads) on pages that change at every visit.

    Add a filter to recrawl.toml, for one site or (without site) for all. `selectors` and `patterns` remove noise before
    pages are compared; `frame` and `content` overrule what was learned: elements that never or always count as content.

    \b
        [[filter]]
        site = "https://example.org"
        selectors = ["#visitors"]
        patterns = ['\\d\\d:\\d\\d Uhr']
        frame = ["#latest-posts"]
        content = ["nav .opening-hours"]
    """
    if frame:
        _list_frame(ctx, frame, json=json)
        return
    with repository(ctx) as repo:
        rows = [proposal.as_dict() for proposal in repo.noise_proposals(url or "")]
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


def _list_frame(ctx: typer.Context, site: str, *, json: bool) -> None:
    with repository(ctx) as repo:
        rows = [line._asdict() for line in repo.frame(site)]
    if json:
        as_json(rows)
    elif rows:
        table(rows, {"pages": ">pages", "of": ">of", "text": "line"})
    else:
        note("nothing learned yet: a frame shows once several pages of the site were downloaded")
