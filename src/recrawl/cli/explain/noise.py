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
        str | None, typer.Argument(metavar="[URL]", help="A page; with --copies, a site. Default: all.")
    ] = None,
    frame: Annotated[
        str, typer.Option("--frame", metavar="SITE", help="List what was learned as the frame of a site instead.")
    ] = "",
    copies: Annotated[
        bool,
        typer.Option("--copies", help="List pages with several URLs, and what was learned from them instead."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Suggest filters for noise (dates, counters, ads) on pages that change at every visit.

    Each filter was tried on the stored changes of the page and of its site: none that would hide a change of content,
    such as the number of a release, is suggested.

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
    if copies:
        _list_copies(ctx, url or "", json=json)
        return
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
        (
            {
                **row,
                "hides": f"{row['hides']} of {row['of']}",
                "site": f"{row['site_hides']} of {row['site_of']}",
                "news": f"{row['news_hidden']} of {row['news']}",
            }
            for row in rows
        ),
        {"url": "page", "kind": "kind", "value": "filter", "hides": ">would hide", "site": ">on other pages"}
        | {"news": ">of the news", "example": "example"},
    )
    say("add the filters you want to recrawl.toml; see 'recrawl noise --help'")


def _list_copies(ctx: typer.Context, site: str, *, json: bool) -> None:
    with repository(ctx) as repo:
        found = repo.copies(site)
    if json:
        as_json(found.as_dict())
        return
    if not found.groups:
        note("no page is known under several URLs")
    for group in found.groups:
        say("\n    also at ".join((group["url"], *group["also"])))
    if found.claims:
        table(
            found.claims, {"site": "site", "right": ">right canonical URLs", "wrong": ">wrong", "believed": "believed"}
        )
    if found.parameters:
        table(found.parameters, {"place": "URLs", "name": "parameter left out", "copies": ">changed none of"})
        say("keep a parameter with 'recrawl config keep_parameters NAME'")


def _list_frame(ctx: typer.Context, site: str, *, json: bool) -> None:
    with repository(ctx) as repo:
        rows = [line._asdict() for line in repo.frame(site)]
    if json:
        as_json(rows)
    elif rows:
        table(rows, {"pages": ">pages", "of": ">of", "text": "line"})
    else:
        note("nothing learned yet: a frame shows once several pages of the site were downloaded")
