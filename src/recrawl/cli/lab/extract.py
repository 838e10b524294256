"""`recrawl lab extract`: the main content of the pages of a file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, json_line, table

_COLUMNS = {"id": "id", "title": "title", "published": "published", "language": "language", "words": ">words"}


def extract_command(
    pages: Annotated[
        Path, typer.Argument(metavar="PAGES.parquet", help="Parquet file with the columns id, url and html.")
    ],
    json: AsJson = False,
) -> None:
    """Print the main content of pages: text, Markdown, title, author, dates, language and chunks for retrieval.

    Each page is read by itself, as a page of an unknown site. With --json, one line of JSON is printed for each row of
    the file, in their order; a page that cannot be parsed gives its text without markup.
    """
    from recrawl.lab.extraction import extract_pages  # lazy: loads pyarrow and the parser

    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()
    found = extract_pages(pages, tomorrow)
    if json:
        for one in found:
            json_line(one)
    else:
        table([{**one, "words": len(one["text"].split())} for one in found], _COLUMNS)
