"""`recrawl diff`: compare the text of two versions of a page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from recrawl.cli.terminal.output import AsJson, as_json, clean, say, when
from recrawl.cli.terminal.session import Url, repository
from recrawl.repository.pages import Difference

EXAMPLE = "Example: recrawl diff https://example.org/news -2 -1"
_STYLES = {"in": "green", "out": "red", "same": "dim"}
_SIGNS = {"in": "+ ", "out": "- ", "same": "  "}


def command(
    ctx: typer.Context,
    url: Url,
    old: Annotated[str, typer.Argument(metavar="[A]", help="A version: its number or a time.")] = "",
    new: Annotated[str, typer.Argument(metavar="[B]", help="The version to compare with. Default: the newest.")] = "-1",
    json: AsJson = False,
) -> None:
    """Compare the text of two versions of a page. Default: the last change.

    Version 1 is the oldest, version -1 the newest.
    """
    with repository(ctx) as repo:
        page = repo.page(url)
        found = page.diff(old or None, new)
        single = len(page.versions) == 1
        if json:
            as_json(found.as_dict())
            return
    say(f"{page.url}: {when(found.old.time)} to {when(found.new.time)}")
    if not found.hunks:
        say("only one version" if single else "no difference in the text")
    elif sys.stdout.isatty():
        _paint(found)
    else:
        say(found.text)


def _paint(found: Difference) -> None:
    console = Console()
    for hunk in found.hunks:
        console.print(Text(f"@@ -{hunk.old_start} +{hunk.new_start} @@", style="cyan"))
        for row in hunk.rows:
            line = Text(_SIGNS[row.kind] + clean(row.text), style=_STYLES[row.kind])
            for start, end in row.marks:
                line.stylize("reverse", start + 2, end + 2)
            console.print(line)
