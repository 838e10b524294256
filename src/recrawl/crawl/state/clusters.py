"""Clusters of similar pages (spec S4), live: built when a policy first needs them, then updated.

    a cycle begins     pages downloaded since the last time, new or changed, are assigned to clusters; saved
    it is resumed      the file names the cycle and is used as it is
    pages have doubled clusters are rebuilt from the newest version of every page

The file `models/clusters.npz` can be recomputed. If it is missing, damaged, or from another program version or store,
clusters are rebuilt. A page that was never downloaded has no cluster. A rebuild reads the text of every page, about
1 ms each; an update, that of changed pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recrawl.book import Book, Clusters, LinkGraph
from recrawl.columns import Int32s
from recrawl.compare.terms import hashed, hashed_addresses
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.crawl.state.book_columns import links_of
from recrawl.crawl.state.load_book import mark_before
from recrawl.crawl.visits.stored_text import read_page
from recrawl.errors import Unreadable
from recrawl.learn.structure.clusters import PageClusters, cluster, packed, unpacked
from recrawl.learn.structure.page_features import PageFacts, page_facts
from recrawl.model import Outcome
from recrawl.record.archive import Place
from recrawl.record.rows import CycleRow, StoredPage
from recrawl.record.storage import Storage
from recrawl.record.warc import read_body
from recrawl.version import __version__

_REBUILD_FACTOR = 2
"""Clusters are rebuilt when the number of pages has grown by this factor."""
_HEAD = frozenset({"version", "cycle", "upto", "last", "from"})


@dataclass(frozen=True, slots=True)
class _Saved:
    """Clusters at the start of a cycle."""

    model: PageClusters
    cycle: int
    upto: int
    """The first visit not taken into account."""
    made_from: int
    """Number of pages they were built from."""


def clusters_for(book: Book, repository: Storage, cycle: CycleRow, *, begin: bool) -> Clusters:
    """The clusters at the cycle's start; `begin` saves them."""
    kept = _read_saved(repository, cycle, len(book))
    if kept is None or kept.cycle != cycle.id:
        kept = _updated(kept, book, repository, cycle)
        if begin:
            _save(repository, kept)
    of: Int32s = np.full(len(book), -1, np.int32)  # pages found since have none
    of[: len(kept.model.page)] = kept.model.page
    return Clusters(of, kept.model.clusters.nearest)


def _updated(kept: _Saved | None, book: Book, repository: Storage, cycle: CycleRow) -> _Saved:
    """Clusters for the current pages."""
    store = repository.store
    stored = store.versions.newest(len(book))
    if kept is None or len(stored) >= _REBUILD_FACTOR * max(1, kept.made_from):
        pages = np.array([row.page for row in stored], np.int64)
        built = cluster(_facts(repository, book, stored), np.random.default_rng(cycle.seed))
        page: Int32s = np.full(len(book), -1, np.int32)
        page[pages] = built.page
        model = PageClusters(built.features, built.bisection, page)
        return _Saved(model, cycle.id, cycle.first_visit, len(stored))
    since = store.visits.between(kept.upto, cycle.first_visit)
    other = set(since["page"][np.isin(since["outcome"], (Outcome.NEW, Outcome.CHANGED))].tolist())
    changed = [row for row in stored if row.page in other]
    model = kept.model
    if changed:
        model = model.updated(np.array([row.page for row in changed]), _facts(repository, book, changed))
    return _Saved(model, cycle.id, cycle.first_visit, kept.made_from)


def _read_saved(repository: Storage, cycle: CycleRow, pages: int) -> _Saved | None:
    """The saved clusters; None if the file cannot be used."""
    file = read_arrays(file_of(repository))
    if file is None or not file.keys() >= _HEAD or str(file["version"]) != __version__:
        return None
    upto = int(file["upto"])
    if upto > cycle.first_visit or not np.array_equal(file["last"], mark_before(repository.store, upto)):
        return None
    model = unpacked(file)
    return _Saved(model, int(file["cycle"]), upto, int(file["from"])) if len(model.page) <= pages else None


def _save(repository: Storage, kept: _Saved) -> None:
    head = {
        "version": np.array(__version__),
        "cycle": np.array(kept.cycle),
        "upto": np.array(kept.upto),
        "last": mark_before(repository.store, kept.upto),
        "from": np.array(kept.made_from),
    }
    write_arrays(file_of(repository), {**head, **packed(kept.model)})


def file_of(repository: Storage) -> Path:
    """The file of the clusters, shared by all policies."""
    return repository.folder / "models" / "clusters.npz"


# -- features of pages --------------------------------------------------------------------------------------------


def _facts(repository: Storage, book: Book, rows: list[StoredPage]) -> PageFacts:
    """The facts of pages, from their newest versions."""
    links: LinkGraph = links_of(repository.store, len(book)) if book.links is None else book.links
    pages = np.array([row.page for row in rows], np.int64)
    images: list[int] = []

    def texts() -> Iterator[str]:
        for row in rows:
            text, pictures = _read(repository, Place(row.warc, row.start, row.length))
            images.append(pictures)
            yield text

    urls = [row.url for row in rows]
    words = hashed(texts())
    return page_facts(
        urls,
        words,
        hashed_addresses(urls),
        images=np.array(images, np.int64),
        in_links=np.bincount(links.target, minlength=len(book))[pages],
        out_links=np.diff(links.start)[pages],
        size=np.array([row.size for row in rows], np.int64),
    )


def _read(repository: Storage, place: Place) -> tuple[str, int]:
    """Text and number of images; empty if the body cannot be read."""
    try:
        _, headers, body = read_body(repository.archive.read(place))
        return read_page(body, headers)
    except (OSError, ValueError, KeyError, Unreadable):
        return "", 0
