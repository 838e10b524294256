"""`recrawl search`: search the newest version of every page."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, clean, note, say, when
from recrawl.cli.terminal.session import repository
from recrawl.repository.results.values import SearchHit

EXAMPLE = "Example: recrawl search 'title:election +recount -poll'"


def command(
    ctx: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help='Words, "phrases", +must, -not, title:word.')],
    site: Annotated[str, typer.Option(autocompletion=completions.sites, help="Only this site.")] = "",
    language: Annotated[
        str, typer.Option(help="Only pages that state this language, as de (de-AT too) or pt-br.")
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            help="Only pages dated from this time on, as 2026-03-01 or 30d (ago): the date that the page states "
            "(updated, else published), or when its version was recorded if it states none."
        ),
    ] = "",
    before: Annotated[str, typer.Option("--before", "--until", help="Only pages dated before this time.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="List at most this many pages.")] = 10,
    json: AsJson = False,
) -> None:
    """Search the newest version of every page. A change is searchable seconds after the visit."""
    with repository(ctx) as repo:
        found: dict[str, Any] = {"site": site, "language": language, "since": since or None, "until": before or None}
        hits = repo.search(" ".join(query), limit=limit, **found)
    if hits.problem:
        note(hits.problem)
    if json:
        as_json([hit.as_dict() for hit in hits])
        return
    if not hits:
        note("nothing found")
    for hit in hits:
        if not sys.stdout.isatty():
            say("\t".join((hit.url, when(hit.time), hit.title, " ".join(hit.snippet.split()))))
        else:
            _paint(hit)


def _paint(hit: SearchHit) -> None:
    from rich.console import Console  # lazy: rich loads slowly
    from rich.text import Text  # lazy: rich loads slowly

    snippet = Text(clean(hit.snippet))
    for start, end in hit.marks:
        snippet.stylize("bold yellow", start, end)
    title, url = Text(clean(hit.title or hit.url), style="bold"), Text(clean(hit.url), style="blue")
    Console().print(title, url, snippet, sep="\n")
    say()
