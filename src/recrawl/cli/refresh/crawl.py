"""`recrawl crawl`: discover and download new pages."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson
from recrawl.cli.terminal.run_report import end_run, watched
from recrawl.cli.terminal.session import AllowPrivate, Change, Delay, Stop, Wait, repository

EXAMPLE = "Example: recrawl crawl --for 10m"


def command(
    ctx: typer.Context,
    time_limit: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Stop after this long; the next crawl continues.")
    ] = "",
    wait: Wait = False,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    change: Change = "",
    order: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            help="Visit new pages by breadth, depth, path (shortest first) or importance. Default: the setting.",
        ),
    ] = "",
    json: AsJson = False,
) -> None:
    """Discover and download new pages: known pages that were never visited, and the pages they link to."""
    with repository(ctx) as repo, watched(quiet=json) as watcher:
        report = repo.crawl(
            time_limit=time_limit or None,
            wait=wait,
            allow_private=allow_private,
            delay=delay,
            change=change,
            order=order,
            progress=watcher.report,
            stop=Stop(),
        )
    end_run(report, json=json)
