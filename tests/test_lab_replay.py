"""Replays of histories: against a slow second replay, against the best that can be done, and worked out by hand.

The slow replay (`Slowly`) is written from the description alone, with dictionaries and loops: what is on a page at a
time is looked up in its list of rows, whenever somebody asks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.book import Book, Clusters
from recrawl.choose import make_policy
from recrawl.choose.protocol import Choice, Learner, Policy, needs_of
from recrawl.errors import UsageError
from recrawl.lab.histories.history import ABSENT, History, LinkLists, assemble
from recrawl.lab.histories.opening import open_history
from recrawl.lab.replays.clairvoyant import Clairvoyant, upper_bound
from recrawl.lab.replays.metrics import Record
from recrawl.lab.replays.replay import Setup, replay
from recrawl.lab.replays.runner import Trial, run_all
from recrawl.lab.synth import SyntheticWorld, write
from recrawl.model import Outcome, Outcomes, Pages, Picks
from tests.test_policies import TEXTS, for_each

DAY = 86400.0
NEVER = -math.inf


# -- histories as plain lists ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """From `time` on a page is in this version; None: it is not there."""

    time: float
    version: int | None
    size: int = 0
    links: tuple[int, ...] = ()


@dataclass(frozen=True)
class Page:
    site: int
    rows: tuple[Row, ...]


Plain = list[Page]
BEGINS = (1000.0, 55.0, 7e8)
"""When the sites' clocks begin, in seconds since 1970."""


def history_of(plain: Plain, **more: Any) -> History:
    """The same as columns; each site's times are moved to a time of its own."""
    rows = [(number, row, BEGINS[page.site]) for number, page in enumerate(plain) for row in page.rows]
    lists = [row.links for _, row, _ in rows]
    return assemble(
        [f"http://s{page.site}.example/{number % 3}/{number}" for number, page in enumerate(plain)],
        np.array([number for number, _, _ in rows]),
        np.array([begin + row.time for _, row, begin in rows]),
        np.array([ABSENT if row.version is None else row.version for _, row, _ in rows]),
        change="text",
        carries=frozenset(),
        size=np.array([row.size for _, row, _ in rows]),
        links=LinkLists(
            np.arange(len(rows), dtype=np.int32),
            np.cumsum([0, *map(len, lists)]),
            np.array([target for links in lists for target in links], np.int32),
        ),
        **more,
    )


@st.composite
def plains(draw: Callable[..., Any], returning: bool = True) -> Plain:
    """Pages that are born, change, change back, go and come back; with links that change too."""
    pages = draw(st.integers(1, 7))
    links = st.lists(st.integers(0, pages - 1), max_size=3, unique=True).map(tuple)
    found = []
    for _ in range(pages):
        times = sorted(
            draw(st.sets(st.integers(0, 60), min_size=1, max_size=6)) | ({0} if draw(st.booleans()) else set())
        )
        if returning:
            versions = [draw(st.sampled_from([None, 1, 2, 3])) for _ in times]
        else:
            versions = list(range(len(times)))
            if times[0] == 0 and len(times) > 1 and draw(st.booleans()):
                versions[draw(st.integers(1, len(times) - 1))] = None
        rows = [
            Row(time, version, draw(st.integers(0, 9)) if version is not None else 0, draw(links))
            for time, version in zip(times, versions, strict=True)
        ]
        found.append(Page(draw(st.integers(0, 2)), tuple(rows)))
    return started(found)


def started(plain: Plain) -> Plain:
    """Every site's clock put to zero at its first row."""
    first = {
        page.site: min(row.time for other in plain if other.site == page.site for row in other.rows) for page in plain
    }
    return [
        replace(page, rows=tuple(replace(row, time=row.time - first[page.site]) for row in page.rows)) for page in plain
    ]


setups = st.builds(
    Setup,
    budget=st.integers(0, 8),
    cycle=st.sampled_from([8.0, 16.0, 24.0]),
    cycles=st.integers(1, 6),
    seed=st.integers(0, 99),
    at_start=st.sampled_from([1.0, 1.0, 0.5, 0.0]),
    failures=st.sampled_from([0.0, 0.0, 0.3]),
    discover=st.sampled_from(["births", "links", "crawl"]),
)


# -- the slow replay ------------------------------------------------------------------------------------------------


@dataclass
class Slowly:
    """A replay of visits that somebody has chosen: for each cycle, pages in order, and whether each visit failed."""

    plain: Plain
    setup: Setup
    held: dict[int, int | None] = field(default_factory=dict)
    synced: dict[int, float] = field(default_factory=dict)
    linked: set[int] = field(default_factory=set)
    counts: list[tuple[int, int, int, int]] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    age: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    site_visits: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for page in range(len(self.plain)):
            self.held[page], self.synced[page] = self.web(page, 0.0), 0.0
        if self.setup.discover == "crawl":  # all paths have one length, so each site begins with its first page
            there = [page for page, version in self.held.items() if version is not None]
            first = {self.plain[page].site: page for page in reversed(there)}
            for page in set(there) - set(first.values()):
                self.held[page], self.synced[page] = None, -1.0
        for page, version in self.held.items():
            if version is not None:
                self.follow(page, 0.0)
        self.linked |= {page for page in self.held if self.held[page] is not None}
        half = self.setup.cycle / self.setup.samples / 2
        whole = self.setup.cycles + (1 if self.setup.at_start < 1 else 0)
        self.looks = [(2 * n + 1) * half for n in range(whole * self.setup.samples)]

    def row(self, page: int, at: float) -> Row | None:
        rows = [row for row in self.plain[page].rows if row.time <= at]
        return rows[-1] if rows else None

    def web(self, page: int, at: float) -> int | None:
        row = self.row(page, at)
        return row.version if row else None

    def follow(self, page: int, at: float) -> None:
        row = self.row(page, at)
        self.linked |= set(row.links) if row else set()

    def known(self, at: float) -> set[int]:
        there = {page for page in self.held if self.held[page] is not None or self.web(page, at) is not None}
        return there if self.setup.discover == "births" else there & self.linked

    def parted(self, page: int, at: float) -> float | None:
        """Since when the web is another than what is held; None if it is not."""
        since = None
        for row in self.plain[page].rows:
            if self.synced[page] < row.time <= at:
                if row.version == self.held[page]:
                    since = None
                elif since is None:
                    since = row.time
        return since

    def look(self, until: float) -> None:
        while self.looks and self.looks[0] <= until:
            at = self.looks.pop(0)
            there = [page for page in self.held if self.held[page] is not None or self.web(page, at) is not None]
            stale = [since for page in there if (since := self.parted(page, at)) is not None]
            if there:
                self.fresh.append(1 - len(stale) / len(there))
                self.age.append(sum(at - since for since in stale) / len(there) / DAY)

    def cycle(self, k: int, choices: list[tuple[int, bool]]) -> None:
        start, share = k * self.setup.cycle, self.setup.at_start
        self.look(start)
        assert {page for page, _ in choices} <= self.known(start)
        found = size = failures = 0
        for turn, (page, failed) in enumerate(choices):
            wait = 0.0
            if share < 1:
                wait = math.floor(max(0.0, turn / self.setup.budget - share) / (1 - share) * 24) / 24 * self.setup.cycle
            at = start + wait
            self.look(at)
            site = self.plain[page].site
            self.site_visits[site] = self.site_visits.get(site, 0) + 1
            if failed:
                failures += 1
                continue
            since, now = self.parted(page, at), self.row(page, at)
            assert now is not None
            if now.version != self.held[page]:
                assert since is not None
                found += 1
                self.delays.append(at - since)
            size += now.size
            self.held[page], self.synced[page] = now.version, at
            self.follow(page, at)
        self.counts.append((len(choices), found, failures, size))

    def agrees(self, record: Record) -> None:
        """Compare all figures."""
        visits, found, failed, size = zip(*self.counts, strict=True)
        assert record.visits.tolist() == list(visits)
        assert record.found.tolist() == list(found)
        assert record.failed.tolist() == list(failed)
        assert record.bytes.tolist() == list(size)
        ratios = [f / v if v else math.nan for f, v in zip(found, visits, strict=True)]
        np.testing.assert_array_equal(record.change_ratios, ratios)
        np.testing.assert_allclose(record.freshness, self.fresh, rtol=0, atol=1e-12)
        np.testing.assert_allclose(record.age, self.age, rtol=0, atol=1e-12)
        delay = sum(self.delays) / len(self.delays) / DAY if self.delays else math.nan
        np.testing.assert_allclose(record.delay, delay, rtol=1e-12)
        sites = list(dict.fromkeys(page.site for page in self.plain))
        assert record.site_visits.tolist() == [self.site_visits.get(site, 0) for site in sites]


class Watched:
    """A policy whose choices are kept, cycle by cycle, with whether each visit failed."""

    name: ClassVar[str] = "watched"
    source: ClassVar[str] = "this test"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, policy: Policy) -> None:
        assert not policy.needs
        self.policy = policy
        self.cycles: list[list[tuple[int, bool]]] = []
        self.learned: list[Outcomes] = []
        self.told: list[list[int]] = []

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        self.cycles.append([])
        self.told.append([])
        choice = self.policy.cycle(book, budget, rng)
        try:
            picks = next(choice)
            while True:
                seen = yield picks
                self.told[-1] += seen.what.tolist()
                picks = choice.send(seen)
        except StopIteration:
            return

    def learn(self, book: Book, seen: Outcomes, at: Any) -> None:
        failed = (seen.what == Outcome.FAILED).tolist()
        self.cycles[-1] += zip(seen.pages.tolist(), failed, strict=True)
        self.learned.append(seen)
        if isinstance(self.policy, Learner):
            self.policy.learn(book, seen, at)

    @property
    def pages(self) -> list[list[int]]:
        return [[page for page, _ in cycle] for cycle in self.cycles]


class Scripted:
    """Visits the pages that it was told, cycle by cycle."""

    name: ClassVar[str] = "scripted"
    source: ClassVar[str] = "this test"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *batches: list[int]) -> None:
        self.batches = list(batches)

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        pages = np.array(self.batches.pop(0), np.int64)
        yield Picks(pages, np.ones(len(pages)), "told so")


@settings(deadline=None)
@given(plains(), setups)
def test_round_robin_is_as_in_the_slow_replay(plain: Plain, setup: Setup) -> None:
    """The slow one chooses by itself: the pages whose last try is longest ago, of equals those tried less often."""
    setup = replace(setup, failures=0.0)
    slow = Slowly(plain, setup)
    tried = {page: 0.0 if slow.held[page] is not None else NEVER for page in slow.held}
    counts = Counter(page for page in slow.held if slow.held[page] is not None)
    found = {page: row.rows[0].time if setup.discover == "births" else NEVER for page, row in enumerate(plain)}
    for k in range(1, setup.cycles + 1):
        slow.look(k * setup.cycle)
        known = slow.known(k * setup.cycle)
        found.update({page: k * setup.cycle for page in known if found[page] == NEVER})
        waiting = sorted(known, key=lambda page: (max(tried[page], found[page] - 1e9), counts[page], page))
        chosen = waiting[: setup.budget]
        slow.cycle(k, [(page, False) for page in chosen])
        waits = setup.offsets(0, len(chosen)).tolist()
        counts.update(chosen)
        tried.update({page: k * setup.cycle + wait for page, wait in zip(chosen, waits, strict=True)})
    slow.look(math.inf)
    slow.agrees(replay(history_of(plain), make_policy("round-robin"), setup))


@settings(deadline=None)
@given(plains(), setups)
def test_random_choices_come_to_the_same_in_the_slow_replay(plain: Plain, setup: Setup) -> None:
    policy = Watched(make_policy("random"))
    record = replay(history_of(plain), policy, setup)
    slow = Slowly(plain, setup)
    for k, choices in enumerate(policy.cycles, 1):
        slow.look(k * setup.cycle)
        assert len(choices) == min(setup.budget, len(slow.known(k * setup.cycle))), "all that is known, and no more"
        slow.cycle(k, choices)
    slow.look(math.inf)
    slow.agrees(record)


# -- the bound ------------------------------------------------------------------------------------------------------


def stretches(plain: Plain, moments: list[float]) -> list[set[int]]:
    """The moments at which each stretch between two changes can be found."""
    found: list[set[int]] = []
    for page in plain:
        before = next((row.version for row in reversed(page.rows) if row.time <= 0), None)
        first = True
        for place, at in enumerate(moments):
            now = next((row.version for row in reversed(page.rows) if row.time <= at), None)
            if now != before:
                found.append(set())
                first = False
            if not first:
                found[-1].add(place)
            before = now
    return found


def matched(jobs: list[set[int]], room: list[int]) -> int:
    """The most jobs that fit: the largest matching of jobs and places, by augmenting paths."""
    taken: dict[tuple[int, int], int] = {}

    def place(job: int, tried: set[tuple[int, int]]) -> bool:
        for moment in jobs[job]:
            for seat in ((moment, n) for n in range(room[moment])):
                if seat not in tried:
                    tried.add(seat)
                    if seat not in taken or place(taken[seat], tried):
                        taken[seat] = job
                        return True
        return False

    return sum(place(job, set()) for job in range(len(jobs)))


@settings(deadline=None)
@given(plains(), setups)
def test_the_bound_is_the_largest_matching(plain: Plain, setup: Setup) -> None:
    moments, room = setup.moments(len(plain))
    jobs = stretches(plain, moments.tolist())
    assert upper_bound(history_of(plain), moments, room) == (matched(jobs, room.tolist()), len(jobs))


@settings(deadline=None)
@given(plains(returning=False), setups)
def test_the_clairvoyant_reaches_the_bound_where_nothing_returns(plain: Plain, setup: Setup) -> None:
    setup = replace(setup, at_start=1.0, failures=0.0, discover="births")
    history = history_of(plain)
    record = replay(history, Clairvoyant(history, setup.budget, setup.cycle, setup.cycles), setup)
    assert record.found.sum() == upper_bound(history, *setup.moments(len(history)))[0]


def test_a_bound_worked_out_by_hand() -> None:
    """Two pages change in every cycle, one only once: with one visit a cycle, three of seven can be found."""
    often = tuple(Row(10.0 * n, n) for n in range(4))
    plain = [Page(0, often), Page(0, often), Page(0, (Row(0, 1), Row(5, 2)))]
    setup = Setup(budget=1, cycle=10.0, cycles=3)
    assert upper_bound(history_of(plain), *setup.moments(3)) == (3, 7)
    assert upper_bound(history_of(plain), *replace(setup, budget=3).moments(3)) == (7, 7)


def test_changes_that_will_be_superseded_come_first() -> None:
    """All three have changed at the second cycle, the last of them again at the third: all four can be found."""
    once = Page(0, (Row(0, 1), Row(15, 2)))
    plain = [once, once, Page(0, (Row(0, 1), Row(15, 2), Row(25, 3)))]
    assert upper_bound(history_of(plain), *Setup(budget=2, cycle=10.0, cycles=3).moments(3)) == (4, 4)


def lively(seed: int, pages: int = 40, days: int = 10) -> History:
    """Pages in directories, clusters and links; some change daily, some never, some come and go."""
    rng = np.random.default_rng(seed)
    plain = []
    for page in range(pages):
        born = 0 if page < pages * 0.8 else int(rng.integers(1, days))
        rate = rng.choice([0.0, 0.1, 0.5, 2.0])
        times = np.unique(np.append(born, born + rng.integers(1, days * 4, rng.poisson(rate * days)) / 4))
        versions = rng.choice(np.array([1, 2, 3, 4, None]), len(times), p=[0.3, 0.3, 0.2, 0.15, 0.05])
        links = tuple(rng.integers(0, pages, 3).tolist())
        plain.append(
            Page(
                page % 3,
                tuple(
                    Row(at * DAY, version, 100 if version else 0, links)
                    for at, version in zip(times.tolist(), versions, strict=True)
                ),
            )
        )
    nearest = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]], np.int32)
    of = rng.integers(0, 3, pages).astype(np.int32)
    return history_of(started(plain), clusters=Clusters(of, nearest))


LIVELY = lively(1)
WORDLESS = [text for text in TEXTS if "words" not in needs_of(make_policy(text))]
"""Policies that need no words: this world has none."""


@pytest.mark.parametrize("at_start", [1.0, 0.25])
@for_each("text", [*WORDLESS, "clairvoyant"])
def test_no_policy_finds_more_than_the_bound(text: str, at_start: float) -> None:
    setup = Setup(budget=5, cycle=DAY, cycles=9, at_start=at_start, samples=1)
    policy = Clairvoyant(LIVELY, 5, DAY, 9) if text == "clairvoyant" else make_policy(text)
    record = replay(LIVELY, policy, setup)
    bound, there = upper_bound(LIVELY, *setup.moments(len(LIVELY)))
    assert 0 <= record.found.sum() <= bound <= there
    assert (record.visits <= 5).all()


def test_the_bound_is_near_the_clairvoyant_and_above_random() -> None:
    """It is neither out of reach nor trivial: the clairvoyant comes near it, chance does not."""
    setup = Setup(budget=5, cycle=DAY, cycles=9)
    bound, there = upper_bound(LIVELY, *setup.moments(len(LIVELY)))
    best = replay(LIVELY, Clairvoyant(LIVELY, 5, DAY, 9), setup).found.sum()
    assert bound < there
    assert 0.9 * bound <= best <= bound
    assert replay(LIVELY, make_policy("random"), setup).found.sum() < 0.8 * best


# -- single promises ------------------------------------------------------------------------------------------------


def still(pages: int, *more: Page) -> Plain:
    return [*(Page(0, (Row(0, 1),)) for _ in range(pages)), *more]


@pytest.mark.parametrize("order", ["fixed", "shuffled"])
@settings(deadline=None)
@given(pages=st.integers(1, 12), budget=st.integers(1, 14), failures=st.sampled_from([0.0, 1.0]))
def test_round_robin_visits_every_page_once_per_pass(order: str, pages: int, budget: int, failures: float) -> None:
    policy = Watched(make_policy(f"round-robin(order={order})"))
    passes = 3
    cycles = math.ceil(passes * pages / min(budget, pages))
    replay(history_of(still(pages)), policy, Setup(budget=budget, cycle=1.0, cycles=cycles, failures=failures))
    visits = [page for cycle in policy.pages for page in cycle]
    for turn in range(passes):
        assert sorted(visits[turn * pages : (turn + 1) * pages]) == list(range(pages))


@pytest.mark.parametrize(("order", "same"), [("fixed", True), ("shuffled", False)])
def test_the_batches_of_a_pass(order: str, same: bool) -> None:
    """In fixed order the pages that are visited together stay together; shuffled, every pass is another."""
    policy = Watched(make_policy(f"round-robin(order={order})"))
    replay(history_of(still(40)), policy, Setup(budget=10, cycle=1.0, cycles=12))
    batches = [frozenset(cycle) for cycle in policy.pages]
    first, second, third = (set(batches[turn : turn + 4]) for turn in (0, 4, 8))
    assert (first == second == third) is same
    if not same:
        assert not first & second
        assert not second & third


def test_a_new_page_joins_the_pass() -> None:
    policy = Watched(make_policy("round-robin(order=shuffled)"))
    replay(history_of(still(9, Page(0, (Row(1.5, 1),)))), policy, Setup(budget=2, cycle=1.0, cycles=10))
    visits = [page for cycle in policy.pages for page in cycle]
    assert sorted(visits[:10]) == sorted(visits[10:]) == list(range(10))


def test_only_the_shuffled_order_keeps_a_memory() -> None:
    assert [
        hasattr(make_policy(f"round-robin(order={order})"), "learn") for order in ("fixed", "random", "shuffled")
    ] == [
        False,
        False,
        True,
    ]


CHANGING = [Page(0, (Row(0, 1, 10), Row(5, 2, 20), Row(15, 3, 30)))]


def test_a_failed_visit_finds_nothing_and_changes_nothing() -> None:
    policy = Watched(Scripted([0], [0], [0]))
    record = replay(history_of(CHANGING), policy, Setup(budget=1, cycle=10.0, cycles=3, failures=1.0, samples=2))
    assert record.visits.tolist() == record.failed.tolist() == [1, 1, 1]
    assert record.found.sum() == record.bytes.sum() == 0
    assert math.isnan(record.delay)
    # It changes at 5 and is looked at at 2.5, 7.5, ...
    assert record.freshness.tolist() == [1, 0, 0, 0, 0, 0]
    assert (record.age * DAY).tolist() == pytest.approx([0, 2.5, 7.5, 12.5, 17.5, 22.5])
    assert all(seen.what.tolist() == [Outcome.FAILED] for seen in policy.learned)


def test_a_failure_does_not_affect_later_visits() -> None:
    """With three failures in ten some visits succeed, and find what there is."""
    policy = Watched(Scripted(*([0] for _ in range(20))))
    plain = [Page(0, tuple(Row(10.0 * n, n) for n in range(21)))]
    record = replay(history_of(plain), policy, Setup(budget=1, cycle=10.0, cycles=20, failures=0.3))
    assert 0 < record.failed.sum() < 20
    assert (record.found == 1 - record.failed).all()


def test_late_outcomes_come_with_a_later_batch() -> None:
    """Ten pages of one site, one after another: a fifth of the first batch comes with the second, in the same cycle."""

    class Halves(Scripted):
        def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
            for pages in (np.arange(10), np.arange(10, 20)):
                seen = yield Picks(pages, np.ones(10), "because", awaits=0.5)
                told.append(seen.pages.tolist())

    told: list[list[int]] = []
    pages = [Page(0, (Row(0.0, 0), Row(5.0, 1))) for _ in range(20)]
    setup = Setup(budget=20, cycle=10.0, cycles=1)
    record = replay(history_of(pages), Halves(), replace(setup, late=0.2))
    assert told == [list(range(8)), list(range(8, 20))]  # the budget is spent: the cycle waits for the rest
    assert record.found.tolist() == replay(history_of(pages), Halves(), setup).found.tolist() == [20]


class Reading(Scripted):
    """Keeps what the book says at the start of each cycle."""

    def __init__(self, *batches: list[int]) -> None:
        super().__init__(*batches)
        self.read: list[tuple[list[int], list[bool]]] = []

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        self.read.append((book.size.tolist(), book.known.tolist()))
        self.book = book
        yield from super().cycle(book, budget, rng)


def test_the_book_learns_sizes_from_answered_visits() -> None:
    """The last row of all belongs to another page: a failed first visit must not take its size for the page's."""
    plain = [Page(0, (Row(0, 1, 10), Row(5, 2, 20))), Page(0, (Row(5, 1, 33),)), Page(0, (Row(0, 1, 99),))]
    policy = Reading([0, 1], [])
    replay(history_of(plain), policy, Setup(budget=2, cycle=10.0, cycles=2))
    assert [size for size, _ in policy.read] == [[10, 0, 99], [20, 33, 99]]
    policy = Reading([0, 1], [])
    replay(history_of(plain), policy, Setup(budget=2, cycle=10.0, cycles=2, failures=1.0))
    assert policy.read[1][0] == [10, 0, 99]
    assert policy.book.failures.tolist() == [1, 1, 0]


def test_spread_visits_see_the_versions_of_their_own_times() -> None:
    """Four visits in a cycle of 24: at 24, 30, 36 and 42. Page 3 changes at 40 and goes on at 43."""
    plain = still(3, Page(0, (Row(0, 1), Row(40, 2), Row(43, 3))))
    found = []
    for pages in ([0, 1, 2, 3], [0, 1, 3, 2]):
        setup = Setup(budget=4, cycle=24.0, cycles=1, at_start=0.0)
        record = replay(history_of(plain), Scripted(pages), setup)
        found.append((int(record.found.sum()), round(record.delay * DAY, 9) if record.found.sum() else None))
    assert found == [(1, 2.0), (0, None)]
    assert setup.moments(4)[0].tolist() == [24, 30, 36, 42]
    assert replace(setup, at_start=0.5).moments(4)[0].tolist() == [24, 36]
    assert replace(setup, at_start=0.5).moments(4)[1].tolist() == [3, 1]


def test_links_make_pages_known_when_a_version_with_them_is_visited() -> None:
    """Page 1 is linked at the start. Page 2 is linked from 0's second version, and by page 3, which nobody links to."""
    plain = [
        Page(0, (Row(0, 1, links=(1,)), Row(5, 2, links=(2,)))),
        Page(0, (Row(5, 1),)),
        Page(0, (Row(5, 1),)),
        Page(0, (Row(5, 1, links=(2,)),)),
    ]
    policy = Reading([1], [0], [2], [])
    replay(history_of(plain), policy, Setup(budget=1, cycle=10.0, cycles=4, discover="links"))
    assert [known for _, known in policy.read] == [
        [True, True, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, False],
    ]
    policy = Reading([], [])
    replay(history_of(plain), policy, Setup(budget=1, cycle=10.0, cycles=2))
    assert all(all(known) for _, known in policy.read), "as from a sitemap"


ORDERS = ("breadth", "depth", "path", "importance")


def test_a_crawl_begins_with_start_pages_and_its_order_decides_what_it_finds() -> None:
    """0 links 1 and 2; 1 links 3; 2 links 4 and 5; 3 and 5 link 4. All have paths of one length."""
    links = {0: (1, 2), 1: (3,), 2: (4, 5), 3: (4,), 5: (4,)}
    plain = [Page(0, (Row(0, 1, links=links.get(page, ())),)) for page in range(6)]
    setup, visited = Setup(budget=1, cycle=10.0, cycles=5, discover="crawl"), {}
    for order in ("breadth", "depth"):
        policy = Watched(make_policy(f"explore(order={order})"))
        record = replay(history_of(plain), policy, setup)
        visited[order] = [page for cycle in policy.pages for page in cycle]
        assert record.found.tolist() == [1] * 5
        assert record.freshness[0] == pytest.approx(1 / 6), "only the start page is held"
    assert visited == {"breadth": [1, 2, 3, 4, 5], "depth": [1, 3, 4, 2, 5]}


def test_orders_of_a_crawl_differ(tmp_path: Path) -> None:
    world = SyntheticWorld(seed=2, sites=3, pages=60, days=30, links=6, size_min=1500, size_max=3000, births=0.05)
    write(world, tmp_path / "world.parquet")
    history = open_history([tmp_path / "world.parquet"])
    setup = Setup(budget=6, cycle=DAY, cycles=20, discover="crawl")
    found = {replay(history, make_policy(f"explore(order={order})"), setup).freshness.sum() for order in ORDERS}
    assert len(found) == len(ORDERS)
    row = run_all(history, [Trial("explore", setup)], float)[0]
    assert row["share_of_clairvoyant"] is None, "no bound is known"
    with pytest.raises(UsageError, match="clairvoyant needs a repository"):
        run_all(history, [Trial("clairvoyant", setup)], float)


def test_links_are_followed_where_the_text_stays_the_same() -> None:
    plain = [Page(0, (Row(0, 1), Row(5, 1, links=(1,)))), Page(0, (Row(5, 1),))]
    policy = Reading([0], [1])
    assert replay(history_of(plain), policy, Setup(budget=1, cycle=10.0, cycles=2, discover="links")).found.sum() == 1


def test_a_reverted_change_is_not_counted() -> None:
    """And a page that goes back and away again between two looks has parted anew."""
    back = [Page(0, (Row(0, 1), Row(3, 2), Row(7, 1)))]
    assert replay(history_of(back), Scripted([0]), Setup(budget=1, cycle=10.0, cycles=1)).found.sum() == 0
    again = [Page(0, (Row(0, 1), Row(1, 2), Row(6, 1), Row(9, 2)))]
    record = replay(history_of(again), Scripted([0]), Setup(budget=1, cycle=10.0, cycles=1, samples=1))
    assert record.delay * DAY == pytest.approx(1.0)


# -- the measures, worked out by hand -------------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    """Two sites; a changes at 0.5 and 1.5 d, b goes at 1.25 d, c is born at 0.75 d, d (the other site) stays."""
    a = Page(0, (Row(0, 1, 10), Row(0.5 * DAY, 2, 20), Row(1.5 * DAY, 3, 30)))
    b = Page(0, (Row(0, 1, 40), Row(1.25 * DAY, None)))
    c = Page(0, (Row(0.75 * DAY, 1, 50),))
    d = Page(1, (Row(0, 1, 7),))
    history = history_of([a, b, c, d], weight=np.array([2.0, 1.0, 0.5, 0.5]))
    setup = Setup(budget=2, cycle=DAY, cycles=3, samples=2)
    record = replay(history, Scripted([0, 3], [0, 2], [2]), setup)
    told = record.summary()
    assert told["visits"] == 5
    assert told["found"] == 3
    assert told["change_ratio_by_cycle"] == [1 / 2, 2 / 2, 0 / 1]
    assert told["change_ratio"] == pytest.approx(0.5)  # M1
    assert told["weighted_change_ratio"] == pytest.approx((2 / 2 + 2.5 / 2 + 0) / 3)  # M2
    # M3, looked at at 0.25, 0.75, ... d. Stale are: none; a, c; b, c; a, b, c; b; b; of 3 pages, then of 4.
    assert record.freshness.tolist() == [1, 0.5, 0.5, 0.25, 0.75, 0.75]
    assert told["freshness"] == pytest.approx(0.625)
    # M4: a for 0.25; c for 0.5; a for 0.25, b for 0.5, c for 1; b for 1; b for 1.5 days
    assert record.age.tolist() == pytest.approx([0, 0.25 / 4, 0.5 / 4, 1.75 / 4, 1 / 4, 1.5 / 4])
    assert told["age_days"] == pytest.approx(1.25 / 6)
    assert told["success_rate"] == pytest.approx(3 / 5)  # M5
    assert told["delay_days"] == pytest.approx((0.5 + 0.5 + 1.25) / 3)  # M6
    assert told["delay_days_of_all"] == pytest.approx((0.5 + 0.5 + 1.25 + 1.75) / 4)  # b, gone for 1.75 days, too
    assert told["needless"] == 2
    assert told["embarrassment"] is None
    # M7: in 3 cycles a changed twice, b once, d never; c does not count. a was visited at 1 and 2 days and found
    # changed both times, b never visited again: it has the mean rate of the others; d was visited once, unchanged.
    rate_a, rate_d = -math.log(0.5 / 2.5), max(-math.log(1.5 / 1.5), 0.5 / 1)
    rate_b = (rate_a + rate_d + page_rate_of_c()) / 3
    real = [(2 / 3 + 1 / 3) / 2, 0.0]
    estimated = [(2 - math.exp(-rate_a) - math.exp(-rate_b)) / 2, 1 - math.exp(-rate_d)]
    wrong = [abs(a - b) for a, b in zip(real, estimated, strict=True)]
    assert told["rate_accuracy"] == pytest.approx(100 - 100 * sum(wrong) / 2)
    assert [(row["visits"], row["found"], row["bytes"]) for row in told["load"]] == [(4, 3, 150), (1, 0, 7)]
    assert told["load"][0]["visits_per_hour"] == told["busiest_visits_per_hour"] == pytest.approx(4 / 72)
    assert told["load"][0]["bytes_per_hour"] == told["busiest_bytes_per_hour"] == pytest.approx(150 / 72)
    assert record.site_visits.tolist() == [4, 1]  # M9
    assert record.site_found.tolist() == [3, 0]
    assert record.site_bytes.tolist() == [20 + 30 + 50 + 50, 7]
    assert record.bytes.tolist() == [27, 80, 50]
    assert told["bytes"] == 157
    bound, there = upper_bound(history, *setup.moments(4))
    assert (bound, there) == (4, 4)  # M10 and M11: recall and share are 3/4


def page_rate_of_c() -> float:
    """Page c, found at 0.75 days, first downloaded at 2 days, unchanged at 3: at least half a change in 2.25 days."""
    return max(-math.log(1.5 / 1.5), 0.5 / 2.25)


def test_embarrassment_is_the_share_of_requests_that_get_an_outdated_copy() -> None:
    """Page a (weight 3 of 4) is out of date from 0.5 days on and visited at 1 day; page b never changes."""
    a, b = Page(0, (Row(0, 1), Row(0.5 * DAY, 2))), Page(0, (Row(0, 1),))
    history = history_of([a, b], weight=np.array([3.0, 1.0]))
    setup = Setup(budget=1, cycle=DAY, cycles=2, samples=2, weighted=True)
    told = replay(history, Scripted([0], [1]), setup).summary()
    assert told["embarrassment"] == pytest.approx((0 + 3 / 4 + 0 + 0) / 4)
    assert told["weighted_freshness"] == pytest.approx(1 - told["embarrassment"])


def test_a_change_at_the_time_of_the_visit_has_no_delay() -> None:
    plain = [Page(0, (Row(0, 1), Row(10, 2))), Page(0, (Row(0, 1), Row(6, 2)))]
    record = replay(history_of(plain), Scripted([0, 1]), Setup(budget=2, cycle=10.0, cycles=1))
    assert record.delay * DAY == pytest.approx((0 + 4) / 2)


def test_measures_without_weights_or_visits_are_undefined() -> None:
    record = replay(history_of(still(3)), make_policy("random"), Setup(budget=0, cycle=10.0, cycles=2))
    told = record.summary()
    assert told["visits"] == told["found"] == 0
    assert told["change_ratio_by_cycle"] == [None, None]
    assert math.isnan(told["change_ratio"])
    assert told["weighted_change_ratio"] is told["success_rate"] is told["delay_days"] is None
    assert told["freshness"] == 1


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": -1},
        {"cycle": 0.0},
        {"cycle": math.inf},
        {"cycle": math.nan},
        {"cycles": 0},
        {"seed": -1},
        {"samples": 0},
        {"at_start": 1.5},
        {"failures": -0.1},
        {"late": math.nan},
        {"discover": "luck"},
    ],
    ids=str,
)
def test_an_invalid_setup_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Setup(**{"budget": 1, "cycle": 1.0, "cycles": 1} | wrong)


def test_a_policy_that_needs_missing_columns_is_refused() -> None:
    bare = replace(history_of(still(2)), links=None, carries=frozenset({"folders", "digests"}))
    with pytest.raises(UsageError, match=r"sampling needs links.*carries only digests, folders"):
        replay(bare, make_policy("sampling(neighbours=links)"), Setup(budget=1, cycle=1.0, cycles=1))
    with pytest.raises(UsageError, match="needs links"):
        replay(bare, make_policy("random"), Setup(budget=1, cycle=1.0, cycles=1, discover="links"))


@settings(max_examples=20, deadline=None)
@given(plains(), setups)
def test_a_replay_is_the_same_again(plain: Plain, setup: Setup) -> None:
    history = history_of(plain)
    first, second = (replay(history, make_policy("random"), setup) for _ in range(2))
    np.testing.assert_array_equal(first.found, second.found)
    np.testing.assert_array_equal(first.freshness, second.freshness)


def test_pages_of_the_type_that_worlds_take() -> None:
    """The script's page numbers are what `Pages` promises; a slip there would test something else."""
    pages: Pages = next(Scripted([1]).cycle(Book.blank(2), 1, np.random.default_rng(1))).pages
    assert pages.dtype == np.int64


# -- copies ------------------------------------------------------------------------------------------------------


def _twins() -> History:
    """Two addresses of one page, and a page of its own; each day all have another text."""
    urls = ["http://a.example/", "http://a.example/index.html", "http://a.example/other"]
    page = np.repeat(np.arange(3), 5)
    time = np.tile(np.arange(5) * DAY, 3)
    version = np.concatenate([np.arange(5), np.arange(5), np.arange(5) + 100])
    return assemble(urls, page, time, version, change="text", carries=frozenset({"text"}))


def test_finds_of_copies_count_once_as_distinct_ones() -> None:
    told = replay(_twins(), make_policy("round-robin"), Setup(budget=3, cycle=DAY, cycles=4)).summary()
    assert (told["visits"], told["found"], told["distinct"]) == (12, 12, 8)


def test_who_knows_copies_visits_them_when_they_have_become_different() -> None:
    setup = Setup(budget=2, cycle=DAY, cycles=4, copies=True)
    told = replay(_twins(), make_policy("round-robin"), setup).summary()
    plain = replay(_twins(), make_policy("round-robin"), replace(setup, copies=False)).summary()
    assert told["distinct"] > plain["distinct"]


def test_copies_need_texts() -> None:
    history = replace(_twins(), change="content")
    with pytest.raises(UsageError, match="copies are known by their texts"):
        replay(history, make_policy("round-robin"), Setup(budget=2, cycle=DAY, cycles=4, copies=True))
    assert replay(history, make_policy("round-robin"), Setup(budget=2, cycle=DAY, cycles=4)).distinct is None
