"""Bring the index up to date: after a crash between store and index, or when it was switched on late or removed."""

from __future__ import annotations

from collections.abc import Callable

from recrawl.engine.options import Options
from recrawl.engine.texts import read_text
from recrawl.model import State
from recrawl.record.index import Document
from recrawl.record.repository import Repository


def mend_index(
    repository: Repository, options: Options, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> int:
    """Index what the index lacks; returns how many pages that were."""
    if not options.index:
        return 0
    pages = repository.unindexed()
    origins = {row.id: row.origin for row in repository.store.sites()}
    for number, page in enumerate(pages):
        url, site, _, _, state = repository.store.page(page)
        version = repository.store.version(state.version)
        if version is None or state.state in (State.GONE, State.MOVED, State.DROPPED):
            repository.index.remove(page)
            continue
        _, headers, body = repository.body(version)
        words = read_text(body, headers, options.noise(origins[site]))
        document = Document(page, url, origins[site], version.title, words, version.at)
        repository.index.put(document)
        progress(number + 1, len(pages))
    if pages:
        repository.commit_index(repository.store.next_id("visits") - 1)
    return len(pages)
