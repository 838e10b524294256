"""Tags and intervals of a page or site, for people."""

from __future__ import annotations

from recrawl.discover.scope import site
from recrawl.errors import UsageError
from recrawl.record.store.marks import WHOLE_SITE
from recrawl.repository.reader import Reader
from recrawl.repository.seed_rules import seed_url
from recrawl.settings import Seed, Settings


def tags_of(repo: Reader, site_number: int, page: int | None) -> list[tuple[str, bool]]:
    """Return the tags of a page, or of a site if `page` is None, and whether each is the site's."""
    marks = repo.storage.store.marks
    own = [] if page is None else [(name, False) for name in marks.tags_of(site_number, page)]
    return [*own, *((name, True) for name in marks.tags_of(site_number, WHOLE_SITE))]


def seeds_with_interval(values: Settings, url: str, *, is_page: bool) -> list[Seed]:
    """Return the seeds whose rule `every` is the interval of a page, or of a site.

    For a page it is the seed of that page alone. For a site these are its seeds that cover more than a page, or, if
    there are none, all of them. The start page of a site has no interval of its own: `UsageError`.
    """
    wanted = seed_url(url)
    if is_page:
        own = [seed for seed in values.seeds if seed_url(seed.url) == wanted]
        if any(seed.depth != 0 for seed in own):
            raise UsageError(f"{url} is where its site was added: set the interval of the site")
        return own
    seeds = [seed for seed in values.seeds if site(seed_url(seed.url)) == site(wanted)]
    if not seeds:
        raise UsageError(f"{url} was never added: add the site before you set its interval")
    return [seed for seed in seeds if seed.depth != 0] or seeds


def interval_of(values: Settings, url: str, *, is_page: bool) -> str | None:
    """Return the interval of a page or site; empty if it has none, or several; None if it cannot have one."""
    try:
        found = {seed.every for seed in seeds_with_interval(values, url, is_page=is_page)}
    except UsageError:
        return None
    return found.pop() if len(found) == 1 else ""
