"""`recrawl predict`: estimate whether a page has changed by now."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, say
from recrawl.cli.terminal.session import reading
from recrawl.repository.lookup import page_of
from recrawl.repository.prediction import about_content, about_relative, foretold, history, verdict

EXAMPLE = "Example: recrawl predict https://example.org/news"


def command(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A page.")],
    json: AsJson = False,
) -> None:
    """Estimate the probability that a page has changed by now, from its own history, related pages and its content."""
    now = time.time()
    with reading(ctx) as repository:
        page = page_of(repository, url)
        forecast = foretold(repository, page, now)
    if json:
        as_json(forecast)
    else:
        _show(forecast)


def _show(forecast: dict[str, Any]) -> None:
    say(forecast["url"])
    for sentence in (*verdict(forecast), *history(forecast), *_relatives(forecast), *about_content(forecast)):
        say(f"  {sentence}")


def _relatives(forecast: dict[str, Any]) -> list[str]:
    if not forecast["relatives"]:
        return ["Related pages: none changes together with it more often than by chance."]
    return [
        "Related pages:",
        *(f"  {relative['url']} {about_relative(relative)}" for relative in forecast["relatives"]),
    ]
