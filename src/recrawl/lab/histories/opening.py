"""Build a history from archive files, under a definition of change.

`text` (spec C1) and `raw` follow from digests. `significant` (spec C2) and `divergence:X` (spec C7) compare each
version with the one before it, so they read the texts again (see `change_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recrawl.book import Clusters
from recrawl.columns import Flags, Floats, Ints
from recrawl.compare.terms import BUCKETS, hashed_addresses
from recrawl.discover.urls import canonical, key
from recrawl.errors import BadArchive, UsageError
from recrawl.extras import sparse
from recrawl.lab.formats.archive import files_of
from recrawl.lab.formats.capture_listings import read as read_listing
from recrawl.lab.formats.page_facts import Facts, facts_of, word_counts_of
from recrawl.lab.formats.source_kinds import kind_of
from recrawl.lab.histories.history import ABSENT, History, LinkLists, VersionWords, assemble, step_level, steps_of
from recrawl.learn.structure.clusters import PER_CLUSTER, cluster
from recrawl.learn.structure.page_features import PageFacts, page_facts
from recrawl.learn.structure.pagerank import pagerank

Progress = Callable[[int, int], None]
_INDEX = ("index.html", "index.htm", "")


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """The rows of several files together, sorted by page and time; of equal rows only the last."""

    urls: list[str]
    """The URLs of the pages, sorted."""
    page: Ints
    place: Ints
    """Per row: its index in the concatenated files."""


def open_history(
    paths: Sequence[Path],
    change: str = "text",
    cache: Path | None = None,
    progress: Progress = lambda *_: None,
    *,
    clusters: bool = False,
    words: bool = False,
    workers: int | None = None,
) -> History:
    """Read archives into one history: Parquet files, folders of them, or CDX listings."""
    kinds = {kind_of(path) for path in paths}
    if "cdx" in kinds:
        if kinds != {"cdx"} or change not in ("text", "raw"):
            raise UsageError(
                "a CDX listing holds digests only: do not combine it with other archives, and use change text or raw"
            )
        return read_listing(paths).history
    if kinds - {"parquet"}:
        raise UsageError(
            f"convert {' and '.join(sorted(kinds - {'parquet'}))} to a Parquet archive first: recrawl import --out"
        )
    if change not in ("text", "raw"):
        step_level(change)  # refuse an invalid definition before the long work
    files = [file for path in paths for file in files_of(path)]
    facts = facts_of(files, cache, progress, workers=workers)
    steps = None if change in ("text", "raw") else steps_of(files, facts, change, cache, progress, workers=workers)
    history = history_of(facts, change, steps, clusters=clusters)
    return replace(history, words=_words(files, facts, cache, progress, workers)) if words else history


def history_of(
    files: Sequence[Facts],
    change: str = "text",
    steps: Sequence[Flags] | None = None,
    *,
    clusters: bool = False,
) -> History:
    """Build the history of these facts; `steps` marks the rows that count as changed, if digests do not decide."""
    rows = sorted_rows(files)

    def column(name: str) -> Ints:
        whole: Ints = np.concatenate([getattr(facts, name) for facts in files])[rows.place]
        return whole

    version = column("raw" if change == "raw" else "text")
    gone = version == 0
    if steps is not None:
        version = _numbered(files, rows, version, np.concatenate(steps)[rows.place])
    history = assemble(
        rows.urls,
        rows.page,
        column("time").astype(np.float64),
        np.where(gone, ABSENT, version),
        change=change,
        carries=frozenset({"text", "clusters", "words"}),
        size=column("size"),
        links=_links(files, rows),
    )
    first = rows.place[history.first[:-1]]
    prior = np.concatenate([facts.prior for facts in files])[first]
    history = replace(history, weight=_weights(history), prior=prior)
    return replace(history, clusters=_clusters(history, files, rows)) if clusters else history


def sorted_rows(files: Sequence[Facts]) -> SortedRows:
    """Sort the rows of all files."""
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
            raise BadArchive(f"'{url[:200]}' is not an http or https URL")
    return SortedRows(urls, page[last].astype(np.int64), order[last])


def _numbered(files: Sequence[Facts], rows: SortedRows, text: Ints, steps: Flags) -> Ints:
    """Number the versions: each step adds 1. Where a page continues in another file, any other text is a step."""
    file = np.repeat(np.arange(len(files)), [len(facts) for facts in files])[rows.place]
    continues = np.diff(file, prepend=file[0]) != 0
    new_page = np.diff(rows.page, prepend=-1) != 0
    differs = np.diff(text, prepend=text[0]) != 0
    version: Ints = np.cumsum(np.where(continues, differs, steps) | new_page)
    return version


def _words(
    files: Sequence[Path], facts: Sequence[Facts], cache: Path | None, progress: Progress, workers: int | None
) -> VersionWords:
    """Return the words of all versions, in the order of the history's rows."""
    bags, of_row = word_counts_of(files, facts, cache, progress, workers=workers)
    return VersionWords(of_row[sorted_rows(facts).place].astype(np.int32), bags)


def _weights(history: History) -> Floats:
    """Return page weights: the PageRank of the links of first versions, 1 on average (spec M2)."""
    assert history.links is not None
    ranks = pagerank(history.links.at(history.links.of_row[history.first[:-1]]))
    return ranks * len(ranks)


def _clusters(history: History, files: Sequence[Facts], rows: SortedRows) -> Clusters:
    """Cluster similar pages by the facts of each page's first version with words (spec S4)."""
    assert history.links is not None
    first = history.first[:-1].copy()
    worded = np.flatnonzero(np.concatenate([np.diff(facts.word_start) for facts in files])[rows.place])[::-1]
    first[rows.page[worded]] = worded  # backwards, so that the first row of a page is kept
    bags = [
        # Row starts as narrow as the columns; otherwise scipy would widen and copy the columns.
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


def _links(files: Sequence[Facts], rows: SortedRows) -> LinkLists:
    """Return lists of page numbers, without links that lead to no page of the archive."""
    lists_before = np.cumsum([0, *(len(facts.link_start) - 1 for facts in files[:-1])])
    of_row = np.concatenate([facts.links + np.int32(n) for facts, n in zip(files, lists_before, strict=True)])
    keys = np.concatenate([facts.link_key for facts in files])
    lengths = np.concatenate([np.diff(facts.link_start) for facts in files])
    names, pages = _url_keys(rows.urls)
    place = np.searchsorted(names, keys)
    hit = place < len(names)
    hit[hit] = names[place[hit]] == keys[hit]
    of_list = np.repeat(np.arange(len(lengths)), lengths)
    lengths_kept = np.bincount(of_list[hit], minlength=len(lengths))
    start = np.concatenate(([0], np.cumsum(lengths_kept))).astype(np.int64)
    return LinkLists(of_row[rows.place], start, pages[place[hit]].astype(np.int32))


def _url_keys(urls: list[str]) -> tuple[Ints, Ints]:
    """Return the sorted keys of all URLs of pages, and the pages; `x/` and `x/index.html` are the same page."""
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


def clusters_of(
    history: History, facts: PageFacts, rng: np.random.Generator, *, per_cluster: int = PER_CLUSTER
) -> Clusters:
    """Cluster the pages of a history (spec S4), by the facts of each page's first version.

    The clusters are built from the pages that exist at the start, as a crawler would; pages born later are assigned to
    them.
    """
    begin = history.first[:-1]
    at_start = (history.time[begin] == 0) & (history.version[begin] != ABSENT)
    present, later = np.flatnonzero(at_start), np.flatnonzero(~at_start)
    if not len(later):
        return cluster(facts, rng, per_cluster=per_cluster).clusters
    built = cluster(facts.take(present), rng, per_cluster=per_cluster)
    of = np.empty(len(history), np.int32)
    of[present] = built.page
    of[later] = built.assign(facts.take(later))
    return Clusters(of, built.clusters.nearest)
