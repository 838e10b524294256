"""Full-text search with snippets: the index finds the pages, the archive has their text."""

from __future__ import annotations

from collections.abc import Callable

from recrawl.compare.noise.filters import Noise
from recrawl.crawl.visits.stored_text import read_text
from recrawl.discover.urls import origin
from recrawl.errors import DamagedRecord, Unreadable
from recrawl.record.index import Hit
from recrawl.record.storage import Storage


def search(
    repository: Storage,
    query: str,
    noise: Callable[[str], Noise],
    *,
    limit: int = 10,
    site: str = "",
    offset: int = 0,
    since: float | None = None,
    until: float | None = None,
) -> list[Hit]:
    """The best pages for a query, with snippets; `noise` gives the noise filter of an origin."""

    def text(page: int, at: float) -> str:
        return _text(repository, page, at, noise)

    index = repository.index
    return index.search(query, limit=limit, site=site, offset=offset, since=since, until=until, text=text)


def _text(repository: Storage, page: int, at: float, noise: Callable[[str], Noise]) -> str:
    """The text of a page at that time, as indexed; empty, hence without snippet, if its body cannot be read."""
    version = repository.store.versions.at(page, at)
    if version is None or version.warc not in repository.archive.names:
        return ""
    url = repository.store.pages.get(page)[0]
    try:
        _, headers, body = repository.body(version)
        return read_text(body, headers, noise(origin(url)))
    except (DamagedRecord, Unreadable):
        return ""
