"""`recrawl move`: move the facts of a repository to PostgreSQL or back."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, note, say
from recrawl.cli.terminal.progress import detailed
from recrawl.cli.terminal.session import Wait, repository

EXAMPLE = "Example: recrawl move --to 'postgresql://crawler:${CRAWL_PASSWORD}@db.example/crawl?schema=news'"


def command(
    ctx: typer.Context,
    to: Annotated[
        str,
        typer.Option(metavar="URL", help="'postgresql://user:${NAME}@host/database?schema=NAME', or sqlite."),
    ],
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Move sites, pages, visits and versions to another store; archive, index and models stay in the folder.

    The old store stays in use until every row of the copy was compared with it. It is not deleted. If the command is
    interrupted, run it again: it goes on where it stopped. The service of the repository must not run.
    """
    with repository(ctx) as repo, detailed(quiet=json) as bar:
        task = bar.add_task("copying", total=None, detail="")
        moved = repo.move(
            to, wait=wait, progress=lambda table, rows: bar.update(task, detail=f"{table}: {count(rows, 'row')}")
        )
    if json:
        as_json(moved._asdict())
        return
    say(f"moved {count(moved.rows, 'row')} to {moved.to}")
    note(f"the old store is still there: {moved.old}")
