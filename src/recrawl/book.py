"""The book: what is known about every page, as columns with one entry per page. Policies read it; `note` updates it.

Lab and live crawl use the same book. Live, it is loaded from the store at the start of a cycle, and the visits of the
cycle are noted at its end; so a policy sees one state throughout, and a crashed cycle can start again from it.

Seven parts are present only if the policy `needs` them: the tree of directories, the links between pages, clusters of
similar pages, URL templates, hints of servers, change priors, and the words that visits have read. `memory` holds the
policy's own state between cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints, unique
from recrawl.model import Outcome, Outcomes, Pages


@dataclass(frozen=True, slots=True)
class Directories:
    """The tree of directories; `book.folder` holds their numbers."""

    parent: Ints
    """One per directory: its parent, -1 at the top of a site."""
    level: Int32s
    """One per directory: its level, 0 at the top of a site."""


@dataclass(frozen=True)
class LinkGraph:
    """Links between pages in rows: page p links to `target[start[p] : start[p + 1]]`."""

    start: Ints
    target: Int32s

    def of(self, page: int) -> Int32s:
        """Return the pages that a page links to."""
        return self.target[self.start[page] : self.start[page + 1]]

    def reversed(self) -> LinkGraph:
        """Return the graph with all links reversed: the pages that link to each page.

        >>> links = LinkGraph(np.array([0, 2, 3, 3]), np.array([1, 2, 2], np.int32))
        >>> links.reversed().of(2).tolist()
        [0, 1]
        """
        return self._reversed

    @cached_property
    def _reversed(self) -> LinkGraph:
        # numpy sorts 16-bit numbers in linear time: the low half first, then the high half.
        low = np.argsort(self.target.astype(np.uint16), kind="stable")
        order = low[np.argsort((self.target >> 16).astype(np.uint16)[low], kind="stable")]
        sources = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.start))
        counts = np.bincount(self.target, minlength=len(self))
        return LinkGraph(np.concatenate(([0], np.cumsum(counts))), sources[order])

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.start) - 1


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters of similar pages (spec S4)."""

    of: Int32s
    """One per page: its cluster, -1 for a page in none."""
    nearest: Int32s
    """Row c: all clusters by the distance of their centroids from c's, c itself first."""


@dataclass(frozen=True, slots=True)
class Hints:
    """What servers volunteer about change (spec §8), kind by page; `learn.hints` decides how far to trust it."""

    kinds: tuple[str, ...]
    signals: NDArray[np.int16]
    """Kind by page: the number of signals since the page's last visit."""
    claimed: Floats
    """Kind by page: the newest time of change that the source named; -inf for none."""
    until: Floats
    """Kind by page: the time up to which the source covers the page, so that its silence counts; -inf for never."""

    def first(self, pages: int) -> Hints:
        """Return the hints of the first `pages` pages."""
        return Hints(self.kinds, self.signals[:, :pages], self.claimed[:, :pages], self.until[:, :pages])

    def of(self, pages: Pages) -> Hints:
        """Return the hints of some pages."""
        return Hints(self.kinds, self.signals[:, pages], self.claimed[:, pages], self.until[:, pages])


@dataclass(frozen=True, slots=True)
class PageWords:
    """Hashed word counts (see `recrawl.compare.terms`) of the versions that visits have read."""

    page: Ints
    """One per row, ascending: the page."""
    start: Ints
    """Row i has the entries `start[i] : start[i + 1]`."""
    word: Int32s
    count: NDArray[np.uint16]


@dataclass(slots=True)
class Book:
    """Columns with one entry per page. Times are in seconds since 1970, UTC; -inf for never."""

    now: float
    known: Flags
    """Whether the page may be visited: found, not gone, not barred."""
    site: Int32s
    folder: Ints
    """The number of the page's directory."""
    depth: Int32s
    found: Floats
    """When the page was found."""
    visits: Int32s
    """Visits with an answer, the first included."""
    changes: Int32s
    """Updates observed: the page's creation, changes and removal."""
    failures: Int32s
    """Failed visits in a row."""
    last_try: Floats
    """The last visit of any outcome."""
    last_visit: Floats
    """The last visit with an answer."""
    last_change: Floats
    """The last visit that found an update."""
    size: Ints
    """Bytes."""
    weight: Floats = field(default_factory=lambda: np.zeros(0))
    """The importance of the page, 1 on average; finite and not negative. All 1 by default."""
    cost: Floats = field(default_factory=lambda: np.zeros(0))
    """The cost of a visit, above 0; all 1 by default."""
    arrivals: Floats = field(default_factory=lambda: np.zeros(0))
    """New links per change of the page, as observed; all 1 by default."""
    folders: Directories | None = None
    links: LinkGraph | None = None
    clusters: Clusters | None = None
    form: Ints | None = None
    """The number of the page's URL template (see `recrawl.learn.shocks.url_templates`)."""
    index: Flags | None = None
    """Whether the page is the index of its directory, by its URL; known with the URL templates."""
    hints: Hints | None = None
    prior: Float32s | None = None
    """The logarithm of each page's expected rate of content changes relative to an average page, from its first
    download; NaN for pages without one."""
    words: PageWords | None = None
    """Only while a policy learns: the words of the pages that the visits have read."""
    share: float = 1.0
    """The share of the collection that is in this book: less than 1 for a shard (see `recrawl.choose.shards`)."""
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    """The policy's state; only its `learn` writes here."""

    def __post_init__(self) -> None:
        ones = np.broadcast_to(np.float64(1), len(self))  # takes no memory; these columns are read only
        self.weight = self.weight if len(self.weight) else ones
        self.cost = self.cost if len(self.cost) else ones
        self.arrivals = self.arrivals if len(self.arrivals) else ones

    @classmethod
    def blank(cls, pages: int, now: float = 0.0) -> Book:
        """Return a book of pages that were never visited, all of one site."""

        def never() -> Floats:
            return np.full(pages, -np.inf)

        return cls(
            now=now,
            known=np.ones(pages, bool),
            site=np.zeros(pages, np.int32),
            folder=np.zeros(pages, np.int64),
            depth=np.zeros(pages, np.int32),
            found=np.zeros(pages),
            visits=np.zeros(pages, np.int32),
            changes=np.zeros(pages, np.int32),
            failures=np.zeros(pages, np.int32),
            last_try=never(),
            last_visit=never(),
            last_change=never(),
            size=np.zeros(pages, np.int64),
        )

    def __len__(self) -> int:
        return len(self.site)

    @property
    def sites(self) -> int:
        """The number of sites; sites are numbered from 0."""
        return int(self.site.max(initial=-1)) + 1

    def note(self, seen: Outcomes, at: float | Floats, requested: Flags | None = None) -> None:
        """Record the outcomes of visits, each page at most once per call.

        `requested` is False for failures without a request, which do not count against the page; None is all True.

        >>> book = Book.blank(3)
        >>> book.note(Outcomes(np.array([0, 2]), np.array([Outcome.NEW, Outcome.FAILED], np.int8)), at=5.0)
        >>> book.visits.tolist(), book.changes.tolist(), book.failures.tolist(), book.last_visit.tolist()
        ([1, 0, 0], [1, 0, 0], [0, 0, 1], [5.0, -inf, -inf])
        """
        times = np.broadcast_to(np.asarray(at, np.float64), len(seen))
        answered, changed = seen.answered, seen.changed
        visited, updated = seen.pages[answered], seen.pages[changed]
        self.visits[visited] += 1
        self.changes[updated] += 1
        self.failures[visited] = 0
        self.failures[seen.pages[~answered if requested is None else ~answered & requested]] += 1
        self.last_try[seen.pages] = times
        self.last_visit[visited] = times[answered]
        self.last_change[updated] = times[changed]
        self.known[seen.pages[seen.what == Outcome.GONE]] = False

    def part(self, pages: Pages) -> Book:
        """Return the book of some pages, in ascending order: pages and sites are numbered anew, in the same order.

        It has no memory, and no links, clusters and words, which belong to pages of several sites together.

        >>> book = Book.blank(4)
        >>> book.site[:], book.visits[:] = [0, 1, 2, 2], [1, 2, 3, 4]
        >>> part = book.part(np.array([1, 3]))
        >>> part.site.tolist(), part.visits.tolist()
        ([0, 1], [2, 4])
        """
        columns = {name: getattr(self, name)[pages] for name in _PLAIN}
        for name in ("weight", "cost", "arrivals"):
            column = getattr(self, name)
            columns[name] = column[pages] if any(column.strides) else np.zeros(0)  # constant columns take no memory
        for name in ("form", "index", "prior"):
            column = getattr(self, name)
            columns[name] = None if column is None else column[pages]
        sites = unique(self.site[pages])
        columns["site"] = np.searchsorted(sites, self.site[pages]).astype(np.int32)
        hints = None if self.hints is None else self.hints.of(pages)
        share = self.share * max(len(pages), 1) / max(len(self), 1)
        return Book(now=self.now, folders=self.folders, hints=hints, share=share, **columns)

    def kept(self, name: str, default: float, dtype: type = np.float64) -> NDArray[Any]:
        """Return a copy of a column of the policy's memory, with the default for pages that it lacks.

        >>> book = Book.blank(2)
        >>> book.memory["interval"] = np.array([7.0])
        >>> book.kept("interval", 30.0).tolist()
        [7.0, 30.0]
        """
        column: NDArray[Any] = np.full(len(self), default, dtype)
        known = self.memory.get(name)
        if known is not None:
            column[: len(known)] = known
        return column

    def forget(self, pages: Pages) -> None:
        """Reset pages as if they were never visited; used to go back to the state before a crashed cycle."""
        self.visits[pages] = 0
        self.changes[pages] = 0
        self.failures[pages] = 0
        self.last_try[pages] = -np.inf
        self.last_visit[pages] = -np.inf
        self.last_change[pages] = -np.inf
        self.known[pages] = True


OF_VISITS = ("known", "visits", "changes", "failures", "last_try", "last_visit", "last_change")
"""The columns that `note` and `forget` change."""
_PLAIN = (*OF_VISITS, "folder", "depth", "found", "size")
"""Columns without a default, but for the site."""
