"""What is known of every page: columns, one row a page, nothing else. Policies read it; `note` is how it learns.

The book is the same in the lab and live. Live it is loaded from the store at the start of a cycle; the visits of the
cycle are noted at its end, so a policy sees one state of knowledge throughout, and a crashed cycle can be started
again from the same state.

Five things are there only when a policy `needs` them: the tree of directories, the links between pages, clusters of
like pages, the forms of addresses, what servers volunteer about change. And `memory` is what the policy in use keeps
from cycle to cycle, under names of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model import Outcome, Outcomes


@dataclass(frozen=True, slots=True)
class Directories:
    """The tree of directories; `book.folder` holds numbers of it."""

    parent: NDArray[np.int64]
    """One per directory, -1 at the top of a site."""
    level: NDArray[np.int32]
    """One per directory, 0 at the top of a site."""


@dataclass(frozen=True)
class LinkGraph:
    """Links between pages in rows: page p links to `target[start[p] : start[p + 1]]`."""

    start: NDArray[np.int64]
    target: NDArray[np.int32]

    def of(self, page: int) -> NDArray[np.int32]:
        """The pages that a page links to."""
        return self.target[self.start[page] : self.start[page + 1]]

    def turned(self) -> LinkGraph:
        """The same links from their targets' side: who links to a page.

        >>> links = LinkGraph(np.array([0, 2, 3, 3]), np.array([1, 2, 2], np.int32))
        >>> links.turned().of(2).tolist()
        [0, 1]
        """
        return self._turned

    @cached_property
    def _turned(self) -> LinkGraph:
        # Sorting numbers of 16 bits takes linear time, sorting larger ones does not: the low half first, then the high.
        low = np.argsort(self.target.astype(np.uint16), kind="stable")
        order = low[np.argsort((self.target >> 16).astype(np.uint16)[low], kind="stable")]
        sources = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.start))
        counts = np.bincount(self.target, minlength=len(self))
        return LinkGraph(np.concatenate(([0], np.cumsum(counts))), sources[order])

    def __len__(self) -> int:
        """How many pages there are."""
        return len(self.start) - 1


@dataclass(frozen=True, slots=True)
class Clusters:
    """Groups of pages that are alike (spec S4)."""

    of: NDArray[np.int32]
    """One per page: its cluster, -1 for a page in none."""
    nearest: NDArray[np.int32]
    """Row c: all clusters by the distance of their centroids from c's, c itself first."""


@dataclass(frozen=True, slots=True)
class Hints:
    """What servers volunteer about change (spec §8), kind by page. Who believes what is `learn.hints`' affair."""

    kinds: tuple[str, ...]
    signals: NDArray[np.int16]
    """Kind by page: how often the source said since the page's last visit that it has changed."""
    claimed: NDArray[np.float64]
    """Kind by page: the newest time of change that it named; -inf where it named none."""
    until: NDArray[np.float64]
    """Kind by page: up to when its silence would mean something; -inf where it does not speak of the page at all."""

    def first(self, pages: int) -> Hints:
        """The hints of the first so many pages."""
        return Hints(self.kinds, self.signals[:, :pages], self.claimed[:, :pages], self.until[:, :pages])


@dataclass(slots=True)
class Book:
    """Columns over pages. Times are seconds since 1970, UTC; -inf where something never happened."""

    now: float
    known: NDArray[np.bool_]
    """May be visited: found, not gone, not barred."""
    site: NDArray[np.int32]
    folder: NDArray[np.int64]
    """A number for the page's directory: equal numbers, same directory."""
    depth: NDArray[np.int32]
    found: NDArray[np.float64]
    visits: NDArray[np.int32]
    """Visits that said something, the first included."""
    changes: NDArray[np.int32]
    """Updates seen: the page's creation, changes and removal."""
    failures: NDArray[np.int32]
    """Failed visits in a row."""
    last_try: NDArray[np.float64]
    """The last visit of any outcome."""
    last_visit: NDArray[np.float64]
    """The last visit that said something."""
    last_change: NDArray[np.float64]
    size: NDArray[np.int64]
    weight: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """How much a page matters, 1 on average; finite and not negative. All 1 where nobody said anything."""
    cost: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """What a visit costs against others, over zero; all 1 where a visit is a visit."""
    arrivals: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """How many new links a change of the page brings, as far as was seen; all 1 where nobody has counted."""
    folders: Directories | None = None
    links: LinkGraph | None = None
    clusters: Clusters | None = None
    form: NDArray[np.int64] | None = None
    """A number for the form of the page's address: equal numbers, same form (see `learn.forms`)."""
    hints: Hints | None = None
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What the policy keeps; only its `learn` may write here."""

    def __post_init__(self) -> None:
        ones = np.broadcast_to(np.float64(1), len(self))  # takes no room; nobody writes into these columns
        self.weight = self.weight if len(self.weight) else ones
        self.cost = self.cost if len(self.cost) else ones
        self.arrivals = self.arrivals if len(self.arrivals) else ones

    @classmethod
    def blank(cls, pages: int, now: float = 0.0) -> Book:
        """A book of pages that were never visited, all of one site."""

        def never() -> NDArray[np.float64]:
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
        """How many sites there are; their numbers begin at 0."""
        return int(self.site.max(initial=-1)) + 1

    def note(self, seen: Outcomes, at: float | NDArray[np.float64], requested: NDArray[np.bool_] | None = None) -> None:
        """Record the outcomes of visits, each page at most once per call.

        `requested` is False for failures without a request, which do not count against the page; None is all True.

        >>> book = Book.blank(3)
        >>> book.note(Outcomes(np.array([0, 2]), np.array([Outcome.NEW, Outcome.FAILED], np.int8)), at=5.0)
        >>> book.visits.tolist(), book.changes.tolist(), book.failures.tolist(), book.last_visit.tolist()
        ([1, 0, 0], [1, 0, 0], [0, 0, 1], [5.0, -inf, -inf])
        """
        times = np.broadcast_to(np.asarray(at, np.float64), len(seen))
        answered, changed = seen.answered, seen.changed
        said, found = seen.pages[answered], seen.pages[changed]
        self.visits[said] += 1
        self.changes[found] += 1
        self.failures[said] = 0
        self.failures[seen.pages[~answered if requested is None else ~answered & requested]] += 1
        self.last_try[seen.pages] = times
        self.last_visit[said] = times[answered]
        self.last_change[found] = times[changed]
        self.known[seen.pages[seen.what == Outcome.GONE]] = False

    def kept(self, name: str, default: float, dtype: type = np.float64) -> NDArray[Any]:
        """A column of the policy's memory, one value per page; pages that it does not know yet have the default.

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

    def forget(self, pages: NDArray[np.int64]) -> None:
        """Put pages back to where nothing was known of them; used to step back before a crashed cycle."""
        self.visits[pages] = 0
        self.changes[pages] = 0
        self.failures[pages] = 0
        self.last_try[pages] = -np.inf
        self.last_visit[pages] = -np.inf
        self.last_change[pages] = -np.inf
        self.known[pages] = True
