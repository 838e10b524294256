"""What is followed: sites and pages that were added, and those that are no longer wanted."""

from __future__ import annotations

from collections.abc import Iterable

from recrawl.errors import NotKnown, UsageError
from recrawl.repository.opening import options_of, seed_url
from recrawl.settings import Seed, Settings


def with_seeds(before: Settings, added: Iterable[Seed]) -> Settings:
    """Settings that follow these as well; adding one again changes it. Complains now rather than at the next crawl."""
    new = list(added)
    for seed in new:
        for name in ("depth", "limit", "delay"):
            value = getattr(seed, name)
            if value is not None and value < 0:
                raise UsageError(f"--{name} cannot be negative")
        options_of(Settings(seeds=(seed,)), delay=seed.delay)
    names = {seed.url for seed in new}
    after = Settings(before.values, (*(seed for seed in before.seeds if seed.url not in names), *new), before.filters)
    options_of(after)
    return after


def without_seeds(before: Settings, urls: Iterable[str]) -> tuple[Settings, set[str]]:
    """Settings that do not follow these, and which they are."""
    added = {seed.url for seed in before.seeds}
    gone = {_meant(url, added) for url in urls}
    unknown = gone - added
    if unknown:
        raise NotKnown(f"{min(unknown)} was never added; 'recrawl sites' lists what was")
    kept = tuple(seed for seed in before.seeds if seed.url not in gone)
    return Settings(before.values, kept, before.filters), gone


def _meant(url: str, added: set[str]) -> str:
    """The seed that is meant: without a scheme, whichever of https and http was added."""
    clean = seed_url(url)
    plain = clean.replace("https://", "http://", 1)
    return plain if "://" not in url and clean not in added and plain in added else clean
