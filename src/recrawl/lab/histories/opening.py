"""From archive files to a history that can be replayed, under a definition of change.

`text` (spec C1) and `raw` come from digests. `significant` (spec C2) and `divergence:X` (spec C7) compare each version
with the one before it, so they need the texts again (see `steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recrawl.book import Clusters
from recrawl.compare.terms import BUCKETS, hashed_addresses
from recrawl.discover.urls import canonical, key
from recrawl.errors import BadArchive, UsageError
from recrawl.lab.formats.archive import files_of
from recrawl.lab.formats.capture_listings import read as read_listing
from recrawl.lab.formats.page_facts import Facts, facts_of
from recrawl.lab.formats.source_kinds import kind_of
from recrawl.lab.histories.change_steps import least, steps_of
from recrawl.lab.histories.clustering import clusters_of
from recrawl.lab.histories.history import ABSENT, History, LinkLists, assemble
from recrawl.learn.structure.page_features import page_facts
from recrawl.learn.structure.pagerank import pagerank

Progress = Callable[[int, int], None]
_INDEX = ("index.html", "index.htm", "")


@dataclass(frozen=True, slots=True, eq=False)
class HistoryRows:
    """The rows of several files as one: sorted by page and time, the last of equal rows kept."""

    urls: list[str]
    """The pages, sorted."""
    page: NDArray[np.int64]
    place: NDArray[np.int64]
    """Where a row comes from: its place in the files one after another."""


def open_history(
    paths: Sequence[Path],
    change: str = "text",
    cache: Path | None = None,
    progress: Progress = lambda *_: None,
    *,
    clusters: bool = False,
    workers: int | None = None,
) -> History:
    """Read archives into one history: Parquet files or folders of them, or listings of digests."""
    kinds = {kind_of(path) for path in paths}
    if "cdx" in kinds:
        if kinds != {"cdx"} or change not in ("text", "raw"):
            raise UsageError(
                "a CDX listing has digests only: it is replayed by itself, and any other digest is a change"
            )
        return read_listing(paths).history
    if kinds - {"parquet"}:
        raise UsageError(
            f"turn {' and '.join(sorted(kinds - {'parquet'}))} into an archive first: recrawl import --out"
        )
    if change not in ("text", "raw"):
        least(change)  # a word that means nothing is refused before the long work
    files = [file for path in paths for file in files_of(path)]
    facts = facts_of(files, cache, progress, workers=workers)
    steps = None if change in ("text", "raw") else steps_of(files, facts, change, cache, progress, workers=workers)
    return history_of(facts, change, steps, clusters=clusters)


def history_of(
    files: Sequence[Facts],
    change: str = "text",
    steps: Sequence[NDArray[np.bool_]] | None = None,
    *,
    clusters: bool = False,
) -> History:
    """The history that facts tell; `steps` marks rows that count as changed, where digests do not decide it."""
    rows = sorted_rows(files)

    def column(name: str) -> NDArray[np.int64]:
        whole: NDArray[np.int64] = np.concatenate([getattr(facts, name) for facts in files])[rows.place]
        return whole

    version = column("raw" if change == "raw" else "text")
    gone = version == 0
    if steps is not None:
        version = _counted(files, rows, version, np.concatenate(steps)[rows.place])
    history = assemble(
        rows.urls,
        rows.page,
        column("time").astype(np.float64),
        np.where(gone, ABSENT, version),
        change=change,
        carries=frozenset({"text", "clusters"}),
        size=column("size"),
        links=_links(files, rows),
    )
    history = replace(history, weight=_weights(history))
    return replace(history, clusters=_clusters(history, files, rows)) if clusters else history


def sorted_rows(files: Sequence[Facts]) -> HistoryRows:
    """All rows in order."""
    if not sum(map(len, files)):
        raise BadArchive("the archive has no rows")
    names, page = np.unique(np.concatenate([facts.url for facts in files]), return_inverse=True)
    time = np.concatenate([facts.time for facts in files])
    order = np.lexsort((time, page))
    page, time = page[order], time[order]
    last = np.append((page[1:] != page[:-1]) | (time[1:] != time[:-1]), True)
    urls: list[str] = names.tolist()
    for url in urls:
        scheme, _, rest = url.partition("://")
        if scheme not in ("http", "https") or not rest.partition("/")[0]:
            raise BadArchive(f"'{url[:200]}' is not an http or https address")
    return HistoryRows(urls, page[last].astype(np.int64), order[last])


def _counted(
    files: Sequence[Facts], rows: HistoryRows, text: NDArray[np.int64], steps: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Versions as numbers that go up with every step. Where a page goes on in another file, any other text is one."""
    file = np.repeat(np.arange(len(files)), [len(facts) for facts in files])[rows.place]
    goes_on = np.diff(file, prepend=file[0]) != 0
    new_page = np.diff(rows.page, prepend=-1) != 0
    differs = np.diff(text, prepend=text[0]) != 0
    version: NDArray[np.int64] = np.cumsum(np.where(goes_on, differs, steps) | new_page)
    return version


def _weights(history: History) -> NDArray[np.float64]:
    """How much pages matter: the PageRank of the links of their first versions, 1 on average (spec M2)."""
    assert history.links is not None
    ranks = pagerank(history.links.at(history.links.of_row[history.first[:-1]]))
    return ranks * len(ranks)


def _clusters(history: History, files: Sequence[Facts], rows: HistoryRows) -> Clusters:
    """Clusters of like pages, by the facts of each page's first version that has words (spec S4)."""
    assert history.links is not None
    first = history.first[:-1].copy()
    worded = np.flatnonzero(np.concatenate([np.diff(facts.word_start) for facts in files])[rows.place])[::-1]
    first[rows.page[worded]] = worded  # backwards, so that the first of a page stands
    bags = [
        # Row starts as narrow as the columns, or scipy would widen and copy the latter.
        sparse.csr_array(
            (facts.word_count.astype(np.uint16), facts.word, facts.word_start.astype(np.int32)),
            shape=(len(facts), BUCKETS),
        )
        for facts in files
    ]
    links = history.links.at(history.links.of_row[first])
    known = page_facts(
        rows.urls,
        sparse.vstack(bags, format="csr")[rows.place[first]],
        hashed_addresses(rows.urls),
        images=np.concatenate([facts.images for facts in files])[rows.place[first]],
        in_links=np.bincount(links.target, minlength=len(history)),
        out_links=np.diff(links.start),
        size=history.size[first],
    )
    return clusters_of(history, known, np.random.default_rng(0))


def _links(files: Sequence[Facts], rows: HistoryRows) -> LinkLists:
    """Lists of page numbers; links that lead to no page of the archive are left out."""
    lists_before = np.cumsum([0, *(len(facts.link_start) - 1 for facts in files[:-1])])
    of_row = np.concatenate([facts.links + np.int32(n) for facts, n in zip(files, lists_before, strict=True)])
    keys = np.concatenate([facts.link_key for facts in files])
    lengths = np.concatenate([np.diff(facts.link_start) for facts in files])
    names, pages = _addresses(rows.urls)
    place = np.searchsorted(names, keys)
    hit = place < len(names)
    hit[hit] = names[place[hit]] == keys[hit]
    of_list = np.repeat(np.arange(len(lengths)), lengths)
    kept = np.bincount(of_list[hit], minlength=len(lengths))
    start = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
    return LinkLists(of_row[rows.place], start, pages[place[hit]].astype(np.int32))


def _addresses(urls: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys of every address that means a page, sorted, and the pages; `x/` and `x/index.html` mean the same."""
    seen: dict[int, int] = {}
    for page, url in enumerate(urls):
        name = canonical(url)
        if name is not None:
            seen[key(name)] = page
    for page, url in enumerate(urls):
        folder, _, file = (canonical(url) or "").rpartition("/")
        if file in _INDEX:
            for other in _INDEX:
                seen.setdefault(key(f"{folder}/{other}"), page)
    names = np.fromiter(seen, np.int64, len(seen))
    order = np.argsort(names)
    return names[order], np.fromiter(seen.values(), np.int64, len(seen))[order]
