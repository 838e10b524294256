"""`recrawl anchor`: the anchor of a site and how change depends on the distance from it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, count, say, table
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.times import duration, span

EXAMPLE = "Example: recrawl anchor https://example.org --every 6h"


def command(
    ctx: typer.Context,
    site: Annotated[
        str,
        typer.Argument(
            metavar="[SITE]",
            autocompletion=completions.sites,
            help="A site, or any page of it. Default: a summary of all sites.",
        ),
    ] = "",
    every: Annotated[
        str, typer.Option(metavar="TIME", help="Interval between visits to the pages near the anchor.")
    ] = "6h",
    per_minute: Annotated[
        float, typer.Option(metavar="PAGES", help="Limit of pages per minute over all sites; 0 uses the settings.")
    ] = 0.0,
    name: Annotated[str, typer.Option("--set", metavar="URL", help="Set the anchor by hand.")] = "",
    auto: Annotated[bool, typer.Option("--auto", help="Find the anchor automatically again.")] = False,
    json: AsJson = False,
) -> None:
    """Show the anchor of a site (the page that links its newest pages) and how the change probability falls with the
    link distance from it. The policy anchor-depth visits the pages near the anchor every few hours.
    """
    if name and auto:
        raise UsageError("give --set or --auto, not both")
    with repository(ctx) as repo:
        if name or auto:
            repo.set_anchor(site, name)
        rows = [found.as_dict() for found in repo.anchors(site, every=every, per_minute=per_minute)]
    if json:
        as_json(rows[0] if site else rows)
    elif site:
        _show(rows[0], duration(every))
    else:
        table(
            ({**row, **row["anchor"], "n": row["recommended"]["n"], "site": row["site"]} for row in rows),
            {"site": "site", "pages": ">pages", "url": "anchor", "score": ">score", "n": ">n"},
        )


def _show(row: dict[str, Any], period: float) -> None:
    anchor, advice = row["anchor"], row["recommended"]
    say(f"{row['site']}: {count(row['pages'], 'page')}")
    say(f"anchor: {anchor['url']}{' (set by hand)' if anchor['named'] else ''}")
    say(f"  {anchor['why']}")
    say()
    if row["runners_up"]:
        say("other candidates")
        table(
            row["runners_up"],
            {"score": ">score", "links": ">links", "new": ">new", "changed": ">changed", "url": "page"},
        )
        say()
    say(f"change by link distance from the anchor; expected changes after {span(period)}")
    table(
        ({**line, "depth": "unreachable" if line["depth"] is None else line["depth"]} for line in row["depths"]),
        {
            "depth": ">depth",
            "pages": ">pages",
            "changed": ">changed of visits",
            "expected": ">expected",
            "pages_up_to": ">pages up to it",
            "success_up_to": ">success",
            "hours_up_to": ">hours",
        },
    )
    say()
    say(f"recommended: n = {advice['n']}, {count(advice['pages'], 'page')} every {span(period)}; {advice['why']}")
