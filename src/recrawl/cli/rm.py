"""`recrawl rm`: stop tracking a site or page."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, say
from recrawl.cli.terminal.session import folder_of, load, options_of, writing
from recrawl.crawl.state.rescope import forget_scopes
from recrawl.crawl.visits.redirects import recall_aliases
from recrawl.model import State
from recrawl.record.storage import SETTINGS
from recrawl.repository.seeds import without_seeds
from recrawl.settings import Settings, write_seeds

EXAMPLE = "Example: recrawl rm https://example.org"


def command(
    ctx: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="URL as it was added.")],
    json: AsJson = False,
) -> None:
    """Stop tracking a site or page. Its versions stay in the archive; it is no longer visited or searchable."""
    folder = folder_of(ctx)
    before = load(folder)
    after, gone = without_seeds(before, urls)
    options = options_of(after)
    with writing(folder, "rm", options, after) as repository:
        write_seeds(folder / SETTINGS, after.seeds)
        rows = repository.store.pages.not_dropped()
        recall_aliases(repository.store, options.scopes)
        left = options_of(Settings(seeds=tuple(seed for seed in before.seeds if seed.url in gone))).scopes
        recall_aliases(repository.store, left)
        dropped = [
            page
            for page, url, depth in rows
            if left.refuses(url, depth) is None and options.scopes.refuses(url, depth) is not None
        ]
        repository.store.pages.set_states(State.DROPPED, dropped)
        forget_scopes(repository)
        for page in dropped if options.index else []:
            repository.index.remove(page)
        repository.commit_index(repository.store.next_id("visits") - 1)
    if json:
        as_json({"removed": sorted(gone), "pages": len(dropped)})
        return
    say(f"{count(len(dropped), 'page')} no longer tracked")
