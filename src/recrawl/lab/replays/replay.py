"""A policy against a history: the same loop as live, with an archive for a web.

Cycle k = 1, 2, ... takes place at time k · cycle of every site's own clock. Pages that are there at time 0 are in the
repository from the start. A page that is born later becomes known at its birth, as from a sitemap, or when a page
that was visited links to it. A visit compares what is there with what the repository holds, so changes since the
last visit count as one, and a change that was taken back counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recrawl.book import Book
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.budget.budgeted import Budgeted
from recrawl.choose.protocol import Policy, needs_of
from recrawl.errors import UsageError
from recrawl.lab.histories.history import ABSENT, History
from recrawl.lab.replays.metrics import Meter, Record
from recrawl.lab.replays.new_links import NewLinks
from recrawl.lab.replays.simulated_hints import Source, check_source
from recrawl.lab.replays.timeline import Timeline
from recrawl.learn.value.importance import COSTS, costs, normalise
from recrawl.loop import Recorded, run_cycle
from recrawl.model import Outcome, Outcomes, Pages, Picks

_SLOTS = 24
"""Visits that are spread over a cycle are made at so many times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a history is replayed. Times are in seconds."""

    budget: int
    bytes: float = 0.0
    """Bytes that a cycle may receive: every visit brings the whole page. 0 is no limit."""
    cycle: float
    cycles: int
    seed: int = 1
    at_start: float = 1.0
    """The share of a cycle's visits made at its start; the rest is spread evenly over it (spec P1)."""
    failures: float = 0.0
    """The share of visits that fail."""
    late: float = 0.0
    """The share of answers that come when the policy has finished its cycle: it learns of them only then."""
    discover: str = "births"
    """How pages born later become known: `births`, or `links` from visited pages."""
    hints: str = ""
    """A source of hints, as `sitemap:honest` (see `lab.hinting`); none if empty."""
    weighted: bool = False
    """Whether policies are told how much pages matter; what is measured by weight is so in any case."""
    cost: str = "visit"
    """What a visit costs: all the same, or `bytes` by the page's size."""
    samples: int = 8
    """How often freshness and age are looked at within a cycle."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"a seed is zero or more, not {self.seed}")
        if self.samples < 1:
            raise UsageError("freshness and age must be looked at once a cycle at least")
        if self.budget < 0:
            raise UsageError(f"a budget is zero or more visits a cycle, not {self.budget}")
        if not self.bytes >= 0:
            raise UsageError(f"a cycle's bytes are zero or more, not {self.bytes}")
        if self.cycles < 1 or not 0 < self.cycle < float("inf"):
            raise UsageError("a replay needs at least one cycle, and a cycle that lasts")
        for name in ("at_start", "failures", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} is a share from 0 to 1, not {getattr(self, name)}")
        if self.cost not in COSTS:
            raise UsageError(f"a visit's cost is {' or '.join(COSTS)}, not '{self.cost}'")
        if self.discover not in ("births", "links"):
            raise UsageError(f"pages are discovered by births or links, not '{self.discover}'")
        if self.hints:
            check_source(self.hints)

    def waits(self, made: int, count: int) -> NDArray[np.float64]:
        """How long after the cycle's start the next visits take place, when so many have been made."""
        if self.at_start == 1:
            return np.zeros(count)
        place = (made + np.arange(count)) / max(1, self.budget)
        late = np.maximum(0.0, place - self.at_start) / (1 - self.at_start)
        return np.floor(late * _SLOTS) / _SLOTS * self.cycle

    def moments(self, pages: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """All times at which visits can be made, and how many at each; no page comes twice in a cycle."""
        visits = min(self.budget, pages)
        waits, room = np.unique(self.waits(0, max(1, visits)), return_counts=True)
        starts = np.arange(1, self.cycles + 1) * self.cycle
        return np.add.outer(starts, waits).ravel(), np.tile(room if visits else room * 0, self.cycles)


def replay(history: History, policy: Policy, setup: Setup, progress: Callable[[int], None] = lambda _: None) -> Record:
    """Drive the policy through all cycles; `progress` is told the number of each that is done."""
    check(history, policy, setup)
    web = Web(history, setup)
    book = web.first_book()
    chooser = Budgeted(policy, Allowance(bytes=setup.bytes)) if setup.bytes else policy
    needs = needs_of(policy)
    for k in range(1, setup.cycles + 1):
        web.begin(k, book, needs)
        run_cycle(policy, chooser, web, book, setup.budget, setup.seed * 1_000_003 + k, partial(web.recorded, book))
        progress(k)
    web.run_out()
    return web.meter.record()


def check(history: History, policy: Policy, setup: Setup) -> None:
    """Raise a UsageError if the history lacks something that the policy or the setup needs."""
    # The setup provides the hints, not the history.
    needed = (needs_of(policy) - {"hints"}) | ({"links"} if setup.discover == "links" else set())
    lacking = sorted(needed - history.carries)
    if lacking:
        raise UsageError(
            f"{policy.name} needs {' and '.join(lacking)}, but this archive carries only "
            f"{', '.join(sorted(history.carries))}"
        )
    if "clusters" in needed and history.clusters is None:
        raise UsageError(f"{policy.name} needs clusters; read the history with clusters=True")


class Web:
    """The history as a world. One cycle after another: `begin`, visits, `recorded`."""

    def __init__(self, history: History, setup: Setup) -> None:
        self.tape = Timeline(history)
        self.meter = Meter(history, setup.cycles, setup.budget, weighted=setup.weighted)
        self._setup = setup
        self._history = history
        self._step = setup.cycle / setup.samples
        self._next_sample = self._step / 2
        self._rng = np.random.default_rng([setup.seed, 7])
        self._first = 0.0
        self._made = 0
        self._seen: list[tuple[Pages, NDArray[np.int8], NDArray[np.float64]]] = []
        self._lists = np.zeros(0, np.int32)
        self._source = Source(history, setup.hints, setup.seed) if setup.hints else None
        self._brought: NewLinks | None = None
        self._linked = np.ones(len(history), bool)
        if setup.discover == "links":
            self._linked = self.tape.version != ABSENT
            self._follow(np.flatnonzero(self._linked))

    def first_book(self) -> Book:
        """What is known at the start."""
        history, tape = self._history, self.tape
        book = Book.blank(len(history), now=0.0)
        book.site[:] = history.site
        book.folder[:] = history.folder
        book.folders = history.folders
        book.depth[:] = history.folders.level[history.folder]
        book.found[:] = history.time[history.first[:-1]]
        there = tape.held != ABSENT
        book.known[:] = there
        book.visits[there] = book.changes[there] = 1
        book.last_try[there] = book.last_visit[there] = book.last_change[there] = 0.0
        book.size[there] = history.size[tape.held_row[there]]
        book.clusters = history.clusters
        book.form = history.form
        if self._setup.weighted and history.weight is not None:
            book.weight = normalise(history.weight)[0]
        return book

    def begin(self, k: int, book: Book, needs: frozenset[str]) -> None:
        """Let time pass until cycle k, and tell the book what there is."""
        self._first = book.now = k * self._setup.cycle
        self._made = 0
        self._pass(self._first)
        np.logical_and(self.tape.there, self._linked, out=book.known)
        if self._setup.cost == "bytes":
            book.cost = costs(book.size)
        if "arrivals" in needs:
            self._count_links(book)
        if "links" in needs:
            self._show_links(book)
        if self._source and "hints" in needs:
            book.hints = self._source.read(book.now, book.last_visit)

    def visit(self, picks: Picks) -> Outcomes:
        """Visit pages, at their turn in the cycle."""
        what = np.concatenate([self._download(pages, at) for pages, at in self._turns(picks.pages)])
        received = None
        if self._setup.bytes:
            size = self._history.size[self.tape.held_row[picks.pages]]
            received = np.where(what == Outcome.FAILED, 0, size).astype(np.int64)
        if self._setup.late:
            what = np.where(self._rng.random(len(what)) < self._setup.late, np.int8(Outcome.FAILED), what)
        return Outcomes(picks.pages, what, received)

    def recorded(self, book: Book) -> Iterator[Recorded]:
        """All visits of the cycle; when the policy has learned from them, the book gets the sizes of the pages."""
        pages, what, at = zip(*self._seen, strict=True) if self._seen else ((), (), ())
        self._seen = []
        self.meter.close()
        empty = np.zeros(0)
        seen = Outcomes(
            np.concatenate([empty.astype(np.int64), *pages]), np.concatenate([empty.astype(np.int8), *what])
        )
        yield Recorded(book, seen, np.concatenate([empty, *at]))
        read = seen.pages[seen.answered]
        book.size[read] = self._history.size[self.tape.held_row[read]]

    def run_out(self) -> None:
        """Let time pass until the last cycle is over, where visits were spread over it."""
        if self._setup.at_start < 1:
            self._pass(self._first + self._setup.cycle)

    def _turns(self, pages: Pages) -> list[tuple[Pages, float]]:
        """The pages in groups that are visited at one time, and the times."""
        if self._setup.at_start == 1:
            return [(pages, self._first)]
        waits = self._setup.waits(self._made, len(pages))
        starts = np.flatnonzero(np.diff(waits, prepend=-1.0))
        return list(zip(np.split(pages, starts[1:]), (self._first + waits[starts]).tolist(), strict=True))

    def _download(self, pages: Pages, at: float) -> NDArray[np.int8]:
        setup = self._setup
        self._pass(at)
        answers = self._rng.random(len(pages)) >= setup.failures if setup.failures else slice(None)
        asked = pages[answers]
        waited = self.tape.now - self.tape.since[asked]
        what = np.full(len(pages), Outcome.FAILED, np.int8)
        held = self.tape.held_row[asked] if self._brought is not None else asked
        what[answers] = self.tape.visit(asked)
        if self._brought is not None:
            self._brought.take(asked, held, self.tape.held_row[asked], what[answers])
        self.meter.count(pages, what, asked, waited, self.tape)
        if setup.discover == "links":
            self._follow(asked)
        self._made += len(pages)
        self._seen.append((pages, what, np.full(len(pages), self.tape.now)))
        return what

    def _pass(self, to: float) -> None:
        """Move on in time, looking at freshness on the way."""
        while self._next_sample <= to:
            self.tape.advance(self._next_sample)
            self.meter.look(self.tape)
            self._next_sample += self._step
        self.tape.advance(to)

    def _show_links(self, book: Book) -> None:
        """The links of the versions that the repository holds; made anew only when one of them has changed."""
        links = self._history.links
        assert links is not None
        lists = np.where(self.tape.held_row >= 0, links.of_row[self.tape.held_row], -1).astype(np.int32)
        if not np.array_equal(lists, self._lists):
            self._lists = lists
            book.links = links.at(lists)

    def _count_links(self, book: Book) -> None:
        """What changes have brought in new links so far; counted from the first cycle on."""
        if self._brought is None:
            self._brought = NewLinks(self._history)
        book.arrivals = self._brought.arrivals()

    def _follow(self, pages: Pages) -> None:
        links = self._history.links
        assert links is not None
        rows = self.tape.row[pages]
        self._linked[links.at(links.of_row[rows[rows >= 0]]).target] = True
