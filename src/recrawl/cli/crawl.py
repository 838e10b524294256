"""`recrawl crawl`."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.output import AsJson, as_json
from recrawl.cli.session import AllowPrivate, Delay, Stop, folder_of, load, options_of, reading, writing
from recrawl.cli.watch_run import tell, watched
from recrawl.crawl import cycles
from recrawl.errors import UsageError
from recrawl.repository.times import duration
from recrawl.repository.turns import summary_of

EXAMPLE = "Example: recrawl crawl --for 10m"


def command(
    ctx: typer.Context,
    time_limit: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Stop after this long; the next crawl goes on.")
    ] = "",
    wait: Annotated[bool, typer.Option(help="Wait while another command works on the repository.")] = False,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    json: AsJson = False,
) -> None:
    """Discover and download what is new: pages that were found but never visited, and what they lead to."""
    folder = folder_of(ctx)
    values = load(folder)
    with reading(ctx) as repository:
        if not values.seeds and not len(repository.store.waiting()["id"]):
            raise UsageError("nothing was added yet: name a site with 'recrawl add URL'")
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
        tell(summary)
