"""`recrawl export`: write a URL list or a Parquet archive."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note
from recrawl.cli.terminal.session import repository

EXAMPLE = "Example: recrawl export history.parquet"


def command(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(help="File to write: .parquet for all versions, otherwise a URL list; - for standard output."),
    ],
    json: AsJson = False,
) -> None:
    """Export all versions of all pages as a Parquet archive (url, time, html), or the URLs as a list."""
    with repository(ctx) as repo:
        if str(file) != "-":
            left_out: list[str] = []
            rows = repo.export(file, left_out=left_out.append)
            if json:
                as_json({"file": str(file), "rows": rows, **({"left_out": left_out} if left_out else {})})
                return
            note(f"wrote {rows:,} rows to {file}")
            for sentence in left_out:
                note(f"left out: {sentence}")
        elif json:
            as_json([{"url": url} for url in repo.urls()])
        else:
            for url in repo.urls():
                sys.stdout.write(f"{url}\n")
