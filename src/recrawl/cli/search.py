"""`recrawl search`: search the newest version of every page."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from recrawl.cli.terminal.output import AsJson, as_json, clean, note, say
from recrawl.cli.terminal.session import load, options_of, reading
from recrawl.crawl.reports.search import search
from recrawl.errors import UsageError
from recrawl.repository.lookup import origin_of
from recrawl.times import iso, stamp

EXAMPLE = "Example: recrawl search 'title:election +recount -poll'"


def command(
    ctx: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help='Words, "phrases", +must, -not, title:word.')],
    site: Annotated[str, typer.Option(help="Only this site.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="List at most this many pages.")] = 10,
    json: AsJson = False,
) -> None:
    """Search the newest version of every page. A change is searchable seconds after the visit."""
    with reading(ctx) as repository:
        values = load(repository.folder)
        if not values["index"]:
            raise UsageError("the search index is off: run 'recrawl config index true', then crawl or cycle")
        where = origin_of(repository, site)
        hits = search(repository, " ".join(query), options_of(values).noise, limit=limit, site=where)
    if json:
        as_json([{**asdict(hit), "at": iso(hit.at)} for hit in hits])
        return
    if not hits:
        note("nothing found")
    for hit in hits:
        if not sys.stdout.isatty():
            say("\t".join((hit.url, stamp(hit.at), hit.title, " ".join(hit.snippet.split()))))
            continue
        snippet = Text(clean(hit.snippet))
        for start, end in hit.marks:
            snippet.stylize("bold yellow", start, end)
        Console().print(
            Text(clean(hit.title or hit.url), style="bold"),
            Text(clean(hit.url), style="blue"),
            snippet,
            sep="\n",
        )
        say()
