"""`recrawl diff`: compare the text of two versions of a page."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from recrawl.cli.terminal.output import AsJson, as_json, clean, say
from recrawl.cli.terminal.session import load, options_of, reading
from recrawl.compare.diff import Hunk, diff, unified
from recrawl.compare.divergence import divergence
from recrawl.crawl.visits.stored_text import read_lines, read_text
from recrawl.discover.urls import origin
from recrawl.repository.lookup import page_of, pick, versions_of
from recrawl.times import iso, stamp

EXAMPLE = "Example: recrawl diff https://example.org/news -2 -1"
_STYLES = {"in": "green", "out": "red", "same": "dim"}
_SIGNS = {"in": "+ ", "out": "- ", "same": "  "}


def command(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A page.")],
    old: Annotated[str, typer.Argument(metavar="[A]", help="A version: its number or a time.")] = "",
    new: Annotated[str, typer.Argument(metavar="[B]", help="The version to compare with. Default: the newest.")] = "-1",
    json: AsJson = False,
) -> None:
    """Compare the text of two versions of a page. Default: the last change.

    Version 1 is the oldest, version -1 the newest.
    """
    now = time.time()
    with reading(ctx) as repository:
        page = page_of(repository, url)
        versions = versions_of(repository, page["id"])
        after = pick(versions, new, now)
        if old:
            before = pick(versions, old, now)
        else:
            earlier = [version for version in versions if version.id < after.id]
            before = earlier[-1] if earlier else after
        noise = options_of(load(repository.folder)).noise(origin(page["url"]))
        texts = [read_text(body, head, noise) for _, head, body in map(repository.body, (before, after))]
        lines = [read_lines(body, head, noise) for _, head, body in map(repository.body, (before, after))]
        hunks = diff(lines[0], lines[1])
    if json:
        as_json(
            {
                "url": page["url"],
                "old": iso(before.at),
                "new": iso(after.at),
                "divergence": divergence(texts[0], texts[1]),
                "diff": unified(hunks),
            }
        )
        return
    say(f"{page['url']}: {stamp(before.at)} to {stamp(after.at)}")
    if not hunks:
        say("only one version" if len(versions) == 1 else "no difference in the text")
    elif sys.stdout.isatty():
        _paint(hunks)
    else:
        say(unified(hunks))


def _paint(hunks: list[Hunk]) -> None:
    console = Console()
    for hunk in hunks:
        console.print(Text(f"@@ -{hunk.old_start} +{hunk.new_start} @@", style="cyan"))
        for row in hunk.rows:
            line = Text(_SIGNS[row.kind] + clean(row.text), style=_STYLES[row.kind])
            for start, end in row.marks:
                line.stylize("reverse", start + 2, end + 2)
            console.print(line)
