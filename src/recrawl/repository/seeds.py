"""Seeds: sites and pages that the user added, and what happens to pages when a seed is removed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.rescope import forget_scopes
from recrawl.crawl.visits.redirects import recall_aliases
from recrawl.discover.urls import canonical, key
from recrawl.errors import NotKnown, UsageError
from recrawl.model import State
from recrawl.record.storage import Storage
from recrawl.repository.opening import options_of, seed_url
from recrawl.settings import Seed, Settings


def with_seeds(before: Settings, added: Iterable[Seed]) -> Settings:
    """The settings with these seeds added or replaced; invalid ones raise `UsageError` now, not at the next crawl."""
    new = list(added)
    for seed in new:
        for name in ("depth", "limit", "delay"):
            value = getattr(seed, name)
            if value is not None and value < 0:
                raise UsageError(f"--{name} cannot be negative, but is {value:g}")
        options_of(Settings(seeds=(seed,)), delay=seed.delay)
    names = {seed.url for seed in new}
    after = Settings(before.values, (*(seed for seed in before.seeds if seed.url not in names), *new), before.filters)
    options_of(after)
    return after


def check_seeds(folder: Path, added: Iterable[Seed]) -> None:
    """Let the next crawl or cycle visit pages of these seeds that are gone or have moved. Needs no lock."""
    urls = filter(None, (canonical(seed.url) for seed in added))
    with Storage(folder) as storage:
        numbers = (storage.store.pages.number(key(url)) for url in urls)
        pages = [number for number in numbers if number is not None]
        if pages:
            storage.store.pages.check_now(pages)


def without_seeds(before: Settings, urls: Iterable[str]) -> tuple[Settings, set[str]]:
    """The settings without these seeds, and the URLs of the removed seeds."""
    added = {seed.url for seed in before.seeds}
    removed = {_seed_named(url, added) for url in urls}
    unknown = removed - added
    if unknown:
        raise NotKnown(f"{min(unknown)} was never added; 'recrawl sites' lists what was")
    kept = tuple(seed for seed in before.seeds if seed.url not in removed)
    return Settings(before.values, kept, before.filters), removed


def _seed_named(url: str, added: set[str]) -> str:
    """The seed that a URL names: without a scheme, whichever of https and http was added."""
    clean = seed_url(url)
    plain = clean.replace("https://", "http://", 1)
    return plain if "://" not in url and clean not in added and plain in added else clean


def drop_pages(storage: Storage, options: CrawlOptions, removed: Iterable[Seed]) -> int:
    """Drop the pages that only the removed seeds kept in scope; returns their number. Their versions stay."""
    rows = storage.store.pages.not_dropped()
    recall_aliases(storage.store, options.scopes)
    former = options_of(Settings(seeds=tuple(removed))).scopes
    recall_aliases(storage.store, former)
    dropped = [
        page
        for page, url, depth in rows
        if former.refuses(url, depth) is None and options.scopes.refuses(url, depth) is not None
    ]
    storage.store.pages.set_states(State.DROPPED, dropped)
    forget_scopes(storage.store)
    for page in dropped if options.index else []:
        storage.index.remove(page)
    storage.commit_index(storage.store.next_id("visits") - 1)
    return len(dropped)
