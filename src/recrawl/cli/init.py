"""`recrawl init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.output import AsJson, as_json, say
from recrawl.record import storage
from recrawl.settings import TEMPLATE

EXAMPLE = "Example: recrawl init news"


def command(
    ctx: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="Where; this folder by default.")] = None,
    json: AsJson = False,
) -> None:
    """Make a repository: a folder that holds settings, database, archive and index."""
    where = folder or ctx.obj or Path()
    storage.create(where, TEMPLATE)
    if json:
        as_json({"folder": str(where)})
        return
    say(f"made a repository in {where}")
    say("next: recrawl add https://example.org, then recrawl crawl")
