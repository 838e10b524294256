"""The history of web pages as columns: what a replay runs on.

A *row* says that from its `time` on a page is in a `version`; equal numbers mean the same content, `ABSENT` that the
page is not there. Rows of page p are `first[p] .. first[p + 1] - 1`, in order of time. Whatever can say that much
can be replayed: an archive of HTML under any definition of change, a listing of digests, a generated world that has
no HTML at all. What a history has beyond that is said by `carries`; a policy that needs more is refused.

Each site runs on its own clock: `time` is seconds since the site's first row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Clusters, Directories, LinkGraph
from recrawl.errors import BadArchive
from recrawl.learn.shocks.url_templates import url_templates
from recrawl.learn.structure.directories import places

ABSENT = -1
"""The version of a page that is not there."""


@dataclass(frozen=True, slots=True)
class LinkLists:
    """The links of every row. Versions mostly keep their links, so a list is held once and named by number.

    A target of a list is a page number; links that lead out of the history are left out.
    """

    of_row: NDArray[np.int32]
    """One per row: its list."""
    start: NDArray[np.int64]
    target: NDArray[np.int32]

    def at(self, lists: NDArray[np.int32]) -> LinkGraph:
        """The links of pages, given each page's list; -1 stands for a page without links."""
        safe = np.maximum(lists, 0)
        counts = np.where(lists >= 0, self.start[safe + 1] - self.start[safe], 0)
        start = np.concatenate(([0], np.cumsum(counts)))
        inside = np.arange(start[-1]) - np.repeat(start[:-1], counts)
        return LinkGraph(start, self.target[np.repeat(self.start[safe], counts) + inside])


@dataclass(frozen=True, eq=False)
class History:
    """What every page was at every time, as numbers. Built by `assemble`."""

    urls: Sequence[str]
    sites: list[str]
    site: NDArray[np.int32]
    """One per page."""
    folder: NDArray[np.int64]
    """One per page: its directory's number in `folders`."""
    folders: Directories
    form: NDArray[np.int64]
    """One per page: a number for the form of its address."""
    first: NDArray[np.int64]
    time: NDArray[np.float64]
    version: NDArray[np.int64]
    size: NDArray[np.int64]
    """One per row: bytes."""
    change: str
    """What counts as change: raw, text, significant, divergence:X."""
    carries: frozenset[str]
    begins: NDArray[np.float64]
    """One per site: its first row's time, seconds since 1970, UTC."""
    links: LinkLists | None = None
    clusters: Clusters | None = None
    weight: NDArray[np.float64] | None = None
    """One per page: how much it matters, where somebody said so."""
    facts: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """Further columns over pages that an experiment knows, by name."""

    @classmethod
    def read(
        cls,
        paths: str | Path | Iterable[str | Path],
        change: str = "text",
        *,
        cache: str | Path | None = None,
        clusters: bool = False,
        workers: int | None = 1,
    ) -> History:
        """Read archives: Parquet files, folders of them, or CDX listings.

        Parameters
        ----------
        paths
            One path or several.
        change
            What counts as change: `text`, `raw`, `significant`, or `divergence:X` (share of words).
        cache
            Folder in which the facts read from an archive are kept; the next read of the same archive is fast.
        clusters
            Whether to cluster similar pages, which the policy `sampling(neighbours=clusters)` needs.
        workers
            Processes, None for one per core. A script that asks for more than one needs the guard
            `if __name__ == "__main__":`.
        """
        from recrawl.lab.histories.opening import open_history  # lazy: that module imports this one

        given = [paths] if isinstance(paths, str | Path) else paths
        folder = None if cache is None else Path(cache)
        return open_history([Path(path) for path in given], change, folder, clusters=clusters, workers=workers)

    def __len__(self) -> int:
        """How many pages there are."""
        return len(self.site)

    @property
    def page_of(self) -> NDArray[np.int64]:
        """One per row: its page."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def span(self) -> float:
        """Seconds from a site's first row to its last, of the site that is watched longest."""
        return float(self.time.max())


def assemble(
    urls: Sequence[str],
    page: NDArray[np.int64],
    time: NDArray[np.float64],
    version: NDArray[np.int64],
    *,
    change: str,
    carries: frozenset[str],
    size: NDArray[np.int64] | None = None,
    links: LinkLists | None = None,
    clusters: Clusters | None = None,
    weight: NDArray[np.float64] | None = None,
) -> History:
    """A history from rows that are sorted by page and time, times in seconds since 1970.

    >>> history = assemble(["http://a.example/x/", "http://a.example/x/y"], np.array([0, 0, 1]),
    ...     np.array([50.0, 80.0, 60.0]), np.array([7, 8, 7]), change="text", carries=frozenset())
    >>> history.time.tolist(), history.sites, history.folder.tolist(), history.folders.level.tolist()
    ([0.0, 30.0, 10.0], ['a.example'], [1, 1], [0, 1])
    """
    if not len(page):
        raise BadArchive("there is nothing to replay: the history has no rows")
    pages = len(urls)
    step = np.diff(page)
    if len(np.unique(page)) != pages or (step < 0).any() or (np.diff(time)[step == 0] < 0).any():
        raise BadArchive("the rows of a history must be sorted by page and time, and every page needs one")
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
