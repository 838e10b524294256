"""Bring the full-text index up to date: after a crash between store and index, or if it was enabled late or removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.stored_text import read_text
from recrawl.model import State
from recrawl.record.index import Document
from recrawl.record.storage import Storage

_UNSEARCHED = (State.GONE, State.MOVED, State.DROPPED)


def reindex(
    repository: Storage, options: CrawlOptions, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> int:
    """Index the missing pages; returns their number."""
    pages = repository.unindexed() if options.index else []
    index_pages(repository, options, pages, progress)
    return len(pages)


def index_pages(
    repository: Storage,
    options: CrawlOptions,
    pages: Sequence[int],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> None:
    """Bring the index up to date for these pages."""
    if not options.index or not pages:
        return
    origins = {row.id: row.origin for row in repository.store.sites.all()}
    for number, page in enumerate(pages, 1):
        url, site, _, _, state = repository.store.pages.get(page)
        version = repository.store.versions.get(state.version)
        if version is None or not version.searchable or state.state in _UNSEARCHED:
            repository.index.remove(page)
        else:
            _, headers, body = repository.body(version)
            words = read_text(body, headers, options.noise(origins[site]))
            repository.index.put(Document(page, url, origins[site], version.title, words, version.at))
        progress(number, len(pages))
    repository.commit_index(repository.store.next_id("visits") - 1)
