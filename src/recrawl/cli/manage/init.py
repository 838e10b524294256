"""`recrawl init`: create a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.repository.repository import Repository

EXAMPLE = "Example: recrawl init news"


def command(
    ctx: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="Folder of the repository. Default: the current one.")] = None,
    json: AsJson = False,
) -> None:
    """Create a repository: a folder with settings, database, archive and search index."""
    where = folder or ctx.obj or Path()
    Repository.create(where).close()
    if json:
        as_json({"folder": str(where)})
        return
    say(f"created a repository in {where}")
    say("next: recrawl add https://example.org, then recrawl crawl")
