"""`recrawl changes`: list what changed."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, table
from recrawl.cli.terminal.session import reading
from recrawl.repository.lookup import origin_of
from recrawl.times import iso, moment, stamp

EXAMPLE = "Example: recrawl changes --since 2d"


def command(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(help="Only changes since then: 2026-03-01, or 2d for the last two days.")] = "",
    site: Annotated[str, typer.Option(help="Only this site.")] = "",
    limit: Annotated[int, typer.Option(min=-1, max=2**62, help="List at most this many changes; -1 for all.")] = -1,
    json: AsJson = False,
) -> None:
    """List what changed, newest first: new, changed and gone pages, and by how much. * marks significant changes."""
    begin = moment(since, time.time()) if since else float("-inf")
    with reading(ctx) as repository:
        where = origin_of(repository, site)
        rows = repository.store.reports.updates(since=begin, site=where, limit=limit)
    if json:
        as_json([{**row, "at": iso(row["at"]), "significant": _flag(row["significant"])} for row in rows])
        return
    table(
        ({**row, "at": stamp(row["at"]), "share": _share(row)} for row in rows),
        {
            "at": "seen",
            "outcome": "outcome",
            "share": ">changed",
            "new_links": ">new links",
            "url": "page",
            "title": "title",
        },
    )


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _share(row: dict[str, object]) -> str:
    share = row["divergence"]
    if not isinstance(share, float):
        return ""
    return f"{share:.1%}{' *' if row['significant'] else ''}"
