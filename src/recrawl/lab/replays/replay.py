"""The replay of a history under a policy: the loop of a live crawl, with an archive in place of the web.

Cycle k = 1, 2, ... takes place at time k · cycle of every site's own clock. The repository holds all pages that exist
at time 0. A page born later becomes known at its birth, as from a sitemap, or when a visited page links to it. A visit
compares the page's version with the one in the repository, so several changes since the last visit count as one, and a
reverted change counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.budget.budgeted import Budgeted
from recrawl.choose.budget.fair import claims, site_share
from recrawl.choose.protocol import Chooser, Policy, needs_of, work_of
from recrawl.choose.shards.placement import check_shards
from recrawl.choose.shards.rounds import by_domain
from recrawl.columns import HOUR, Floats, Ints
from recrawl.discover.registrable_domains import registrable_domain
from recrawl.errors import UsageError
from recrawl.lab.histories.history import ABSENT, LIES, History
from recrawl.lab.replays.copies import KnownCopies, has_texts
from recrawl.lab.replays.hint_sources import check_hints, hint_source
from recrawl.lab.replays.late import Late
from recrawl.lab.replays.metrics import Meter, NewLinks, Record, rate_accuracy
from recrawl.lab.replays.timeline import Timeline
from recrawl.learn.shocks.url_templates import index_pages
from recrawl.learn.value import COSTS, costs, normalise
from recrawl.loop import Recorded, run_cycle
from recrawl.model import Outcome, Outcomes, Pages, Picks

_SLOTS = 24
"""Times per cycle at which visits take place that are spread over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How to replay a history. Times are in seconds."""

    budget: int
    bytes: float = 0.0
    """Bytes that a cycle may download; every visit downloads the whole page. 0 is no limit."""
    cycle: float
    cycles: int
    seed: int = 1
    at_start: float = 1.0
    """Share of a cycle's visits made at its start; the rest is spread evenly over the cycle (spec P1)."""
    failures: float = 0.0
    """Share of visits that fail."""
    late: float = 0.0
    """Share of a batch whose outcomes come with a later batch, for policies that do not wait for them (see `late`)."""
    discover: str = "births"
    """How pages become known: those born later at their `births`, or by `links` from visited pages; `crawl`: by links,
    with a repository that at first holds only the start page of every site."""
    hints: str = ""
    """A simulated sitemap such as `sitemap:honest` (see `simulated_hints`), or a folder of hint files, which say what
    sitemaps and feeds said (see `recorded_hints`); none if empty."""
    weighted: bool = False
    """Whether policies get the page weights; the weighted measures use them in any case."""
    cost: str = "visit"
    """Cost of a visit: `visit` (all equal), or `bytes` (the page's size)."""
    copies: bool = False
    """Whether copies are known and left out until they are due, as in a crawl (see `copies`)."""
    site_share: str = "1"
    """What one site may take of a cycle: `auto`, `equal`, or the largest share; 1 is no limit."""
    shards: int = 1
    """Shards into which the pages are divided by site; a policy that cannot be split runs on one."""
    samples: int = 8
    """Samples of freshness and age per cycle."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"invalid seed {self.seed}; use 0 or more")
        if self.samples < 1:
            raise UsageError(f"invalid number of samples {self.samples}; use 1 or more per cycle")
        if self.budget < 0:
            raise UsageError(f"invalid budget {self.budget}; use 0 or more visits per cycle")
        if not self.bytes >= 0:
            raise UsageError(f"invalid bytes per cycle {self.bytes}; use 0 or more")
        if self.cycles < 1 or not 0 < self.cycle < float("inf"):
            raise UsageError(f"invalid replay of {self.cycles} cycles of {self.cycle:g} s; both must be more than 0")
        for name in ("at_start", "failures", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"invalid {name} {getattr(self, name)}; use a share from 0 to 1")
        site_share(self.site_share)
        if self.cost not in COSTS:
            raise UsageError(f"invalid cost '{self.cost}'; use {' or '.join(COSTS)}")
        check_shards(self.shards)
        if self.discover not in ("births", "links", "crawl"):
            raise UsageError(f"invalid discover '{self.discover}'; use births, links or crawl")
        if self.hints:
            check_hints(self.hints)

    def offsets(self, made: int, count: int) -> Floats:
        """Return when the next `count` visits take place, in seconds after the cycle's start; `made` came before."""
        if self.at_start == 1:
            return np.zeros(count)
        place = (made + np.arange(count)) / max(1, self.budget)
        spread = np.maximum(0.0, place - self.at_start) / (1 - self.at_start)
        return np.floor(spread * _SLOTS) / _SLOTS * self.cycle

    def moments(self, pages: int) -> tuple[Floats, Ints]:
        """Return all times at which visits can take place, and how many at each; a cycle visits no page twice."""
        visits = min(self.budget, pages)
        offsets, room = np.unique(self.offsets(0, max(1, visits)), return_counts=True)
        starts = np.arange(1, self.cycles + 1) * self.cycle
        return np.add.outer(starts, offsets).ravel(), np.tile(room if visits else room * 0, self.cycles)


def replay(history: History, policy: Policy, setup: Setup, progress: Callable[[int], None] = lambda _: None) -> Record:
    """Drive the policy through all cycles; `progress` gets the number of each finished cycle."""
    check(history, policy, setup)
    if setup.shards > 1:
        policy = by_domain(policy, [registrable_domain(site) for site in history.sites], setup.shards)
    web = Web(history, setup)
    book = web.first_book()
    needs = needs_of(policy)
    for k in range(1, setup.cycles + 1):
        web.begin(k, book, needs)
        chooser = _within(setup, policy, book)
        world = Late(web, history.site, setup.late, setup.seed) if setup.late else web
        run_cycle(policy, chooser, world, book, setup.budget, setup.seed * 1_000_003 + k, partial(web.recorded, book))
        progress(k)
    web.finish()
    record = web.meter.record(web.timeline, setup.cycles * setup.cycle / HOUR)
    accuracy = rate_accuracy(history, book, setup.cycle, setup.cycles)
    return replace(record, rate_accuracy=accuracy, work=work_of(policy, book))


def _within(setup: Setup, policy: Policy, book: Book) -> Chooser:
    """Return the policy within the limits of the cycle that begins."""
    fair, most = site_share(setup.site_share)
    allowance = Allowance(
        bytes=setup.bytes or float("inf"),
        site_most=max(1, round(most * setup.budget)) if most < 1 else None,
        site_bytes=most * setup.bytes if setup.bytes and most < 1 else float("inf"),
    )
    claimed = None if fair is None else claims(book, setup.budget, policy, fair)
    if claimed is not None and claimed.reserved.any():
        return Budgeted(policy, allowance, reserved=claimed.reserved, hope=claimed.hope)
    return Budgeted(policy, allowance) if allowance else policy


def check(history: History, policy: Policy, setup: Setup) -> None:
    """Raise a UsageError if the history lacks something that the policy or the setup needs."""
    # The setup provides the hints, not the history; without change priors all pages have the same.
    needed = (needs_of(policy) - {"hints", "prior"}) | ({"links"} if setup.discover != "births" else set())
    lacking = sorted(needed - history.carries)
    if lacking:
        raise UsageError(
            f"{policy.name} needs {' and '.join(lacking)}, but this archive carries only "
            f"{', '.join(sorted(history.carries))}"
        )
    if setup.copies and not has_texts(history):
        raise UsageError("copies are known by their texts: read the archive with the change text or raw")
    if "clusters" in needed and history.clusters is None:
        raise UsageError(f"{policy.name} needs clusters; read the history with clusters=True")
    if "words" in needed and history.words is None:
        raise UsageError(f"{policy.name} needs words; read the history with words=True")


class Web:
    """The history as a world. Call `begin`, `visit` and `recorded` for one cycle after another."""

    def __init__(self, history: History, setup: Setup) -> None:
        self.timeline = Timeline(history)
        self.meter = Meter(history, setup.cycles, weighted=setup.weighted)
        self._setup = setup
        self._history = history
        self._step = setup.cycle / setup.samples
        self._next_sample = self._step / 2
        self._rng = np.random.default_rng([setup.seed, 7])
        self._start = 0.0
        self._made = 0
        self._seen: list[tuple[Pages, NDArray[np.int8], float]] = []
        self._link_lists = np.zeros(0, np.int32)
        with_hints = setup.hints or LIES in history.facts
        self._hints = hint_source(history, setup.hints, setup.seed) if with_hints else None
        self._copies = KnownCopies(history) if setup.copies else None
        self._new_links: NewLinks | None = None
        self._wordy = False
        self._linked = np.ones(len(history), bool)
        self._found = np.zeros(len(history), bool)
        if setup.discover == "crawl":
            self.timeline.forget(_not_start_pages(history, self.timeline))
        if setup.discover != "births":
            self._linked = self.timeline.held != ABSENT
            self._follow_links(np.flatnonzero(self._linked))

    def first_book(self) -> Book:
        """Return the book at time 0."""
        history, timeline = self._history, self.timeline
        book = Book.blank(len(history), now=0.0)
        book.site[:] = history.site
        book.folder[:] = history.folder
        book.folders = history.folders
        book.depth[:] = history.folders.level[history.folder]
        book.found[:] = history.time[history.first[:-1]]
        there = timeline.held != ABSENT
        book.known[:] = there
        book.visits[there] = book.changes[there] = 1
        book.last_try[there] = book.last_visit[there] = book.last_change[there] = 0.0
        book.size[there] = history.size[timeline.held_row[there]]
        book.clusters = history.clusters
        book.form = history.form
        book.prior = history.prior
        if self._setup.weighted and history.weight is not None:
            book.weight = normalise(history.weight)[0]
        return book

    def begin(self, k: int, book: Book, needs: frozenset[str]) -> None:
        """Advance to cycle k and update the book."""
        self._start = book.now = k * self._setup.cycle
        self._made = 0
        self._advance(self._start)
        if self._hints and ("hints" in needs or self._setup.discover != "births"):
            hints = self._hints.read(book.now, book.last_visit)
            self._linked[self._hints.listed()] = True
            book.hints = hints if "hints" in needs else None
        known = self.timeline.there & self._linked
        if self._copies is not None:
            known &= self._copies.due(book, self.timeline.held)
        if self._setup.discover != "births":
            book.found[known & (book.visits == 0) & ~self._found] = book.now
            self._found |= known
        book.known[:] = known
        if self._setup.cost == "bytes":
            book.cost = costs(book.size)
        if "forms" in needs and book.index is None:
            book.index = index_pages(self._history.urls)
        if "arrivals" in needs:
            self._count_links(book)
        if "links" in needs:
            self._show_links(book)
        self._wordy = "words" in needs

    def visit(self, picks: Picks) -> Outcomes:
        """Visit pages, each at its time within the cycle."""
        parts = [self._download(pages, at) for pages, at in self._by_time(picks.pages)]
        what = parts[0] if len(parts) == 1 else np.concatenate(parts)
        received = None
        if self._setup.bytes:
            size = self._history.size[self.timeline.held_row[picks.pages]]
            received = np.where(what == Outcome.FAILED, 0, size).astype(np.int64)
        return Outcomes(picks.pages, what, received)

    def recorded(self, book: Book) -> Iterator[Recorded]:
        """Yield all visits of the cycle; after the policy has learned, set the page sizes in the book."""
        pages, what, at = zip(*self._seen, strict=True) if self._seen else ((), (), ())
        self._seen = []
        self.meter.close(self.timeline)
        empty = np.zeros(0)
        seen = Outcomes(
            np.concatenate([empty.astype(np.int64), *pages]), np.concatenate([empty.astype(np.int8), *what])
        )
        read = seen.pages[seen.answered]
        if self._wordy and self._history.words is not None:
            there = np.sort(read[seen.what[seen.answered] != Outcome.GONE])
            book.words = self._history.words.of(there, self.timeline.held_row[there])
        yield Recorded(book, seen, np.repeat(np.array(at, np.float64), list(map(len, pages))))
        book.words = None
        book.size[read] = self._history.size[self.timeline.held_row[read]]

    def finish(self) -> None:
        """Advance to the end of the last cycle, if its visits were spread over it."""
        if self._setup.at_start < 1:
            self._advance(self._start + self._setup.cycle)

    def _by_time(self, pages: Pages) -> list[tuple[Pages, float]]:
        """Group the pages by the time of their visit; return the groups and their times."""
        if self._setup.at_start == 1:
            return [(pages, self._start)]
        offsets = self._setup.offsets(self._made, len(pages))
        starts = np.flatnonzero(np.diff(offsets, prepend=-1.0))
        return list(zip(np.split(pages, starts[1:]), (self._start + offsets[starts]).tolist(), strict=True))

    def _download(self, pages: Pages, at: float) -> NDArray[np.int8]:
        """Visit pages at one time; return their outcomes."""
        setup = self._setup
        self._advance(at)
        succeeds = self._rng.random(len(pages)) >= setup.failures if setup.failures else None
        answered = pages if succeeds is None else pages[succeeds]
        delay = self.timeline.now - self.timeline.since[answered]
        held = self.timeline.held_row[answered] if self._new_links is not None else answered
        what = found = self.timeline.visit(answered)
        if succeeds is not None:
            what = np.full(len(pages), Outcome.FAILED, np.int8)
            what[succeeds] = found
        if self._new_links is not None:
            self._new_links.add(answered, held, self.timeline.held_row[answered], found)
        self.meter.count(pages, what, answered, delay, self.timeline.now)
        if setup.discover != "births":
            self._follow_links(answered)
        self._made += len(pages)
        self._seen.append((pages, what, self.timeline.now))
        return what

    def _advance(self, to: float) -> None:
        """Advance to a time, sampling freshness and age on the way."""
        while self._next_sample <= to:
            self.timeline.advance(self._next_sample)
            self.meter.sample(self.timeline)
            self._next_sample += self._step
        self.timeline.advance(to)

    def _show_links(self, book: Book) -> None:
        """Set the links of the versions in the repository; rebuild them only if one has changed."""
        links = self._history.links
        assert links is not None
        lists = np.where(self.timeline.held_row >= 0, links.of_row[self.timeline.held_row], -1).astype(np.int32)
        if not np.array_equal(lists, self._link_lists):
            self._link_lists = lists
            book.links = links.at(lists)

    def _count_links(self, book: Book) -> None:
        """Set the new links that changes have brought, counted from the first cycle on."""
        if self._new_links is None:
            self._new_links = NewLinks(self._history)
        book.arrivals = self._new_links.arrivals()

    def _follow_links(self, pages: Pages) -> None:
        """Make the targets of the pages' links known."""
        links = self._history.links
        assert links is not None
        rows = self.timeline.row[pages]
        self._linked[links.at(links.of_row[rows[rows >= 0]]).target] = True


def _not_start_pages(history: History, timeline: Timeline) -> Pages:
    """Return the pages at time 0 but the one of each site with the shortest path, of equals the first."""
    pages = np.flatnonzero(timeline.held != ABSENT)
    level = history.folders.level[history.folder[pages]]
    order = pages[np.lexsort((pages, level, history.site[pages]))]
    return np.sort(order[np.diff(history.site[order], prepend=-1) == 0])
