"""The rounds of a cycle over the tables of a cluster: the choices of shards in one process, whoever is killed when."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.shards.rounds import Splittable, Stage, rounds
from recrawl.cluster.cycle_coordinator import CycleCoordinator
from recrawl.cluster.layout import Layout
from recrawl.cluster.shard_rounds import ShardChooser, TableRounds
from recrawl.model import Outcome, Outcomes, Unvisited
from recrawl.record.store.postgres.cluster.rounds import RoundJournal
from recrawl.record.store.postgres.cluster.runs import RunRow

DAY = 86400.0
SEED = 3
Picked = list[list[int]]
"""The pages of each batch of a shard."""


class KilledError(Exception):
    """Ends a process of a test."""


def book_of(shard: int, pages: int = 60) -> Book:
    """A book of a few sites with some history."""
    rng = np.random.default_rng(100 + shard)
    book = Book.blank(pages, now=40 * DAY)
    book.site[:] = np.arange(pages) // 12
    book.visits[:] = rng.integers(0, 5, pages)
    book.changes[:] = np.minimum(rng.integers(0, 4, pages), book.visits)
    book.last_visit[:] = book.last_try[:] = np.where(book.visits, rng.uniform(1, 39, pages) * DAY, -np.inf)
    return book


def outcomes(shard: int, pages: np.ndarray) -> Outcomes:
    """What visits find: always the same."""
    changed = (pages * 7 + shard) % 3 == 0
    return Outcomes(pages, np.where(changed, Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8))


def in_one_process(policy: str, shards: int, budget: int, spent: int = 0) -> list[Picked]:
    """The pages that each shard visits when all are in one process; `spent` visits of the budget are not divided."""
    made = cast(Splittable, make_policy(policy))
    rng = np.random.default_rng(SEED)
    generators = [rng, *rng.spawn(shards)[1:]]
    plans = [made.begin(book_of(shard), budget, generators[shard]) for shard in range(shards)]
    run = rounds(made, plans, budget - spent)
    picked: list[Picked] = [[] for _ in range(shards)]
    try:
        picks = next(run)
        while True:
            for shard, some in enumerate(picks):
                picked[shard] += [some.pages.tolist()] if len(some) else []
            picks = run.send([outcomes(shard, some.pages) for shard, some in enumerate(picks)])
    except StopIteration:
        return picked


class Deadly:
    """A journal whose caller is killed at some calls, before or after they are done."""

    def __init__(self, journal: RoundJournal, deaths: Iterator[int]) -> None:
        self._journal, self._deaths = journal, deaths
        self._left = next(deaths, None)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._journal, name)
        if name not in ("arrive", "offer", "ask", "settle"):
            return method

        def call(*values: Any, **named: Any) -> Any:
            if self._left is None:
                return method(*values, **named)
            self._left -= 1
            if self._left == 0:
                self._left = next(self._deaths, None)
                if (self._left or 0) % 2:
                    method(*values, **named)
                raise KilledError
            return method(*values, **named)

        return call


class Cycle:
    """One cycle over shards, each in a thread with a connection of its own."""

    def __init__(
        self,
        layout: Layout,
        policy: str,
        budget: int,
        *,
        late: float = 1e9,
        spent: int = 0,
        visiting: Callable[[int, int], None] = lambda _shard, _batch: None,
        found: Callable[[int, np.ndarray], Outcomes] = outcomes,
    ) -> None:
        """Each shard spends `spent` visits without asking; `visiting` gets shard and number of each batch visited."""
        self.found = found
        self.layout, self.policy, self.budget = layout, policy, budget
        self.late, self.spent, self.visiting = late, spent, visiting
        self.picked: list[Picked] = [[] for _ in range(layout.shards)]
        self.problems: list[BaseException] = []
        with closing(layout.open()) as cluster:
            number = cluster.runs.request("cycle", policy=policy, budget=budget, seed=0, settings="", options={})
            cluster.runs.start(number, budget)
            self.run: RunRow = cluster.runs.get(number)

    def make(self, deaths: list[list[int]]) -> list[Picked]:
        """Make the cycle; `deaths` says for each shard, and last for the coordinator, when it is killed."""
        ended = threading.Event()
        threads = [
            threading.Thread(target=self._guarded, args=(self._shard, shard, iter(deaths[shard])))
            for shard in range(self.layout.shards)
        ]
        leader = threading.Thread(target=self._guarded, args=(self._lead, ended, iter(deaths[-1])))
        for thread in (*threads, leader):
            thread.start()
        for thread in threads:
            thread.join(60)
        ended.set()
        leader.join(60)
        assert not self.problems, self.problems
        return self.picked

    def _guarded(self, work: Callable[..., None], *values: Any) -> None:
        try:
            with closing(self.layout.open()) as cluster:
                work(cluster.rounds, *values)
        except BaseException as error:  # noqa: BLE001
            self.problems.append(error)

    def _shard(self, journal: RoundJournal, shard: int, deaths: Iterator[int]) -> None:
        deadly = cast(RoundJournal, Deadly(journal, deaths))

        def table(stages: Iterable[Stage]) -> TableRounds:
            return TableRounds(deadly, self.run.id, shard, stages, _wait, spent=self.spent)

        while True:
            picked: Picked = []
            chooser = ShardChooser(make_policy(self.policy), shard, self.layout.shards, table)
            try:
                choice = chooser.cycle(book_of(shard), self.budget, np.random.default_rng(SEED))
                picks = next(choice, None)
                while picks is not None:
                    picked.append(picks.pages.tolist())
                    self.visiting(shard, len(picked))
                    try:
                        picks = choice.send(self.found(shard, picks.pages))
                    except StopIteration:
                        picks = None
            except KilledError:
                continue
            self.picked[shard] = picked
            return

    def _lead(self, journal: RoundJournal, ended: threading.Event, deaths: Iterator[int]) -> None:
        deadly, shards = cast(RoundJournal, Deadly(journal, deaths)), self.layout.shards
        while not ended.is_set():
            try:
                coordinator = CycleCoordinator(deadly, self.run, shards, late=self.late)
                while not ended.is_set():
                    if not coordinator.step(set(range(shards)), set()):
                        ended.wait(0.001)
            except KilledError:
                continue


def _wait() -> bool:
    threading.Event().wait(0.001)
    return True


@pytest.mark.parametrize("shards", [1, 3])
def test_shards_behind_tables_choose_as_in_one_process(new_cluster: Callable[[int], Layout], shards: int) -> None:
    layout, budget = new_cluster(shards), 40 * shards
    for policy in ("shock(batches=8)", "round-robin", "shock(batches=5, explore=1)"):
        expected = in_one_process(policy, shards, budget)
        assert sum(len(batch) for picked in expected for batch in picked) == budget
        assert Cycle(layout, policy, budget).make([[] for _ in range(shards + 1)]) == expected


@pytest.fixture
def three_shards(new_cluster: Callable[[int], Layout]) -> Layout:
    return new_cluster(3)


@given(st.lists(st.lists(st.integers(1, 12), max_size=4), min_size=4, max_size=4))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whoever_is_killed_when_the_choices_are_the_same(three_shards: Layout, deaths: list[list[int]]) -> None:
    policy, budget = "shock(batches=4, explore=0.5)", 60
    assert Cycle(three_shards, policy, budget, spent=2).make(deaths) == in_one_process(policy, 3, budget, spent=6)


def test_a_slow_shard_does_not_hold_up_the_others_and_gets_its_visits_later(three_shards: Layout) -> None:
    policy, budget = "shock(batches=8, explore=0)", 120
    others_went_on = threading.Event()

    def visiting(shard: int, batch: int) -> None:
        if shard == 0 and batch == 6:
            others_went_on.set()
        if shard == 2 and batch == 3:
            assert others_went_on.wait(60)

    picked = Cycle(three_shards, policy, budget, late=0.05, visiting=visiting).make([[], [], [], []])
    assert others_went_on.is_set()
    assert sum(len(batch) for batches in picked for batch in batches) == budget
    for batches in picked:
        pages = [page for batch in batches for page in batch]
        assert len(set(pages)) == len(pages)
    assert sum(map(len, picked[2][3:])) > 0


@pytest.mark.parametrize("policy", ["shock(batches=4, explore=0)", "round-robin"])
@pytest.mark.parametrize(
    "deaths", [[[], [], [], []], [[2], [3, 4], [], [3, 3, 3, 3, 3]]], ids=["undisturbed", "killed"]
)
def test_visits_that_come_back_after_the_last_stage_are_made_elsewhere(
    three_shards: Layout, policy: str, deaths: list[list[int]]
) -> None:
    def found(shard: int, pages: np.ndarray) -> Outcomes:
        if shard != 1:
            return outcomes(shard, pages)
        return Outcomes(pages, np.full(len(pages), Unvisited.SKIPPED, np.int8))  # its servers are away

    picked = Cycle(three_shards, policy, 90, found=found).make(deaths)
    first, away, last = ([page for batch in batches for page in batch] for batches in picked)
    assert len(first) + len(last) == 90
    assert len(away) <= 60
    assert all(len(set(pages)) == len(pages) for pages in (first, away, last))


def test_a_cycle_with_more_budget_than_pages_ends(three_shards: Layout) -> None:
    picked = Cycle(three_shards, "round-robin", 1000).make([[], [], [], []])
    assert [sum(map(len, batches)) for batches in picked] == [60, 60, 60]
