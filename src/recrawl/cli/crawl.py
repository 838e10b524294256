"""`recrawl crawl`: discover and download new pages."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json
from recrawl.cli.terminal.run_report import print_summary, watched
from recrawl.cli.terminal.session import AllowPrivate, Delay, Stop, folder_of, load, options_of, reading, writing
from recrawl.crawl import cycles
from recrawl.errors import UsageError
from recrawl.repository.turns import summary_of
from recrawl.times import duration

EXAMPLE = "Example: recrawl crawl --for 10m"


def command(
    ctx: typer.Context,
    time_limit: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Stop after this long; the next crawl continues.")
    ] = "",
    wait: Annotated[bool, typer.Option(help="Wait if another command is writing to the repository.")] = False,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    json: AsJson = False,
) -> None:
    """Discover and download new pages: known pages that were never visited, and the pages they link to."""
    folder = folder_of(ctx)
    values = load(folder)
    with reading(ctx) as repository:
        if not values.seeds and not len(repository.store.pages.never_downloaded()["id"]):
            raise UsageError("nothing to crawl: add a site with 'recrawl add URL'")
    options = options_of(values, allow_private=allow_private, delay=delay)
    stop = Stop()
    seconds = duration(time_limit) if time_limit else float("inf")
    with (
        writing(folder, "crawl", options, values, wait=wait) as repository,
        watched("crawling", None, quiet=json) as progress,
    ):
        controls = cycles.Controls(stop=stop, progress=progress, seconds=seconds)
        summary = cycles.crawl(repository, options, [seed.url for seed in values.seeds], controls)
    if json:
        as_json(summary_of(summary))
    else:
        print_summary(summary)
