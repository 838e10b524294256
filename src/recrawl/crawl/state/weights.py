"""Importance of pages and cost of visits, set in the book before a policy sees it.

Both can change during a cycle, as files are edited and pages change in size; so a cycle's initial values are kept in a
file for a resumed cycle. PageRanks are kept with them, as a start for those of the next cycle.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from recrawl.book import Book
from recrawl.columns import Floats
from recrawl.crawl.options import Weights
from recrawl.crawl.state.array_files import read_arrays, write_arrays
from recrawl.crawl.state.link_graph import links_of
from recrawl.discover.weight_files import read_weights, split_base
from recrawl.errors import UsageError
from recrawl.learn.value.importance import costs, kind_of, match_weights, normalise, priority_weights
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage
from recrawl.record.store import Store

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
