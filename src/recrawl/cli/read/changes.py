"""`recrawl changes`: list what changed."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, table, when
from recrawl.cli.terminal.session import repository
from recrawl.repository.results.values import Change

EXAMPLE = "Example: recrawl changes --since 2d"


def command(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(help="Only changes since then: 2026-03-01, or 2d for the last two days.")] = "",
    site: Annotated[str, typer.Option(autocompletion=completions.sites, help="Only this site.")] = "",
    tag: Annotated[str, typer.Option(help="Only pages with this tag, or of sites with it.")] = "",
    unread: Annotated[bool, typer.Option("--unread", help="Only changes that are not marked as read.")] = False,
    mark_read: Annotated[bool, typer.Option("--mark-read", help="Mark all changes so far as read.")] = False,
    limit: Annotated[int, typer.Option(min=-1, max=2**62, help="List at most this many changes; -1 for all.")] = -1,
    json: AsJson = False,
) -> None:
    """List what changed, newest first: new, changed and gone pages, by how much, and how likely it is news."""
    with repository(ctx) as repo:
        if mark_read:
            repo.mark_read()
            return
        changes = repo.changes(since=since or None, site=site, tag=tag, unread=unread, limit=limit)
        if json:
            as_json([change.as_dict() for change in changes])
            return
        table(
            ({**change.as_dict(), "at": when(change.time), **_amounts(change)} for change in changes),
            {
                "at": "seen",
                "outcome": "outcome",
                "share": ">changed",
                "news": ">news",
                "new_links": ">new links",
                "url": "page",
                "title": "title",
            },
        )


def _amounts(change: Change) -> dict[str, str]:
    """The share of words that changed, and the probability that a reader calls it news."""
    share = "" if change.divergence is None else f"{change.divergence:.1%}"
    return {"share": share, "news": "" if change.significance is None else f"{change.significance:.0%}"}
