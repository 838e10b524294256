"""`recrawl add`: add sites or pages to track."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import AllowPrivate, Change, Delay, repository

EXAMPLE = "Example: recrawl add https://example.org/docs/ --include '/docs/*' --limit 500"


def command(
    ctx: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="URLs to start from.")],
    depth: Annotated[int | None, typer.Option(help="Link depth from the start URL; 0 tracks only that page.")] = None,
    limit: Annotated[int | None, typer.Option(help="Page limit.")] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Track only URLs that match this pattern (/docs/*, or re:...); repeatable.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Skip URLs that match this pattern; repeatable.")] = None,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    change: Change = "",
    json: AsJson = False,
) -> None:
    """Add sites or pages to track. The options are stored with them; add a URL again to change them."""
    with repository(ctx) as repo:
        added = repo.add(
            *urls,
            depth=depth,
            limit=limit,
            include=include or (),
            exclude=exclude or (),
            allow_private=allow_private,
            delay=delay,
            change=change,
        )
    if json:
        as_json([asdict(seed) for seed in added])
        return
    for seed in added:
        say(f"added {seed.url}")
