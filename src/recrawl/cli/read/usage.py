"""`recrawl usage`: what takes space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say, table
from recrawl.cli.terminal.session import repository
from recrawl.repository.results.words import size
from recrawl.times import stamp

if TYPE_CHECKING:
    from recrawl.repository.reports.usage import UsedSpace

EXAMPLE = "Example: recrawl usage --sites 20"
_SITES = 10
_AGES = {"month": "last 30 days", "year": "the year before", "older": "older"}


def command(
    ctx: typer.Context,
    sites: Annotated[int, typer.Option("--sites", min=0, help="List the largest sites, at most so many.")] = _SITES,
    json: AsJson = False,
) -> None:
    """Show what takes space: by kind, site and age, with the growth of the last 30 days and when the disk is full."""
    with repository(ctx) as repo:
        used = repo.usage()
    if json:
        as_json(used.as_dict())
        return
    grown = "" if used.month is None else f", {size(used.month)} of it from the last 30 days"
    say(f"{size(used.bytes)}{grown}")
    if used.full is not None:
        say(f"{size(used.free)} free on this disk: full on {stamp(used.full.timestamp())[:10]} if it goes on like this")
    else:
        say(f"{size(used.free)} free on this disk")
    if used.remote:
        note("finished archive files are in the object store: on this disk there is a cache of them alone")
    say()
    table(map(_row, used.kinds), {"name": "kind", "records": ">records", "bytes": ">bytes", "month": ">last 30 days"})
    if used.sites and sites:
        say()
        heads = {"name": "site", "records": ">records", "bytes": ">bytes", "month": ">last 30 days"}
        table(map(_row, used.sites[:sites]), heads)
    say()
    table(
        ({"name": text, "bytes": size(used.ages[name])} for name, text in _AGES.items()),
        {"name": "archived", "bytes": ">bytes"},
    )


def _row(part: UsedSpace) -> dict[str, str]:
    return {
        "name": part.name,
        "records": f"{part.records:,}" if part.records else "",
        "bytes": size(part.bytes),
        "month": size(part.month),
    }
