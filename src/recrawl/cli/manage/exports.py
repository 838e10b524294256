"""`recrawl export`: write versions, tables, archive records or URLs to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note
from recrawl.cli.terminal.session import repository
from recrawl.errors import UsageError

EXAMPLE = "Example: recrawl export news.wacz --since 7d"


def command(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            help="File to write: .parquet, .wacz, .warc.gz or .cdxj; otherwise a URL list; - for standard output."
        ),
    ],
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Export only what was recorded since then, as in 7d.")
    ] = None,
    table: Annotated[
        Literal["pages", "visits", "versions", "changes"] | None,
        typer.Option(help="Write this table as Parquet, one column per field."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Export versions, archive records, tables or URLs; the ending of the file name selects the format.

    A .parquet file holds all versions of all pages (url, time, html), or one table with --table. A .wacz file holds
    the archived records with an index and a list of pages, for ReplayWeb.page and pywb; .warc.gz and .cdxj hold the
    records and the index alone. Any other name gets the URLs, one per line.
    """
    with repository(ctx) as repo:
        if str(file) == "-":
            if since is not None or table is not None:
                raise UsageError("--since and --table need the name of a file")
            if json:
                as_json([{"url": url} for url in repo.urls()])
            else:
                for url in repo.urls():
                    sys.stdout.write(f"{url}\n")
            return
        left_out: list[str] = []
        rows = repo.export(file, since=since, table=table, left_out=left_out.append)
    if json:
        as_json({"file": str(file), "rows": rows, **({"left_out": left_out} if left_out else {})})
        return
    note(f"wrote {rows:,} rows to {file}")
    for sentence in left_out:
        note(f"left out: {sentence}")
