"""`recrawl why`: explain why a page was visited or not."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import load, reading
from recrawl.repository.why import find, reasons

EXAMPLE = "Example: recrawl why https://example.org/news"


def command(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A page.")],
    json: AsJson = False,
) -> None:
    """Explain why a page was visited or not, and whether the next cycle would choose it."""
    with reading(ctx) as repository:
        values = load(repository.folder)
        page = find(repository, values, url)
        sentences, plan = reasons(repository, values, page, time.time())
    if json:
        as_json({"url": page["url"], "state": page["state"], "why": sentences, "plan": plan})
        return
    say(page["url"])
    for sentence in sentences:
        say(f"  {sentence}")
