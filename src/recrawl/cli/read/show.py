"""`recrawl show`: print a version of a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say, when, write_picture
from recrawl.cli.terminal.session import Url, repository
from recrawl.repository.results.values import iso

EXAMPLE = "Example: recrawl show https://example.org/news --at 2026-03-01"


def command(
    ctx: typer.Context,
    url: Url,
    at: Annotated[str, typer.Option(help="A version: its number or a time. Default: the newest.")] = "-1",
    source: Annotated[bool, typer.Option("--source", help="Print the stored bytes.")] = False,
    screenshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the screenshot of the version to this file, as PNG.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Print a version of a page as text."""
    with repository(ctx) as repo:
        version = repo.page(url).version(at)
        if screenshot is not None:
            write_picture(screenshot, version.screenshot, json=json)
        elif json:
            as_json(
                {
                    "url": version.url,
                    "at": iso(version.time),
                    "title": version.title,
                    "mime": version.mime,
                    "encoding": version.encoding,
                    "language": version.language,
                    "description": version.description,
                    "image": version.image,
                    "published": iso(version.published),
                    "updated": iso(version.updated),
                    "headers": [list(pair) for pair in version.headers],
                    "text": version.text,
                    **({"source": version.html} if source else {}),
                }
            )
        elif source:
            sys.stdout.buffer.write(version.body)
        else:
            lines = version.lines
            say(f"{version.title or version.url}  ({when(version.time)})\n")
            for line in lines:
                say(line)
