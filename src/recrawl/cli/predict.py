"""`recrawl predict`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from recrawl.cli.output import AsJson, as_json, say
from recrawl.cli.session import reading
from recrawl.repository.lookup import page_of
from recrawl.repository.prediction import about_content, about_relative, foretold, history, verdict

EXAMPLE = "Example: recrawl predict https://example.org/news"


def command(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="A page.")],
    json: AsJson = False,
) -> None:
    """How likely a page has changed by now, and why: its own history, its relatives, its content."""
    now = time.time()
    with reading(ctx) as repository:
        page = page_of(repository, url)
        told = foretold(repository, page, now)
    if json:
        as_json(told)
    else:
        _show(told)


def _show(told: dict[str, Any]) -> None:
    say(told["url"])
    for sentence in (*verdict(told), *history(told), *_relatives(told), *about_content(told)):
        say(f"  {sentence}")


def _relatives(told: dict[str, Any]) -> list[str]:
    if not told["relatives"]:
        return ["Relatives: no page of the site changes with it more than chance would make it."]
    return ["Relatives:", *(f"  {relative['url']} {about_relative(relative)}" for relative in told["relatives"])]
