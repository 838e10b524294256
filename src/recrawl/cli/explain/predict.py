"""`recrawl predict`: estimate whether a page has changed by now."""

from __future__ import annotations

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import Url, repository

EXAMPLE = "Example: recrawl predict https://example.org/news"


def command(ctx: typer.Context, url: Url, json: AsJson = False) -> None:
    """Estimate the probability that a page has changed by now, from its own history, related pages and its content."""
    with repository(ctx) as repo:
        prediction = repo.predict(url)
    if json:
        as_json(prediction.as_dict())
        return
    say(prediction.url)
    for sentence in prediction.sentences():
        say(f"  {sentence}")
