"""After the user has changed the scopes: pages come into scope or leave it, before the next crawl or cycle begins.

Pages out of scope are dropped (their versions stay), dropped pages that are in scope again come back, and where a scope
has become wider the stored pages are read again for links that were refused before. Only pages of sites whose scopes
have changed are checked; any page may link there. Pages that the user gave, by a seed or by an import, are exempt from
patterns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

import numpy as np

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.reindex import index_pages
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.reread import VersionToRead, reread
from recrawl.discover.scope import Scopes
from recrawl.model import State
from recrawl.record.rows import Batch
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_META = "scopes"
_SITES_META = "site_scopes"
"""The fingerprint of each site's scopes, with that of all of them."""
_BATCH = 500


def scopes_changed(repository: Storage, scopes: Scopes) -> bool:
    """Whether the scopes have changed since the last crawl or cycle."""
    return bool(repository.store.meta.get(_META, "") != _fingerprint(scopes))


def forget_scopes(store: Store) -> None:
    """Make the next crawl or cycle check all pages again."""
    store.meta.set(_META, "forgotten")


def rescope(repository: Storage, options: CrawlOptions, discovery: Discovery, record: Callable[[Batch], None]) -> None:
    """Apply the scopes to all pages; batches of new pages go to `record`."""
    store, scopes = repository.store, options.scopes
    before, whole = store.meta.get(_META, ""), _fingerprint(scopes)
    sites = {name: _digest(described) for name, described in scopes.describe_sites().items()}
    changed = _changed_sites(store, sites)
    _drop_and_recall(repository, options, changed)
    if before and (changed is None or changed & sites.keys()):  # a removed scope accepts no link
        _reread_links(repository, options, discovery, record)
    store.meta.set(_SITES_META, json.dumps({"scopes": whole, "sites": sites}))
    store.meta.set(_META, whole)


def _fingerprint(scopes: Scopes) -> str:
    return _digest(scopes.describe())


def _digest(described: list[list[object]]) -> str:
    return hashlib.blake2b(json.dumps(described).encode(), digest_size=16).hexdigest()


def _changed_sites(store: Store, sites: dict[str, str]) -> set[str] | None:
    """The sites whose scopes are new, other ones or removed; None if all pages must be checked."""
    saved = json.loads(store.meta.get(_SITES_META, "{}"))
    if not saved or saved["scopes"] != store.meta.get(_META, ""):
        return None
    return {name for name, _ in sites.items() ^ saved["sites"].items()}


def _drop_and_recall(repository: Storage, options: CrawlOptions, changed: set[str] | None) -> None:
    drop: list[int] = []
    recall: list[int] = []
    revive: list[int] = []
    numbers = None
    if changed is not None:
        numbers = [row.id for row in repository.store.sites.all() if options.scopes.names(f"{row.origin}/") & changed]
    for page, url, depth, parent, state, downloaded in repository.store.pages.scope_rows(numbers):
        in_scope = options.scopes.refuses(url, depth) is None
        if state == State.DROPPED and in_scope:
            (recall if downloaded else revive).append(page)
        elif state != State.DROPPED and not in_scope and not (depth == 0 and parent < 0):
            drop.append(page)
    repository.store.pages.set_states(State.DROPPED, drop)
    repository.store.pages.set_states(State.LIVE, recall)
    repository.store.pages.set_states(State.FOUND, revive)
    index_pages(repository, options, drop + recall)


def _reread_links(
    repository: Storage, options: CrawlOptions, discovery: Discovery, record: Callable[[Batch], None]
) -> None:
    batch, depths = Batch(), {}

    def versions() -> Iterator[VersionToRead]:
        for page, url, depth, number in repository.store.pages.stored():
            version = repository.store.versions.get(number)
            if version is not None:
                depths[page] = depth
                yield VersionToRead(version, url, 0)

    for reading in reread(repository, options, versions(), text=False):
        depth = depths.pop(reading.ticket) + 1
        if reading.follow and not reading.failure:
            known, at = discovery.look_up(np.frombuffer(reading.keys, np.int64)), options.clock()
            discovery.links(known, reading, parent=reading.ticket, depth=depth, at=at, batch=batch)
        if len(batch.pages) >= _BATCH:
            record(batch)
            batch = Batch()
    record(batch)
