"""`recrawl search`: search the newest version of every page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import typer

from recrawl.cli.terminal.output import AsJson, as_json, clean, note, say, when
from recrawl.cli.terminal.session import repository
from recrawl.parameters import Hits, Query, SearchQuery

if TYPE_CHECKING:
    from recrawl.repository.results.values import SearchHit

EXAMPLE = "Example: recrawl search 'title:election +recount -poll'"


def command(
    ctx: typer.Context, *query: Query, limit: Hits = 10, json: AsJson = False, **only: Unpack[SearchQuery]
) -> None:
    """Search the newest version of every page. A change is searchable seconds after the visit."""
    with repository(ctx) as repo:
        hits = repo.search(" ".join(query), limit=limit, **only)
    if hits.problem:
        note(hits.problem)
    if json:
        as_json([hit.as_dict() for hit in hits])
        return
    if not hits:
        note("nothing found")
    for hit in hits:
        if not sys.stdout.isatty():
            also = [f"also at {url}" for url in hit.also]
            say("\t".join((hit.url, when(hit.time), hit.title, " ".join(hit.snippet.split()), *also)))
        else:
            _paint(hit)


def _paint(hit: SearchHit) -> None:
    from rich.console import Console  # lazy: rich loads slowly
    from rich.text import Text  # lazy: rich loads slowly

    snippet = Text(clean(hit.snippet))
    for start, end in hit.marks:
        snippet.stylize("bold yellow", start, end)
    title, url = Text(clean(hit.title or hit.url), style="bold"), Text(clean(hit.url), style="blue")
    also = [Text(f"also at {clean(other)}", style="dim") for other in hit.also]
    Console().print(title, url, *also, snippet, sep="\n")
    say()
