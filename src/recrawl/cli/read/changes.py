"""`recrawl changes`: list what changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from recrawl.cli.terminal.output import AsJson, as_json, percent, table, when
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.parameters import ChangeQuery, Limit

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository
    from recrawl.repository.results.values import Change

EXAMPLE = "Example: recrawl changes --since 2d"


def command(
    ctx: typer.Context,
    mark_read: Annotated[bool, typer.Option("--mark-read", help="Mark all changes so far as read.")] = False,
    saved_filter: Annotated[
        str, typer.Option("--filter", metavar="NAME", help="Only changes that this saved filter lets through.")
    ] = "",
    saved: Annotated[bool, typer.Option("--saved", help="List the saved filters.")] = False,
    save: Annotated[str, typer.Option(metavar="NAME", help="Save the options given here as a filter.")] = "",
    forget: Annotated[str, typer.Option(metavar="NAME", help="Delete this saved filter.")] = "",
    limit: Limit = -1,
    json: AsJson = False,
    **only: Unpack[ChangeQuery],
) -> None:
    """List what changed, newest first: new, changed and gone pages, by how much, and how likely it is news.

    A filter is a set of options under a name. The dashboard shows the same ones, and its own can be used here.
    """
    with repository(ctx) as repo:
        if mark_read:
            repo.mark_read()
            return
        if saved or save or forget:
            _keep(repo, save, forget, only, json=json)
            return
        if saved_filter:
            if any(only.values()):
                raise UsageError("give '--filter', or options such as '--since' and '--site', not both")
            changes: Iterable[Change] = repo.saved_changes(saved_filter, limit)
        else:
            changes = repo.changes(limit=limit, **only)
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


def _keep(repo: Repository, save: str, forget: str, only: ChangeQuery, *, json: bool) -> None:
    """Save or delete a filter, or list all of them."""
    if save:
        from recrawl.repository.marks import fields_of  # lazy: the help does without

        repo.save_filter(save, **fields_of(only))
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
