"""`recrawl add`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from recrawl.cli.output import AsJson, as_json, say
from recrawl.cli.session import AllowPrivate, Delay, folder_of, load, seed_url
from recrawl.record.storage import SETTINGS
from recrawl.repository.seeds import with_seeds
from recrawl.settings import Seed, write_seeds

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
    after = with_seeds(before, added)
    write_seeds(folder / SETTINGS, after.seeds)
    if json:
        as_json([asdict(seed) for seed in added])
        return
    for seed in added:
        say(f"added {seed.url}")
