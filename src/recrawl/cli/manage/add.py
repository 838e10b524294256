"""`recrawl add`: add sites or pages to track."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import AllowPrivate, Change, Delay, KeptRequisites, Render, Screenshots, repository

Every = Annotated[
    str, typer.Option(metavar="DURATION", help="Visit its pages at least this often, whatever the policy chooses.")
]
Clear = Annotated[
    list[str] | None, typer.Option(metavar="RULE", help="Remove this rule (limit, depth, include, ...); repeatable.")
]
EXAMPLE = "Example: recrawl add https://example.org/docs/ --include '/docs/*' --limit 500"


def command(
    ctx: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="URLs to start from.")],
    depth: Annotated[int | None, typer.Option(help="Link depth from the start URL; 0 tracks only that page.")] = None,
    limit: Annotated[int | None, typer.Option(help="Page limit of the site.")] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Track only URLs that match this pattern (/docs/*, or re:...); repeatable.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Skip URLs that match this pattern; repeatable.")] = None,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    change: Change = "",
    every: Every = "",
    clear: Clear = None,
    requisites: KeptRequisites = "",
    render: Render = "",
    screenshots: Screenshots = "",
    json: AsJson = False,
) -> None:
    """Add sites or pages to track, or change their rules.

    The options are stored with the URL; add it again to change those that you name. A page never loosens the rules of
    its site: add the site again to change them.
    """
    with repository(ctx) as repo:
        added = repo.add(
            *urls,
            depth=depth,
            limit=limit,
            include=include or (),
            exclude=exclude or (),
            allow_private=allow_private or None,
            delay=delay,
            change=change,
            every=every,
            clear=clear or (),
            requisites=requisites,
            render=render,
            screenshots=screenshots,
        )
    if json:
        as_json([addition.as_dict() for addition in added])
        return
    for addition in added:
        say(str(addition))
