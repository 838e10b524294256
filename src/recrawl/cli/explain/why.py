"""`recrawl why`: explain why a page was visited or not."""

from __future__ import annotations

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import Url, repository

EXAMPLE = "Example: recrawl why https://example.org/news"


def command(ctx: typer.Context, url: Url, json: AsJson = False) -> None:
    """Explain why a page was visited or not, and whether the next cycle would choose it."""
    with repository(ctx) as repo:
        explanation = repo.why(url)
    if json:
        as_json(explanation.as_dict())
        return
    say(explanation.url)
    for sentence in explanation.sentences:
        say(f"  {sentence}")
