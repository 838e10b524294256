"""`recrawl chunks`: what to put into, update in and delete from a retrieval corpus."""

from __future__ import annotations

import json as json_lines
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError
from recrawl.times import moment

if TYPE_CHECKING:
    from recrawl.repository.export.chunks import ChunkChange

EXAMPLE = "Example: recrawl chunks --state corpus.state"


def command(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(metavar="TIME", help="Only what changed since then, e.g. 2d.")] = "",
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Continue where the last call with this file stopped, and update it."),
    ] = None,
    words: Annotated[int, typer.Option(min=20, max=10_000, help="Words of a chunk, at most.")] = 300,
    overlap: Annotated[
        int, typer.Option(min=0, max=1_000, help="Words of the chunk before that are repeated, at most half a chunk.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Print chunks of pages as JSON lines: "put" for new ones, "update" where all but the text changed, and "delete".

    The id of a chunk follows from its site and its text, so that only what is new is embedded again. What several pages
    of a site say is printed once. Menus, footers and other parts of the site's frame are left out. The state file
    is updated after the last line is written: if the command is interrupted, the next call prints the same lines again.
    With --json, the lines become one JSON list.
    """
    from recrawl.repository.export.chunks import Cursor  # lazy: the help does without

    if since and state is not None:
        raise UsageError("use --since or --state, not both")
    with repository(ctx) as repo:
        if state is None:
            after = Cursor.since(repo, moment(since, time.time())) if since else None
            _write(repo.chunks(after=after, words=words, overlap=overlap), json=json)
            return
        with repo.chunk_export(state, words=words, overlap=overlap) as export:
            _write(export, json=json)
            export.commit()


def _write(changes: Iterable[ChunkChange], *, json: bool) -> None:
    rows = (change.as_dict() for change in changes)
    if json:
        as_json(list(rows))
    else:
        for row in rows:
            sys.stdout.write(json_lines.dumps(row, ensure_ascii=False) + "\n")
    sys.stdout.flush()
