"""`recrawl tag`: tag pages and sites."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say, table
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.repository.results.words import count

EXAMPLE = "Example: recrawl tag prices https://example.org/shop example.net"


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[TAG]", help="The tag; without one, list all tags.")] = "",
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL|SITE]...", help="A page, or a site as example.org: all of its pages."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tag from them.")] = False,
    json: AsJson = False,
) -> None:
    """Put a tag on pages or sites, or list the tags. 'recrawl changes --tag' lists the changes of tagged pages."""
    if name and not targets:
        raise UsageError(f"name the pages or sites to tag '{name}': recrawl tag {name} URL")
    with repository(ctx) as repo:
        if name:
            (repo.untag if remove else repo.tag)(name, *(targets or ()))
        tags = [{"tag": tag, "sites": sites, "pages": pages} for tag, sites, pages in repo.tags()]
    if json:
        as_json(tags)
    elif name:
        say(f"{'removed' if remove else 'tagged'} {count(len(targets or ()), 'target')}: {name}")
    else:
        table(tags, {"tag": "tag", "sites": ">sites", "pages": ">pages"})
