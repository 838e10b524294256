"""The history of web pages as columns.

A *row* states that a page has a `version` from its `time` on; equal numbers are equal content, and `ABSENT` is a
missing page. The rows of page p are `first[p] .. first[p + 1] - 1`, in order of time. A history comes from an archive
of HTML under any definition of change, from a listing of digests, or from a generator without HTML. `carries` names
what it has beyond rows (text, links, ...); a replay refuses a policy that needs more.

Each site has its own clock: `time` is in seconds since the site's first row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from recrawl.book import Clusters, Directories, LinkGraph, PageWords
from recrawl.columns import DAY, Flags, Float32s, Floats, Int32s, Ints
from recrawl.errors import BadArchive, UsageError
from recrawl.extras import sparse
from recrawl.learn.shocks.url_templates import url_templates
from recrawl.learn.structure.directories import places

ABSENT = -1
"""The version of a missing page."""
HOSTILE, LIES = "hostile", "lies"
"""Columns of `History.facts`: 1 for the pages of an adversary, and for those whose sitemap says that they changed just
now."""


@dataclass(frozen=True, slots=True)
class LinkLists:
    """The links of every row. Most versions keep their links, so equal lists are stored once and referred to by number.

    Targets are page numbers; links that lead out of the history are omitted.
    """

    of_row: Int32s
    """Per row: the number of its list."""
    start: Ints
    target: Int32s

    def at(self, lists: Int32s) -> LinkGraph:
        """Return the link graph of pages, given each page's list; -1 is a page without links."""
        safe = np.maximum(lists, 0)
        counts = np.where(lists >= 0, self.start[safe + 1] - self.start[safe], 0)
        start = np.concatenate(([0], np.cumsum(counts)))
        inside = np.arange(start[-1]) - np.repeat(start[:-1], counts)
        return LinkGraph(start, self.target[np.repeat(self.start[safe], counts) + inside])


@dataclass(frozen=True, slots=True, eq=False)
class VersionWords:
    """The words of every row; versions with the same text share one row of `bags`."""

    of_row: Int32s
    """Per row: its row in `bags`."""
    bags: sparse.csr_array
    """Text by word, hashed (see `recrawl.compare.terms`): counts."""

    def of(self, pages: Ints, rows: Ints) -> PageWords:
        """Return the words of pages, in ascending order, each at one of its rows."""
        counts = self.bags[self.of_row[rows]]
        return PageWords(pages, counts.indptr.astype(np.int64), counts.indices, counts.data)


@dataclass(frozen=True, eq=False)
class History:
    """The versions of all pages over time. `History.read` reads one from archives, `assemble` builds one from rows."""

    urls: Sequence[str]
    sites: list[str]
    site: Int32s
    """Per page: the number of its site."""
    folder: Ints
    """Per page: the number of its directory in `folders`."""
    folders: Directories
    form: Ints
    """Per page: the number of its URL template."""
    first: Ints
    time: Floats
    version: Ints
    size: Ints
    """Per row: bytes."""
    change: str
    """What counts as change: raw, text or any level of change (see `compare.levels`)."""
    carries: frozenset[str]
    begins: Floats
    """Per site: the time of its first row, in seconds since 1970, UTC."""
    links: LinkLists | None = None
    clusters: Clusters | None = None
    words: VersionWords | None = None
    weight: Floats | None = None
    """Per page: its weight (importance), if known."""
    prior: Float32s | None = None
    """Per page: its change prior (see `compare.change_prior`) from its first version, if known."""
    facts: dict[str, Floats] = field(default_factory=dict)
    """Further columns over pages, by name, for experiments."""

    @classmethod
    def read(
        cls,
        paths: str | Path | Iterable[str | Path],
        change: str = "text",
        *,
        cache: str | Path | None = None,
        clusters: bool = False,
        words: bool = False,
        workers: int | None = 1,
    ) -> History:
        """Read archives: Parquet files, folders of them, or CDX listings.

        Parameters
        ----------
        paths
            One path or several.
        change
            What counts as change: `text`, `raw`, `content`, `significant`, `divergence:X` (share), `words:N`,
            `new-link`, `out-link`, `relevance:FILE` or `relevance-both:FILE`.
        cache
            Folder in which the facts read from an archive are kept; the next read of the same archive is fast.
        clusters
            Whether to cluster similar pages, which the policy `sampling(neighbours=clusters)` needs.
        words
            Whether to count the words of all versions, which `predicted(method=3d)` and its like need.
        workers
            Processes, None for one per core. A script that asks for more than one needs the guard
            `if __name__ == "__main__":`.
        """
        from recrawl.lab.histories.opening import open_history  # lazy: that module imports this one

        given = [paths] if isinstance(paths, str | Path) else paths
        folder = None if cache is None else Path(cache)
        return open_history(
            [Path(path) for path in given], change, folder, clusters=clusters, words=words, workers=workers
        )

    def __len__(self) -> int:
        """Number of pages."""
        return len(self.site)

    @property
    def page_of(self) -> Ints:
        """Per row: its page."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def span(self) -> float:
        """Seconds from the first row to the last of the longest site."""
        return float(self.time.max())


def assemble(
    urls: Sequence[str],
    page: Ints,
    time: Floats,
    version: Ints,
    *,
    change: str,
    carries: frozenset[str],
    size: Ints | None = None,
    links: LinkLists | None = None,
    clusters: Clusters | None = None,
    weight: Floats | None = None,
) -> History:
    """Build a history from rows sorted by page and time, with times in seconds since 1970.

    >>> history = assemble(["http://a.example/x/", "http://a.example/x/y"], np.array([0, 0, 1]),
    ...     np.array([50.0, 80.0, 60.0]), np.array([7, 8, 7]), change="text", carries=frozenset())
    >>> history.time.tolist(), history.sites, history.folder.tolist(), history.folders.level.tolist()
    ([0.0, 30.0, 10.0], ['a.example'], [1, 1], [0, 1])
    """
    _check_rows(len(urls), page, time)
    sites, site, folder, folders = places(urls)
    begins = np.full(len(sites), np.inf)
    np.minimum.at(begins, site[page], time)
    return History(
        urls=urls,
        sites=sites,
        site=site,
        folder=folder,
        folders=folders,
        form=url_templates(urls),
        first=np.append(np.flatnonzero(np.diff(page, prepend=-1)), len(page)).astype(np.int64),
        time=time - begins[site[page]],
        version=version,
        size=np.zeros(len(page), np.int64) if size is None else size,
        change=change,
        carries=carries
        | {"folders", "forms"}
        | ({"links", "arrivals"} if links else set())
        | ({"clusters"} if clusters else set()),
        begins=begins,
        links=links,
        clusters=clusters,
        weight=weight,
    )


def _check_rows(pages: int, page: Ints, time: Floats) -> None:
    if not len(page):
        raise BadArchive("the history has no rows")
    step = np.diff(page)
    if len(np.unique(page)) != pages or (step < 0).any() or (np.diff(time)[step == 0] < 0).any():
        raise BadArchive("invalid history: rows must be sorted by page and time, and every page needs at least one")


def without_start(history: History, seconds: float) -> History:
    """Cut `seconds` off each site's start, as after tuning on it; omit pages that are gone by then for good."""
    owner = history.page_of
    past = history.time <= seconds
    superseded = past & np.append((owner[1:] == owner[:-1]) & past[1:], False)  # superseded before the new start
    there = ~superseded & (history.version != ABSENT)
    kept = ~superseded & ~(past & ~there) & np.isin(owner, owner[there])
    if not there.any() or seconds >= history.span:
        raise UsageError(f"cannot skip {seconds / DAY:.3g} days: the archives last {history.span / DAY:.3g} days")
    rest = select_rows(history, kept)
    return replace(rest, time=np.maximum(rest.time - seconds, 0.0), begins=history.begins + seconds)


def select_rows(history: History, kept: Flags) -> History:
    """Return a history of the kept rows, without the pages that have none; sites keep their numbers."""
    rows = np.bincount(history.page_of[kept], minlength=len(history))
    pages = np.flatnonzero(rows)
    return replace(
        history,
        urls=[history.urls[page] for page in pages.tolist()],
        site=history.site[pages],
        folder=history.folder[pages],
        form=history.form[pages],
        first=np.concatenate(([0], np.cumsum(rows[pages]))),
        time=history.time[kept],
        version=history.version[kept],
        size=history.size[kept],
        links=_renumbered(history.links, kept, pages, len(history)) if history.links else None,
        clusters=Clusters(history.clusters.of[pages], history.clusters.nearest) if history.clusters else None,
        words=VersionWords(history.words.of_row[kept], history.words.bags) if history.words else None,
        weight=None if history.weight is None else history.weight[pages],
        prior=None if history.prior is None else history.prior[pages],
        facts={name: column[pages] for name, column in history.facts.items()},
    )


def _renumbered(links: LinkLists, kept: Flags, pages: Ints, total: int) -> LinkLists:
    """Return the lists of the kept rows with the new page numbers, without links to other pages."""
    number = np.full(total, -1, np.int32)
    number[pages] = np.arange(len(pages))
    target = number[links.target]
    before = np.concatenate(([0], np.cumsum(target >= 0)))
    return LinkLists(links.of_row[kept], before[links.start], target[target >= 0])
