"""What a policy can need beyond the columns of the book: directories, links, clusters, hints. Loaded only if needed.

URLs never change, so directories can be recomputed at any time, and URL templates are kept in a file to which new pages
are added. Links do change: the store has those of each page's newest version. A running cycle overwrites some of what
it began with, so its initial links, hints and priors are kept in files until it is finished, for a resumed cycle.
Clusters have a file of their own (see `clusters`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book, LinkGraph
from recrawl.choose import Policy
from recrawl.choose.protocol import NAMED
from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints, unique
from recrawl.crawl.hints import hints_file, hints_for
from recrawl.crawl.options import Weights
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.discover.urls import key
from recrawl.discover.weight_files import read_weights, split_base
from recrawl.errors import UsageError
from recrawl.learn.shocks.url_templates import index_pages, url_templates
from recrawl.learn.structure.directories import places
from recrawl.learn.structure.neighbours import fitted
from recrawl.learn.value import arrivals, costs, kind_of, match_weights, normalise, priority_weights
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store
from recrawl.record.store.tables import PageTable
from recrawl.version import __version__

_URLS_AT_ONCE = 1 << 16
_LIVE = frozenset({"folders", "links", "clusters", "forms", "hints", "arrivals", "words", "prior"})
"""What a repository provides."""


def check_needs(policy: Policy) -> None:
    """Raise if the policy needs something that a repository does not provide; call before a cycle begins."""
    lacking = sorted(policy.needs - _LIVE)
    if lacking:
        raise UsageError(f"{policy.name} needs {' and '.join(lacking)}, which a repository does not have")


def equip(book: Book, repository: Storage, cycle: CycleRow, needs: frozenset[str], *, begin: bool) -> None:
    """Add what is needed to the book, as of the cycle's start; `begin` saves it for a resumed cycle."""
    if "folders" in needs:
        add_folders(book, repository.store)
    if "forms" in needs:
        form, index = _url_forms(repository, len(book), begin=begin)
        book.form, book.index = form[: len(book)], index[: len(book)]
    if "links" in needs:
        book.links = _links(book, repository, cycle, begin=begin)
    if "arrivals" in needs:
        add_arrivals(book, repository.store, cycle)
    if "clusters" in needs:
        from recrawl.crawl.state import clusters  # lazy: slow to load, and few policies need it

        book.clusters = clusters.clusters_for(book, repository, cycle, begin=begin)

    if "prior" in needs:
        book.prior = _priors(book, repository, cycle, begin=begin)
    if "hints" in needs:
        book.hints = hints_for(book, repository, cycle, begin=begin)


def delete_columns(repository: Storage) -> None:
    """Delete the files of a finished cycle."""
    hints_file(repository).unlink(missing_ok=True)
    _links_file(repository).unlink(missing_ok=True)
    _priors_file(repository).unlink(missing_ok=True)


def add_folders(book: Book, store: Store) -> None:
    """Add the tree of directories, and each page's directory in it.

    The store's numbers say which pages share a directory, so one URL per directory is enough. They are taken in the
    order of pages, so that pages found later do not change the numbers of others.
    """
    _, first, dense = np.unique(book.folder, return_index=True, return_inverse=True)
    order = np.argsort(first)
    _, _, folder, book.folders = places([*store.pages.urls_of(first[order].tolist()).values()])
    by_value = np.empty(len(order), np.int64)
    by_value[order] = folder
    book.folder = by_value[dense.reshape(-1)]


def add_arrivals(book: Book, store: Store, cycle: CycleRow) -> None:
    """Add the number of new links per change, from the visits before the cycle."""
    rows = store.versions.new_links(cycle.started, len(book))
    page = rows["page"]
    links, changes = np.bincount(page, rows["links"], len(book)), np.bincount(page, minlength=len(book))
    book.arrivals = arrivals(links.astype(np.float64), changes.astype(np.float64), book.site)


def _links(book: Book, repository: Storage, cycle: CycleRow, *, begin: bool) -> LinkGraph:
    path = _links_file(repository)
    kept = read_arrays(path)
    if kept is not None and int(kept["cycle"]) == cycle.id:
        return fitted(LinkGraph(kept["start"], kept["target"]), len(book))
    links = links_of(repository.store, len(book))
    if begin:
        write_arrays(path, {"cycle": np.array(cycle.id), "start": links.start, "target": links.target})
    return links


def _priors(book: Book, repository: Storage, cycle: CycleRow, *, begin: bool) -> Float32s:
    """Return the change priors as of the cycle's start: pages without one get theirs when they are next downloaded."""
    path = _priors_file(repository)
    kept = read_arrays(path)
    saved = kept is not None and int(kept["cycle"]) == cycle.id
    now: Float32s = kept["prior"] if kept is not None and saved else repository.store.pages.priors()
    if begin and not saved:
        write_arrays(path, {"cycle": np.array(cycle.id), "prior": now})
    prior = np.full(len(book), np.nan, np.float32)  # pages found since then are not yet known
    prior[: len(now)] = now[: len(book)]
    return prior


def _url_forms(repository: Storage, pages: int, *, begin: bool) -> tuple[Ints, Flags]:
    """Return the number of each page's URL template, and which pages are indexes; at least the first `pages`."""
    path, store = repository.folder / "models" / "url-templates.npz", repository.store.pages
    kept = read_arrays(path) or {}
    form, index = kept.get("form", np.zeros(0, np.int64)), kept.get("index", np.zeros(0, bool))
    if not np.array_equal(kept.get("mark", ""), _mark_of(store, len(form))):
        form, index = form[:0], index[:0]
    if len(form) < pages:
        urls, forms, indexes = store.urls(first=len(form)), [form], [index]
        while some := list(islice(urls, _URLS_AT_ONCE)):
            forms.append(url_templates(some))
            indexes.append(index_pages(some))
        form, index = np.concatenate(forms), np.concatenate(indexes)
        if begin:
            write_arrays(path, {"mark": _mark_of(store, len(form)), "form": form, "index": index})
    return form, index


def _mark_of(pages: PageTable, count: int) -> NDArray[np.str_]:
    """A mark of the first `count` pages of a store: the version of the program, and the last URL."""
    return np.array([__version__, *pages.urls_of([count - 1]).values()])


def _priors_file(repository: Storage) -> Path:
    return repository.folder / "models" / "priors-of-cycle.npz"


def _links_file(repository: Storage) -> Path:
    return repository.folder / "models" / "links-of-cycle.npz"


# --------------------------------------------------------------------------------------------------------------------
# The links between the pages of a repository, as a graph of page numbers, and the anchors that the user named.


def links_of(store: Store, pages: int) -> LinkGraph:
    """All links; a link to a moved page leads to its new page."""
    lengths = np.zeros(pages, np.int64)
    parts: list[Int32s] = [np.zeros(0, np.int32)]
    for page, packed in store.links.below(pages):
        parts.append(np.frombuffer(packed, "<i4"))
        lengths[page] = len(parts[-1])
    moved = np.arange(pages, dtype=np.int32)
    for page, leads_to in store.pages.moves(pages):
        moved[page] = leads_to
    target = np.concatenate(parts).astype(np.int32)
    # Without links to pages found during this read.
    there = target < pages
    row = np.repeat(np.arange(pages), lengths)[there]
    return LinkGraph(np.concatenate(([0], np.cumsum(np.bincount(row, minlength=pages)))), moved[target[there]])


def named_pages(store: Store, urls: Iterable[str]) -> Ints:
    """The pages that the user named as anchors, in order; unknown URLs are left out."""
    found = [page for url in urls if (page := store.pages.number(key(url))) is not None]
    return unique(np.array(found, np.int64))


def named_anchors(store: Store, urls: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The named anchors for the memory of the policy `anchor-depth` (see `policy_memory.ready_book`)."""
    return {NAMED: named_pages(store, urls)}


# --------------------------------------------------------------------------------------------------------------------
# Importance of pages and cost of visits, set in the book before a policy sees it.
#
# Both can change during a cycle, as files are edited and pages change in size; so a cycle's initial values are kept in
# a file for a resumed cycle. PageRanks are kept with them, as a start for those of the next cycle.


_RECENT_VISITS = 200_000
"""Newest visits from which the share of 304 answers is estimated."""


def check_weights(repository: Storage, weights: Weights) -> None:
    """Raise if the weight file is missing; call before a cycle begins."""
    kind, path = kind_of(weights.importance)
    path, _ = split_base(path)
    if path and not _file(repository, path).is_file():
        raise UsageError(
            f"the file of page weights {path} does not exist; correct the setting 'importance' ({kind}:FILE)"
        )


def weigh(book: Book, repository: Storage, cycle: CycleRow, weights: Weights, *, begin: bool) -> str:
    """Set the book's weights and costs, as of the cycle's start; returns a message about ignored weights."""
    if weights.even:
        return ""
    aside = repository.folder / "models" / "weights-of-cycle.npz"
    kept = read_arrays(aside) or {}
    if "cycle" in kept and int(kept["cycle"]) == cycle.id:
        book.weight, book.cost = _fitted(kept["weight"], len(book)), _fitted(kept["cost"], len(book))
        return ""
    weight, ranks, ignored = _importance(book, repository, weights, kept.get("ranks"))
    cost = np.ones(len(book))
    if weights.cost == "bytes":
        cost = costs(book.size, _not_modified(repository.store, cycle)[book.site])
    if begin:
        write_arrays(aside, {"cycle": np.array(cycle.id), "weight": weight, "cost": cost, "ranks": ranks})
    book.weight, book.cost = weight, cost
    return ignored


def _importance(book: Book, repository: Storage, weights: Weights, ranks: Floats | None) -> tuple[Floats, Floats, str]:
    """Weights, ranks to start from next time, and a message about ignored weights."""
    kind, path = kind_of(weights.importance)
    none = np.zeros(0)
    if kind == "even":
        return np.ones(len(book)), none, ""
    if kind == "pagerank":
        from recrawl.learn.structure import pagerank as learn  # lazy: slow to load

        found = learn.pagerank(links_of(repository.store, len(book)), start=ranks)
        return normalise(found * len(found))[0], found, ""
    if kind == "sitemap":
        priority = np.full(len(book), np.nan)
        for number, value in repository.store.hints.values("priority", range(len(book))).items():
            priority[number] = value
        return normalise(priority_weights(priority, book.site))[0], none, ""
    path, base = split_base(path)
    clicks = kind == "clicks"
    keys_in_file, weight, lost = read_weights(_file(repository, path), weights.rules, clicks=clicks, base=base)
    keys, page = repository.store.pages.keys()
    pages = np.zeros(len(book), np.int64)
    inside = page < len(book)
    pages[page[inside]] = keys[inside]
    raw, unknown = match_weights(pages, keys_in_file, weight, add=kind == "clicks", missing=1.0)
    normal, ignored = normalise(raw)
    problems = str(replace(ignored, unreadable=ignored.unreadable + lost, unknown=unknown))
    return normal, none, f"of the weights in {path}, {problems}" if problems else ""


def _not_modified(store: Store, cycle: CycleRow) -> Floats:
    """One per site: the share of its answers that came without a page (304)."""
    rows = store.visits.not_modified_by_site(cycle.first_visit - _RECENT_VISITS, cycle.first_visit)
    share = np.zeros(max((row.id for row in store.sites.all()), default=-1) + 1)
    for site, answers, cheap in rows:
        share[site] = cheap / answers
    return share


def _fitted(column: Floats, pages: int) -> Floats:
    """The column for `pages` pages; pages found since have 1."""
    whole = np.ones(pages)
    whole[: len(column)] = column[:pages]
    return whole


def _file(repository: Storage, path: str) -> Path:
    """Paths are relative to the repository."""
    return repository.folder / path
