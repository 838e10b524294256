"""Groups of copies in the store: made anew between runs, and what they mean for the next cycle.

While a cycle runs they change for visited pages alone, so that an interrupted one finds the same pages again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import starmap
from typing import NamedTuple

import numpy as np

from recrawl.book import Book
from recrawl.columns import DAY, Flags, Ints
from recrawl.crawl.options import CrawlOptions
from recrawl.discover.urls import key
from recrawl.learn.copies.absent import AbsentAddresses, suspects
from recrawl.learn.copies.groups import ClaimRecord, CopyColumns, due_copies, group_copies
from recrawl.learn.copies.parameters import IdleParameter, learn_parameters
from recrawl.model import Outcome
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

PACE = 30 * DAY
"""Between two visits to a copy whose page has not changed."""
_META, _PARAMETERS, _ABSENT = "copies", "parameters", "absent"
_AT_ONCE = 2_000
"""Pages of a repository of an earlier version that are read for copies after a run."""
_UPDATES = (int(Outcome.NEW), int(Outcome.CHANGED))


class SiteClaims(NamedTuple):
    """How often the pages of a site were right and wrong about their canonical address."""

    origin: str
    right: int
    wrong: int


def worth_a_visit(book: Book, store: Store) -> Flags:
    """False for the copies that a cycle leaves out: nothing has happened to their page since their last visit."""
    copies, leaders = store.pages.representatives()
    if not len(copies):
        return np.ones(len(book), bool)
    keys, pages = store.pages.keys()
    key_of, same_as = np.zeros(len(book), np.int64), np.zeros(len(book), np.int64)
    known = pages < len(book)
    key_of[pages[known]] = keys[known]
    same_as[copies[copies < len(book)]] = leaders[copies < len(book)]
    last_change = np.where(book.changes > 1, book.last_change, -np.inf)  # the first one is that they were found
    return due_copies(same_as, key_of, book.last_visit, last_change, book.now, PACE)


def group(repository: Storage, options: CrawlOptions, run: CycleRow) -> None:
    """Group the copies anew after a run, if it has found anything."""
    store = repository.store
    visits = store.visits.of_cycle(run)
    updated = np.isin(visits["outcome"], _UPDATES)
    read = _read_older(repository, options)
    if not read and not updated.any() and not (visits["outcome"] == Outcome.GONE).any():
        return
    with store.scan():
        columns = _columns(store)
        found = group_copies(columns, store.pages.urls_of)
    differs = np.flatnonzero(found.same_as != columns.same_as)
    store.pages.set_copies(zip(differs.tolist(), found.same_as[differs].tolist(), strict=True))
    _tell_once(store, run, visits["page"][updated], visits["outcome"][updated], found.same_as, columns.key)
    _save_claims(store, found.claims)
    _learn_parameters(store)
    _suspect_absent(store, columns, visits["page"][updated], options.clock())


def known_parameters(store: Store, kept: Collection[str] = ()) -> list[IdleParameter]:
    """The parameters that change no page, but for those that the user keeps."""
    rows = starmap(IdleParameter, json.loads(store.meta.get(_PARAMETERS, "[]")))
    return [it for it in rows if it.name not in kept]


def _learn_parameters(store: Store) -> None:
    learned: list[IdleParameter] = []
    if store.pages.has_copies():

        def group_of(urls: Sequence[str]) -> list[int]:
            keys = [key(url) for url in urls]
            groups = store.pages.groups_of(keys)
            return [groups.get(it, 0) for it in keys]

        learned = learn_parameters(store.pages.with_query(), group_of)
    text = json.dumps(learned)
    if text != store.meta.get(_PARAMETERS, "[]"):
        store.meta.set(_PARAMETERS, text)


def absent_addresses(store: Store) -> AbsentAddresses:
    """What sites answer for addresses that cannot exist, and what they are to be asked."""
    return AbsentAddresses(store.meta.get(_ABSENT, "{}"))


def keep_absent_addresses(store: Store, absent: AbsentAddresses) -> None:
    """Store it, so that it outlives the run."""
    text = absent.stored()
    if text != store.meta.get(_ABSENT, "{}"):
        store.meta.set(_ABSENT, text)


def _suspect_absent(store: Store, pages: CopyColumns, updated: Ints, at: float) -> None:
    """Have the next run ask sites whose pages show the same text whether they show it for any address."""
    found = suspects(pages.site, pages.stored, pages.digest, updated, store.pages.urls_of)
    if found:
        absent = absent_addresses(store)
        for site, templates in found.items():
            absent.want(site, templates, at)
        keep_absent_addresses(store, absent)


def claim_records(store: Store) -> list[SiteClaims]:
    """The sites whose claims were compared."""
    origins = {row.id: row.origin for row in store.sites.all()}
    rows = json.loads(store.meta.get(_META, "[]"))
    return [SiteClaims(origins[site], right, wrong) for site, right, wrong in rows if site in origins]


def _save_claims(store: Store, claims: ClaimRecord) -> None:
    sites = np.flatnonzero(claims.right + claims.wrong)
    text = json.dumps([[site, int(claims.right[site]), int(claims.wrong[site])] for site in sites.tolist()])
    if text != store.meta.get(_META, "[]"):
        store.meta.set(_META, text)


def _columns(store: Store) -> CopyColumns:
    rows = store.pages.copy_columns()
    digest = np.ascontiguousarray(rows.pop("digest")).view(np.uint64).reshape(-1, 2)
    sketch = np.ascontiguousarray(rows.pop("sketch")).view(np.uint8).reshape(-1, 16)
    return CopyColumns(digest=digest, sketch=sketch, **rows)


def _tell_once(store: Store, run: CycleRow, pages: Ints, outcomes: Ints, same_as: Ints, keys: Ints) -> None:
    """Tell what a run has found of a group of its representative, and of a copy only if that alone has changed."""
    leader_updated = np.isin(same_as[pages], keys[pages])
    copies = (same_as[pages] != 0) & ((outcomes == Outcome.NEW) | leader_updated)
    leaders = np.isin(keys[pages], same_as[pages[copies]])
    store.visits.tell_once(run.first_visit, pages[copies].tolist(), pages[leaders].tolist())


def _read_older(repository: Storage, options: CrawlOptions) -> bool:
    """Read pages that an earlier version has stored, some after each run; whether there were any."""
    store = repository.store
    waiting = dict(store.pages.unsketched(_AT_ONCE))
    if not waiting:
        return False
    from recrawl.crawl.visits.reread import VersionToRead, reread  # lazy: what only reads does without
    from recrawl.crawl.visits.servers import noise_table  # lazy: as above

    origins = {row.id: row.origin for row in store.sites.all()}
    noises = noise_table(options)

    def versions() -> Iterator[VersionToRead]:
        for page, number in waiting.items():
            version, row = store.versions.get(number), store.pages.get(page)
            if version is not None:
                yield VersionToRead(version, row.url, noises.index(options.noise(origins[row.site])))

    found = {page: (b"", 0, page) for page in waiting}
    for reading in reread(repository, options, versions(), text=False):
        found[reading.ticket] = (reading.sketch, key(reading.claim) if reading.claim else 0, reading.ticket)
    store.pages.set_sketches(found.values())
    return True
