"""Bring the full-text index up to date: after a crash between store and index, or if it was enabled late or removed.

A page that cannot be read, or that the index refuses, is left out of the index and listed (`record.unindexable`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.reader_pool import BATCH
from recrawl.crawl.visits.reread import VersionToRead, reread
from recrawl.crawl.visits.servers import noise_table
from recrawl.crawl.visits.shared_text import refused_texts
from recrawl.errors import DamagedIndex
from recrawl.model import State
from recrawl.record.index import Document, refused_documents
from recrawl.record.storage import Storage

_UNSEARCHED = (State.GONE, State.MOVED, State.DROPPED)
_BLOCK = 200
"""Documents that are tried together before they are put into an index that has failed."""

_COMMIT = 5_000
"""Documents that are committed together: so many are read again after an interruption."""

Progress = Callable[[int, int], None]


def reindex(repository: Storage, options: CrawlOptions, progress: Progress = lambda _done, _all: None) -> int:
    """Index the missing pages; returns their number."""
    pages = repository.unindexed() if options.index else []
    with suppress(DamagedIndex):
        done = repository.partly_indexed() if pages else {}
        index_pages(repository, options, pages, progress, done=done)
    if pages and repository.unindexed():  # the index has failed: it may be a document at which it fails again
        repository.drop_index()
        index_pages(repository, options, repository.unindexed(), progress, tried_before=True)
    return len(pages)


def rebuild_index(repository: Storage, options: CrawlOptions, progress: Progress) -> None:
    """Make the index anew from the archive, so that its files have nothing of what was deleted."""
    if not options.index:
        repository.drop_index()
        return
    try:
        repository.index.clear()
        index_pages(repository, options, repository.store.visits.pages_updated_since(-1), progress)
        repository.commit_index(repository.store.next_id("visits") - 1)
    except DamagedIndex:
        repository.drop_index()
        reindex(repository, options, progress)


def index_pages(
    repository: Storage,
    options: CrawlOptions,
    pages: Sequence[int],
    progress: Progress = lambda _done, _all: None,
    *,
    tried_before: bool = False,
    done: Mapping[int, float] = MappingProxyType({}),
) -> None:
    """Bring the index up to date for these pages.

    `tried_before`: try documents in an index of their own before. `done`: the times of versions that the index has.
    """
    if not options.index or not pages:
        return
    block: list[Document] = []
    for number, document in enumerate(_documents(repository, options, pages, done), 1):
        if tried_before:
            block.append(document)
        else:
            repository.index_document(document)
        if len(block) >= _BLOCK:
            _index_block(repository, block)
            block = []
        if number % _COMMIT == 0:
            repository.index.commit()
        progress(number, len(pages))
    _index_block(repository, block)
    repository.commit_index(repository.store.next_id("visits") - 1)


def _index_block(repository: Storage, block: list[Document]) -> None:
    refused = refused_documents(block)
    for document in block:
        repository.index_document(document, refused.get(document.page, ""))


def _documents(
    repository: Storage, options: CrawlOptions, pages: Sequence[int], done: Mapping[int, float]
) -> Iterator[Document]:
    """The documents of these pages; pages that have none are removed from the index."""
    refused = refused_texts(repository.store)
    origins = {row.id: row.origin for row in repository.store.sites.all()}
    noises = noise_table(options)
    drafts: dict[int, Document] = {}

    def versions() -> Iterator[VersionToRead]:
        for page in pages:
            url, site, _, _, state = repository.store.pages.get(page)
            version = repository.store.versions.get(state.version)
            if version is not None and version.digest == refused.get(site):
                version = repository.store.versions.other_than(page, version.digest)
            if version is None or not version.searchable or state.state in _UNSEARCHED:
                repository.index.remove(page)
                repository.unindexable.forget(page)
                continue
            if done.get(page) == version.at:
                continue
            repository.index.remove(page)
            date = version.published if version.updated is None else version.updated
            own = (page, url, origins[site], version.title, "", version.at)
            drafts[page] = Document(*own, new=True, language=version.language, date=date)
            yield VersionToRead(version, url, noises.index(options.noise(origins[site])))

    few = replace(options, readers=min(options.readers, 1 + len(pages) // BATCH))
    for reading in reread(repository, few, versions(), text=True):
        draft = drafts.pop(reading.ticket)
        if reading.failure:
            repository.unindexable.note(reading.ticket, reading.detail)
        else:
            yield replace(draft, text=reading.text)
