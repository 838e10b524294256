"""`recrawl log`: list the versions or visits of a page."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, table
from recrawl.cli.terminal.session import reading
from recrawl.repository.lookup import page_of
from recrawl.times import iso, stamp

EXAMPLE = "Example: recrawl log https://example.org/news"


def command(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A page.")],
    visits: Annotated[bool, typer.Option("--visits", help="List every visit instead of the versions.")] = False,
    json: AsJson = False,
) -> None:
    """List the versions of a page, newest first; number 1 is the oldest."""
    with reading(ctx) as repository:
        page = page_of(repository, url)
        past = repository.store.reports.visits_of_page(page["id"])
        versions = repository.store.versions.of_page(page["id"])
    if visits:
        rows = [{"url": page["url"], **row} for row in past]
        columns = {
            "at": "visited",
            "outcome": "outcome",
            "status": ">HTTP",
            "failure": "failure",
            "received": ">bytes",
        }
    else:
        rows = [
            {
                "url": page["url"],
                "number": number,
                "at": version.at,
                "what": "new" if number == 1 else "changed" if version.changed else "markup only",
                "divergence": version.divergence,
                "significant": None if version.significant is None else bool(version.significant),
                "size": version.size,
                "title": version.title,
            }
            for number, version in enumerate(versions, 1)
        ][::-1]
        columns = {
            "number": ">version",
            "at": "downloaded",
            "what": "outcome",
            "divergence": ">changed",
            "size": ">bytes",
            "title": "title",
        }
    if json:
        as_json([{**row, "at": iso(row["at"])} for row in rows])
        return
    table(({**row, "at": stamp(row["at"])} for row in rows), columns)
