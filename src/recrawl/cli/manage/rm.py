"""`recrawl rm`: stop tracking a site or page."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, say
from recrawl.cli.terminal.session import repository

EXAMPLE = "Example: recrawl rm https://example.org"


def command(
    ctx: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="URL as it was added.")],
    json: AsJson = False,
) -> None:
    """Stop tracking a site or page. Its versions stay in the archive; it is no longer visited or searchable."""
    with repository(ctx) as repo:
        removal = repo.remove(*urls)
    if json:
        as_json(removal.as_dict())
    else:
        say(f"{count(removal.pages, 'page')} no longer tracked")
