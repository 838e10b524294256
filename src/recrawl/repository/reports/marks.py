"""Tags and intervals of a page or site, for people."""

from __future__ import annotations

from recrawl.record.store.marks import WHOLE_SITE
from recrawl.repository.reader import Reader
from recrawl.repository.seed_rules import seed_url
from recrawl.settings import Settings


def tags_of(repo: Reader, site: int, page: int | None) -> list[tuple[str, bool]]:
    """Return the tags of a page, or of a site if `page` is None, and whether each is the site's."""
    marks = repo.storage.store.marks
    own = [] if page is None else [(name, False) for name in marks.tags_of(site, page)]
    return [*own, *((name, True) for name in marks.tags_of(site, WHOLE_SITE))]


def interval_of(values: Settings, url: str, page: int | None) -> str:
    """Return the interval that was set for a page, or for a site if `page` is None; empty if none was."""
    wanted = seed_url(url)
    matching = (seed for seed in values.seeds if seed.url == wanted and (page is None or seed.depth == 0))
    return next((seed.every for seed in matching), "")
