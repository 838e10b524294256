"""`recrawl show`: print a version of a page."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import load, options_of, reading
from recrawl.crawl.visits.stored_text import read_lines
from recrawl.discover.urls import origin
from recrawl.repository.lookup import page_of, pick, versions_of
from recrawl.times import iso, stamp

EXAMPLE = "Example: recrawl show https://example.org/news --at 2026-03-01"


def command(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A page.")],
    at: Annotated[str, typer.Option(help="A version: its number or a time. Default: the newest.")] = "-1",
    source: Annotated[bool, typer.Option("--source", help="Print the stored bytes.")] = False,
    json: AsJson = False,
) -> None:
    """Print a version of a page as text."""
    with reading(ctx) as repository:
        page = page_of(repository, url)
        version = pick(versions_of(repository, page["id"]), at, time.time())
        _, headers, body = repository.body(version)
        options = options_of(load(repository.folder))
    if source and not json:
        sys.stdout.buffer.write(body)
        return
    lines = read_lines(body, headers, options.noise(origin(page["url"])))
    if json:
        as_json(
            {
                "url": page["url"],
                "at": iso(version.at),
                "title": version.title,
                "mime": version.mime,
                "encoding": version.encoding,
                "headers": [list(pair) for pair in headers],
                "text": "\n".join(lines),
                **({"source": body.decode(version.encoding or "latin-1", "replace")} if source else {}),
            }
        )
        return
    say(f"{version.title or page['url']}  ({stamp(version.at)})\n")
    for line in lines:
        say(line)
