"""`recrawl chunks`: what to add to and delete from a retrieval corpus."""

from __future__ import annotations

import json as json_lines
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.repository.export.chunks import Cursor
from recrawl.times import moment

EXAMPLE = "Example: recrawl chunks --state chunks.json"


def command(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(metavar="TIME", help="Only what changed since then, e.g. 2d.")] = "",
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Continue where the last call with this file stopped, and update it."),
    ] = None,
    words: Annotated[int, typer.Option(min=20, max=10_000, help="Words per chunk.")] = 300,
    json: AsJson = False,
) -> None:
    """Print chunks of pages as JSON lines: "put" for new ones, "delete" for those that are no longer there.

    A chunk has an id that follows from its page and text, so that only what changed is embedded again. Navigation,
    footers, asides and forms are left out. The state file is updated after the last line is written: if the command is
    interrupted, the next call prints the same lines again. With --json, the lines become one JSON list.
    """
    if since and state is not None:
        raise UsageError("use --since or --state, not both")
    with repository(ctx) as repo:
        end = Cursor.now(repo)
        after = Cursor.read(state) if state is not None else None
        if since:
            after = Cursor.since(repo, moment(since, time.time()))
        changes = (change.as_dict() for change in repo.chunks(after=after, words=words))
        if json:
            as_json(list(changes))
        else:
            for change in changes:
                sys.stdout.write(json_lines.dumps(change, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        if state is not None:
            end.write(state)
