"""`recrawl log`: list the versions or visits of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, table, when
from recrawl.cli.terminal.session import repository
from recrawl.parameters import Url

if TYPE_CHECKING:
    from recrawl.repository.results.pages import Version
    from recrawl.repository.results.values import Visit

EXAMPLE = "Example: recrawl log https://example.org/news"
_VISITS = {
    "at": "visited",
    "outcome": "outcome",
    "status": ">HTTP",
    "failure": "failure",
    "received": ">bytes",
    "detail": "detail",
}
_VERSIONS = {
    "number": ">version",
    "at": "downloaded",
    "what": "outcome",
    "divergence": ">changed",
    "size": ">bytes",
    "title": "title",
}


def command(
    ctx: typer.Context,
    url: Url,
    visits: Annotated[bool, typer.Option("--visits", help="List every visit instead of the versions.")] = False,
    json: AsJson = False,
) -> None:
    """List the versions of a page, newest first; number 1 is the oldest."""
    with repository(ctx) as repo:
        page = repo.page(url)
        rows: list[Visit | Version] = list(page.visits) if visits else list(page.versions[::-1])
    if json:
        as_json([row.as_dict() for row in rows])
        return
    table(map(_row, rows), _VISITS if visits else _VERSIONS)


def _row(row: Visit | Version) -> dict[str, Any]:
    made = {**row.as_dict(), "at": when(row.time)}
    if made.get("rendered"):
        made["what"] += ", rendered"
    return made
