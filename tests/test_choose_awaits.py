"""`shock` awaits the first outcomes of each group of pages, and no others: servers do not wait for others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recrawl.book import Book
from recrawl.choose.protocol import Choice
from recrawl.choose.shards.rounds import _Shards, _visit
from recrawl.choose.shock.plan import CERTAIN, SAMPLE, SURE
from recrawl.choose.shock.policy import Shock
from recrawl.columns import DAY
from recrawl.lab.replays.late import Late
from recrawl.loop import drive
from recrawl.model import Outcome, Outcomes, Picks

SITES, LARGE = 60, 30


class Rebuilt:
    """All pages of half of the large sites have changed; no others."""

    def __init__(self, book: Book) -> None:
        self.site = book.site
        self.picks: list[Picks] = []
        self.found = 0

    def visit(self, picks: Picks) -> Outcomes:
        self.picks.append(picks)
        changed = self.site[picks.pages] < LARGE // 2
        self.found += int(changed.sum())
        return Outcomes(picks.pages, np.where(changed, Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8))


class Whole(Shock):
    """`shock`, made to wait for whole batches."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        choice = super().cycle(book, budget, rng)
        try:
            picks = next(choice)
            while True:
                picks = choice.send((yield replace(picks, awaits=1.0)))
        except StopIteration:
            return


@pytest.fixture(scope="module")
def book() -> Book:
    """Sites of 4 pages and large ones of 20 to 60, each visited once, just now."""
    sizes = np.full(SITES, 4)
    sizes[:LARGE] = np.random.default_rng(1).integers(20, 60, LARGE)
    made = Book.blank(int(sizes.sum()), now=20 * DAY)
    made.site = np.repeat(np.arange(SITES), sizes).astype(np.int32)
    made.form = made.site.astype(np.int64)
    made.visits[:], made.changes[:], made.last_visit[:] = 1, 1, made.now - 10
    made.last_try[:] = made.last_visit
    return made


def _run(policy: Shock, book: Book, seed: int) -> tuple[Rebuilt, Late]:
    world = Rebuilt(book)
    queued = Late(world, book.site, 1.0, seed=seed)
    for _ in drive(policy, queued, book, len(book) // 3, seed=seed):
        pass
    return world, queued


@pytest.mark.parametrize("age", [10.0, DAY, 30 * DAY])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_cycle_with_crowded_picks_takes_little_longer_than_the_longest_queue(
    book: Book, age: float, seed: int
) -> None:
    aged = replace(book, last_visit=np.full(len(book), book.now - age), last_try=np.full(len(book), book.now - age))
    whole, one_by_one = _run(Whole(), aged, seed)
    overlapping, queued = _run(Shock(), aged, seed)
    assert queued.time <= 1.2 * queued.queue.max()
    assert one_by_one.time > 2 * queued.time
    assert overlapping.found >= 0.98 * whole.found > 0


def test_the_first_pages_of_each_group_are_awaited(book: Book) -> None:
    """Neither what fills a batch beyond them, nor what has changed almost surely, nor a page that failed."""
    plan = Shock().plan(book, np.ones(len(book), bool), 100)
    first = np.flatnonzero(np.diff(book.site, prepend=-1))[:4]
    pages = (first[:, None] + np.arange(4)).ravel()  # four pages of each of four sites
    plan.probability[pages] = np.repeat([CERTAIN - 0.1, CERTAIN + 0.1, SURE, CERTAIN - 0.1], 4)
    book.failures[pages[12]] = 1
    awaited = plan.informative(pages).reshape(4, 4)
    book.failures[pages[12]] = 0
    sampled = [number < SAMPLE for number in range(4)]
    assert awaited.tolist() == [sampled, sampled, [False] * 4, [False, *sampled[1:]]]
    plan.take(pages[:1])
    plan.observe(Outcomes(pages[:1], np.array([Outcome.CHANGED], np.int8)))
    assert plan.informative(pages[1:4]).tolist() == [True, False, False], "one page of a group with an outcome"


def test_shards_await_the_same_outcomes_as_one() -> None:
    """The awaited pages of all shards come first, and no others are awaited."""
    parts = [Picks(np.arange(4), np.array([9.0, 3.0, 8.0, 7.0]), "why", awaits=0.5) for _ in range(2)]
    split = _Shards.by(np.repeat([0, 1], 4), 2)
    picks = next(_visit(parts, split))
    assert set(picks.pages[: picks.needed].tolist()) == {0, 1, 4, 5}
