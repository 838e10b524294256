"""`recrawl anchor`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from recrawl.cli.output import AsJson, as_json, count, say, table
from recrawl.cli.session import load, reading
from recrawl.errors import UsageError
from recrawl.repository.anchors import keep_named, surveyed
from recrawl.repository.lookup import origin_of
from recrawl.repository.times import duration, span

EXAMPLE = "Example: recrawl anchor https://example.org --every 6h"


def command(
    ctx: typer.Context,
    site: Annotated[
        str, typer.Argument(metavar="[SITE]", help="A site, or any page of it; all sites in short by default.")
    ] = "",
    every: Annotated[
        str, typer.Option(metavar="TIME", help="How often what is close to the anchor is to be visited.")
    ] = "6h",
    per_minute: Annotated[
        float, typer.Option(metavar="PAGES", help="Most pages a minute over all sites; 0: what the settings say.")
    ] = 0.0,
    name: Annotated[str, typer.Option("--set", metavar="URL", help="Name the anchor by hand.")] = "",
    auto: Annotated[bool, typer.Option("--auto", help="Let the anchor be found again.")] = False,
    json: AsJson = False,
) -> None:
    """The anchor of a site, which is the page that links its newest pages, and how change falls off with the number
    of links from it. The policy anchor-depth visits what is close to the anchor every few hours.
    """
    period = duration(every)
    if period <= 0 or per_minute < 0:
        raise UsageError("--every is a time over zero, --per-minute zero or more pages")
    with reading(ctx) as repository:
        if name and auto:
            raise UsageError("give --set or --auto, not both")
        if name or auto:
            keep_named(repository, site, name)
        values = load(repository.folder)
        where = origin_of(repository, site)
        rows = surveyed(repository, values, time.time(), period, per_minute, where)
    if json:
        as_json(rows[0] if where else rows)
    elif where:
        _show(rows[0], period)
    else:
        table(
            ({**row, **row["anchor"], "n": row["recommended"]["n"], "site": row["site"]} for row in rows),
            {"site": "site", "pages": ">pages", "url": "anchor", "score": ">score", "n": ">n"},
        )


def _show(row: dict[str, Any], period: float) -> None:
    anchor, advice = row["anchor"], row["recommended"]
    say(f"{row['site']}: {count(row['pages'], 'page')}")
    say(f"anchor: {anchor['url']}{' (named by hand)' if anchor['named'] else ''}")
    say(f"  {anchor['why']}")
    say()
    if row["runners_up"]:
        say("others that were considered")
        table(
            row["runners_up"],
            {"score": ">score", "links": ">links", "new": ">new", "changed": ">changed", "url": "page"},
        )
        say()
    say(f"links from the anchor, and what changes; expected after {span(period)}")
    table(
        ({**line, "depth": "out of reach" if line["depth"] is None else line["depth"]} for line in row["depths"]),
        {
            "depth": ">depth",
            "pages": ">pages",
            "changed": ">changed of visits",
            "expected": ">expected",
            "pages_up_to": ">pages up to here",
            "success_up_to": ">success",
            "hours_up_to": ">hours",
        },
    )
    say()
    say(f"recommended: n = {advice['n']}, {count(advice['pages'], 'page')} every {span(period)}; {advice['why']}")
