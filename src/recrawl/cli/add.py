"""`recrawl add`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from recrawl.cli.output import AsJson, as_json, say
from recrawl.cli.session import AllowPrivate, Delay, folder_of, load, options_of, seed_url
from recrawl.errors import UsageError
from recrawl.record.repository import SETTINGS
from recrawl.settings import Seed, Settings, write_seeds

EXAMPLE = "Example: recrawl add https://example.org/docs/ --include '/docs/*' --limit 500"


def command(
    ctx: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Where to begin.")],
    depth: Annotated[int | None, typer.Option(help="Links away from the start; 0 keeps only that page.")] = None,
    limit: Annotated[int | None, typer.Option(help="Most pages to keep.")] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Keep only addresses like this (/docs/*, or re:...); repeatable.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave out addresses like this; repeatable.")] = None,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    json: AsJson = False,
) -> None:
    """Name sites or pages to keep. What is said here is kept for them; adding one again changes it."""
    for name, value in (("--depth", depth), ("--limit", limit), ("--delay", delay)):
        if value is not None and value < 0:
            raise UsageError(f"{name} cannot be negative")
    folder = folder_of(ctx)
    before = load(folder)
    added = [
        Seed(
            url=seed_url(url),
            depth=depth,
            limit=limit,
            include=tuple(include or ()),
            exclude=tuple(exclude or ()),
            allow_private=allow_private,
            delay=delay,
        )
        for url in urls
    ]
    names = {seed.url for seed in added}
    seeds = (*(seed for seed in before.seeds if seed.url not in names), *added)
    options_of(
        Settings(before.values, seeds, before.filters), delay=delay
    )  # complains now rather than at the next crawl
    write_seeds(folder / SETTINGS, seeds)
    if json:
        as_json([asdict(seed) for seed in added])
        return
    for seed in added:
        say(f"added {seed.url}")
