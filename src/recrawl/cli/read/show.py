"""`recrawl show`: print a version of a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say, show_markdown, when, write_picture
from recrawl.cli.terminal.session import repository
from recrawl.parameters import Url

EXAMPLE = "Example: recrawl show https://example.org/news --at 2026-03-01"


def command(
    ctx: typer.Context,
    url: Url,
    at: Annotated[str, typer.Option(help="A version: its number or a time. Default: the newest.")] = "-1",
    source: Annotated[bool, typer.Option("--source", help="Print the stored bytes.")] = False,
    screenshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the screenshot of the version to this file, as PNG.")
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print all text in lines, with menus and footers, without markup.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Print the content of a version of a page: as it reads on a terminal, as Markdown in a pipe.

    Menus, footers and other parts of the site's frame are left out; --text prints them too.
    """
    from recrawl.repository.results.values import iso  # lazy: the help does without

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
                    "markdown": version.markdown,
                    **({"source": version.html} if source else {}),
                }
            )
        elif source:
            sys.stdout.buffer.write(version.body)
        else:
            shown = version.text if text else version.markdown
            say(f"{version.title or version.url}  ({when(version.time)})\n")
            if text or not shown:
                say(shown or "(no content; --text prints all text)")
            else:
                show_markdown(shown)
