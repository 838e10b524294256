"""`recrawl diff`: compare the text of two versions of a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, clean, count, say, when, write_picture
from recrawl.cli.terminal.session import repository
from recrawl.parameters import Url

if TYPE_CHECKING:
    from recrawl.repository.results.difference import Difference

EXAMPLE = "Example: recrawl diff https://example.org/news -2 -1"
_STYLES = {"in": "green", "out": "red", "same": "dim"}
_SIGNS = {"in": "+ ", "out": "- ", "same": "  "}


def command(
    ctx: typer.Context,
    url: Url,
    old: Annotated[str, typer.Argument(metavar="[A]", help="A version: its number or a time.")] = "",
    new: Annotated[str, typer.Argument(metavar="[B]", help="The version to compare with. Default: the newest.")] = "-1",
    frame: Annotated[
        bool, typer.Option("--frame", help="Show changed lines of the site's frame too (menus, footers, stamps).")
    ] = False,
    visual: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the screenshots side by side to this file, as PNG, changes outlined."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare the text of two versions of a page. Default: the last change.

    Version 1 is the oldest, version -1 the newest. Changed lines that belong to the frame of the site are folded.
    """
    with repository(ctx) as repo:
        page = repo.page(url)
        if visual is not None:
            picture = page.visual_diff(old or None, new)
            write_picture(visual, picture.side_by_side(), json=json, regions=picture.regions)
            return
        found = page.diff(old or None, new)
        single = len(page.versions) == 1
        if json:
            as_json(found.as_dict())
            return
    say(f"{page.url}: {when(found.old.time)} to {when(found.new.time)}")
    if not found.hunks:
        say("only one version" if single else "no difference in the text")
    elif sys.stdout.isatty():
        _paint(found, frame=frame)
    elif frame or found.content_text:
        say(found.text if frame else found.content_text)
    if found.frame_count and not frame:
        say(f"{count(found.frame_count, 'changed line')} of the site's frame not shown; use --frame to see them")


def _paint(found: Difference, *, frame: bool) -> None:
    from rich.console import Console  # lazy: rich loads slowly
    from rich.text import Text  # lazy: rich loads slowly

    console = Console()
    for hunk in found.hunks if frame else found.content_hunks:
        console.print(Text(f"@@ -{hunk.old_start} +{hunk.new_start} @@", style="cyan"))
        for row in hunk.rows:
            style = "dim" if row.frame else _STYLES[row.kind]
            line = Text(_SIGNS[row.kind] + clean(row.text), style=style)
            for start, end in row.marks:
                line.stylize("reverse", start + 2, end + 2)
            console.print(line)
