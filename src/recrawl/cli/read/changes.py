"""`recrawl changes`: list what changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, percent, table, when
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.repository.repository import Repository
from recrawl.repository.results.values import Change

EXAMPLE = "Example: recrawl changes --since 2d"


def command(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(help="Only changes since then: 2026-03-01, or 2d for the last two days.")] = "",
    site: Annotated[str, typer.Option(autocompletion=completions.sites, help="Only this site.")] = "",
    tag: Annotated[str, typer.Option(help="Only pages with this tag, or of sites with it.")] = "",
    unread: Annotated[bool, typer.Option("--unread", help="Only changes that are not marked as read.")] = False,
    mark_read: Annotated[bool, typer.Option("--mark-read", help="Mark all changes so far as read.")] = False,
    saved_filter: Annotated[
        str, typer.Option("--filter", metavar="NAME", help="Only changes that this saved filter lets through.")
    ] = "",
    saved: Annotated[bool, typer.Option("--saved", help="List the saved filters.")] = False,
    save: Annotated[str, typer.Option(metavar="NAME", help="Save the options given here as a filter.")] = "",
    forget: Annotated[str, typer.Option(metavar="NAME", help="Delete this saved filter.")] = "",
    limit: Annotated[int, typer.Option(min=-1, max=2**62, help="List at most this many changes; -1 for all.")] = -1,
    json: AsJson = False,
) -> None:
    """List what changed, newest first: new, changed and gone pages, by how much, and how likely it is news.

    A filter is a set of options under a name. The dashboard shows the same ones, and its own can be used here.
    """
    given = {"since": since, "site": site, "tag": tag, "unread": unread}
    with repository(ctx) as repo:
        if mark_read:
            repo.mark_read()
            return
        if saved or save or forget:
            _keep(repo, save, forget, given, json=json)
            return
        if saved_filter:
            if any(given.values()):
                raise UsageError("give '--filter', or '--since', '--site', '--tag' and '--unread', not both")
            changes: Iterable[Change] = repo.saved_changes(saved_filter, limit)
        else:
            changes = repo.changes(since=since or None, site=site, tag=tag, unread=unread, limit=limit)
        _print(changes, json=json)


def _print(changes: Iterable[Change], *, json: bool) -> None:
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


def _keep(repo: Repository, save: str, forget: str, given: dict[str, Any], *, json: bool) -> None:
    """Save or delete a filter, or list all of them."""
    if save:
        repo.save_filter(save, **{name: value for name, value in given.items() if value})
    if forget:
        repo.remove_filter(forget)
    filters = repo.saved_filters()
    if json:
        as_json(filters)
    else:
        rows = ({"name": name, "filter": ", ".join(map(" ".join, fields.items()))} for name, fields in filters.items())
        table(rows, {"name": "name", "filter": "filter"})


def _amounts(change: Change) -> dict[str, str]:
    """The share of words that changed, and the probability that a reader calls it news."""
    share = "" if change.divergence is None else percent(change.divergence)
    return {"share": share, "news": "" if change.significance is None else percent(change.significance)}
