"""What a policy asks of the book beyond its columns: directories, links, clusters, hints. Made only when asked for.

Addresses never change, so directories can be made again at any time. Links do: the store has those of each page's
newest version. A cycle that is under way has overwritten some of what it began with, so the links and hints that it
began with are put aside in files until it is finished; whoever resumes it finds them there. Clusters are kept in a file
of their own (see `clusters`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recrawl.book import Book, LinkGraph
from recrawl.choose import Policy
from recrawl.crawl.hints.hint_codec import aside, hints_for
from recrawl.crawl.reports.anchors import links_of
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.errors import UsageError
from recrawl.learn.shocks.url_templates import url_templates
from recrawl.learn.structure.directories import places
from recrawl.learn.structure.neighbours import fitted
from recrawl.learn.value.importance import arrivals
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

_LIVE = frozenset({"folders", "links", "clusters", "forms", "hints", "arrivals"})
"""What a repository can give."""


def check_needs(policy: Policy) -> None:
    """Refuse a policy that needs what a repository cannot give; to be asked before a cycle is begun."""
    lacking = sorted(policy.needs - _LIVE)
    if lacking:
        raise UsageError(f"{policy.name} needs {' and '.join(lacking)}, which a repository does not have")


def equip(book: Book, repository: Storage, cycle: CycleRow, needs: frozenset[str], *, begin: bool) -> None:
    """Give the book what is needed, as it was when the cycle began; `begin` where the cycle is really to be run."""
    if "folders" in needs:
        add_folders(book, repository.store)
    if "forms" in needs:
        book.form = url_templates(repository.store.pages.urls())[: len(book)]
    if "links" in needs:
        book.links = _links(book, repository, cycle, begin=begin)
    if "arrivals" in needs:
        add_arrivals(book, repository.store, cycle)
    if "clusters" in needs:
        from recrawl.crawl.state import clusters  # lazy: slow to load, and few policies need it

        book.clusters = clusters.clusters_for(book, repository, cycle, begin=begin)

    if "hints" in needs:
        book.hints = hints_for(book, repository, cycle, begin=begin)


def put_away(repository: Storage) -> None:
    """The cycle is finished: what it began with is of no more use."""
    aside(repository).unlink(missing_ok=True)
    _aside(repository).unlink(missing_ok=True)


def add_folders(book: Book, store: Store) -> None:
    """The tree of directories, and each page's place in it.

    The store's numbers say which pages share a directory, so one address of each directory is enough. They are taken
    in the order of pages: pages found since do not change the numbers of others.
    """
    _, first, dense = np.unique(book.folder, return_index=True, return_inverse=True)
    order = np.argsort(first)
    _, _, folder, book.folders = places([*store.pages.urls_of(first[order].tolist()).values()])
    by_value = np.empty(len(order), np.int64)
    by_value[order] = folder
    book.folder = by_value[dense.reshape(-1)]


def add_arrivals(book: Book, store: Store, cycle: CycleRow) -> None:
    """What changes before the cycle have brought in new links. A page's first version is no change."""
    rows = store.versions.new_links(cycle.started, len(book))
    later = np.flatnonzero(np.diff(rows["page"], prepend=-1) == 0)
    page = rows["page"][later]
    links, changes = np.bincount(page, rows["links"][later], len(book)), np.bincount(page, minlength=len(book))
    book.arrivals = arrivals(links.astype(np.float64), changes.astype(np.float64), book.site)


def _links(book: Book, repository: Storage, cycle: CycleRow, *, begin: bool) -> LinkGraph:
    path = _aside(repository)
    kept = read_arrays(path)
    if kept is not None and int(kept["cycle"]) == cycle.id:
        return fitted(LinkGraph(kept["start"], kept["target"]), len(book))
    links = links_of(repository.store, len(book))
    if begin:
        write_arrays(path, {"cycle": np.array(cycle.id), "start": links.start, "target": links.target})
    return links


def _aside(repository: Storage) -> Path:
    return repository.folder / "models" / "links-of-cycle.npz"
