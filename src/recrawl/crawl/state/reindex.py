"""Bring the full-text index up to date: after a crash between store and index, or if it was enabled late or removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recrawl.compare.noise.filters import Noise
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.shared_text import refused_texts
from recrawl.errors import DamagedRecord
from recrawl.model import State
from recrawl.record.index import Document
from recrawl.record.rows import VersionRow
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
    refused = refused_texts(repository.store)
    origins = {row.id: row.origin for row in repository.store.sites.all()}
    for number, page in enumerate(pages, 1):
        url, site, _, _, state = repository.store.pages.get(page)
        version = repository.store.versions.get(state.version)
        if version is not None and version.digest == refused.get(site):
            version = repository.store.versions.other_than(page, version.digest)
        words = None
        if version is not None and version.searchable and state.state not in _UNSEARCHED:
            words = _words(repository, version, options.noise(origins[site]))
        if version is None or words is None:
            repository.index.remove(page)
        else:
            date = version.published if version.updated is None else version.updated
            repository.index.put(
                Document(
                    page, url, origins[site], version.title, words, version.at, language=version.language, date=date
                )
            )
        progress(number, len(pages))
    repository.commit_index(repository.store.next_id("visits") - 1)


def _words(repository: Storage, version: VersionRow, noise: Noise) -> str | None:
    """The text of a version; None if its record is damaged."""
    from recrawl.crawl.visits.stored_text import read_text  # lazy: loads what parses pages

    try:
        _, headers, body = repository.body(version)
    except DamagedRecord:
        return None
    return read_text(body, headers, noise)
