"""The driver: keeps the contract of policies, feeds them, closes them, and resumes a cycle that was cut."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book
from recrawl.choose import Choice
from recrawl.errors import PolicyError
from recrawl.lab.replays.small_worlds import AlwaysChanged, NeverChanged
from recrawl.loop import Resumed, drive
from recrawl.model import WAIT, Outcome, Outcomes, Picks, Unvisited
from recrawl.testing.books import LateWorld


class _Test:
    """What every policy has, and no test here looks at."""

    name: ClassVar[str] = "test"
    source: ClassVar[str] = ""
    needs: ClassVar[frozenset[str]] = frozenset()


class Scripted(_Test):
    """A policy that yields what it is told and keeps what it is sent."""

    def __init__(self, *batches: list[int]) -> None:
        self.batches = batches
        self.sent: list[Outcomes] = []
        self.closed = False

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        try:
            for batch in self.batches:
                self.sent.append((yield picks(batch)))
        finally:
            self.closed = True


class Chasing(_Test):
    """A policy whose next choices depend on what the last ones found: near a change it looks on."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        left = rng.permutation(np.flatnonzero(book.known)).tolist()
        while left:
            size = int(rng.integers(1, 4))
            batch, left = left[:size], left[size:]
            seen = yield picks(batch)
            near = {page + 1 for page in seen.pages[seen.changed].tolist()}
            left.sort(key=lambda page: page not in near)


class Recording:
    """A world that keeps what it was asked for and what it said; stops after `most` visits."""

    def __init__(self, world: AlwaysChanged | NeverChanged | Told | None = None, most: int = 1 << 30) -> None:
        self.world = world or NeverChanged()
        self.most = most
        self.asked: list[list[int]] = []
        self.said: dict[int, int] = {}

    def visit(self, picks: Picks, _due: Collection[int] = ()) -> Outcomes:
        self.asked.append(picks.pages.tolist())
        seen = self.world.visit(picks)
        room = max(0, self.most - len(self.said))
        seen = Outcomes(seen.pages[:room], seen.what[:room])
        self.said.update(zip(seen.pages.tolist(), seen.what.tolist(), strict=True))
        return seen


class Told:
    """A world that answers as it is told."""

    def __init__(self, outcomes: dict[int, int]) -> None:
        self.outcomes = outcomes

    def visit(self, picks: Picks) -> Outcomes:
        return Outcomes(picks.pages, np.array([self.outcomes[page] for page in picks.pages.tolist()], np.int8))


def picks(pages: list[int]) -> Picks:
    return Picks(np.array(pages, np.int64), np.ones(len(pages)), "because")


def all_of(*batches: list[int], budget: int = 100, pages: int = 10, world: Recording | None = None) -> list[list[int]]:
    return [s.pages.tolist() for s in drive(Scripted(*batches), world or Recording(), Book.blank(pages), budget, 1)]


# -- feeding -----------------------------------------------------------------------------------------------


def test_a_policy_receives_the_outcomes_of_its_picks() -> None:
    policy, world = Scripted([3, 1], [2]), Recording(AlwaysChanged(4, changed=0.5))
    seen = list(drive(policy, world, Book.blank(5), 10, 1))
    assert [one.pages.tolist() for one in seen] == [[3, 1], [2]]
    assert [one.pages.tolist() for one in policy.sent] == [[3, 1], [2]]
    assert {p: w for s in policy.sent for p, w in zip(s.pages.tolist(), s.what.tolist(), strict=True)} == world.said


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 4, 5, 99])
def test_no_more_than_the_budget_is_visited(budget: int) -> None:
    visited = [page for batch in all_of([0, 1], [2, 3, 4], budget=budget) for page in batch]
    assert visited == [0, 1, 2, 3, 4][:budget]


def test_an_empty_batch_costs_nothing_and_makes_no_visit() -> None:
    world = Recording()
    assert all_of([], [1], [], [2], world=world) == [[], [1], [], [2]]
    assert world.asked == [[1], [2]]


def test_a_policy_without_picks_ends_the_cycle() -> None:
    assert all_of() == []


def test_a_world_that_stops_ends_the_cycle() -> None:
    assert all_of([0, 1, 2], [3], world=Recording(most=2)) == [[0, 1]]


@pytest.mark.parametrize("most", [1, 100])
def test_a_policy_is_always_closed(most: int) -> None:
    policy = Scripted([0, 1], [2])
    list(drive(policy, Recording(most=most), Book.blank(5), 2, 1))
    assert policy.closed


def test_a_policy_is_closed_when_the_world_breaks() -> None:
    class Broken:
        def visit(self, picks: Picks) -> Outcomes:
            raise OSError("no network")

    policy = Scripted([0])
    with pytest.raises(OSError, match="no network"):
        list(drive(policy, Broken(), Book.blank(5), 2, 1))
    assert policy.closed


# -- the contract --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batches", "complaint"),
    [
        pytest.param(([1, 1],), "twice", id="twice in a batch"),
        pytest.param(([1, 2], [3, 1]), "twice", id="twice in a cycle"),
        pytest.param(([7],), "may not be visited", id="a page that is not known"),
        pytest.param(([10],), "page", id="a page beyond the book"),
        pytest.param(([-1],), "page", id="a negative page"),
    ],
)
def test_a_policy_that_breaks_the_protocol_is_refused(batches: tuple[list[int], ...], complaint: str) -> None:
    book = Book.blank(10)
    book.known[7] = False
    world = Recording()
    with pytest.raises(PolicyError, match=complaint):
        list(drive(Scripted(*batches), world, book, 100, 1))
    assert world.asked == [list(batch) for batch in batches[:-1]]


def test_every_page_must_have_a_score() -> None:
    class Scoreless(Scripted):
        def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
            yield Picks(np.arange(3), np.ones(2), "because")

    with pytest.raises(PolicyError, match="3 pages with 2 scores"):
        list(drive(Scoreless(), NeverChanged(), Book.blank(10), 100, 1))


def test_a_policy_that_yields_empty_batches_forever_is_refused() -> None:
    class Idle(Scripted):
        def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
            for _ in range(100_000):
                yield picks([])
            raise AssertionError("nobody stopped it")

    with pytest.raises(PolicyError):
        for _ in drive(Idle(), NeverChanged(), Book.blank(10), 100, 1):
            pass


# -- resuming ------------------------------------------------------------------------------------------------


def test_recorded_visits_are_answered_from_the_record_in_the_order_of_the_picks() -> None:
    world = Recording(AlwaysChanged(1, changed=1.0, failed=0.0))
    resumed = Resumed(world, {5: int(Outcome.FAILED), 2: int(Outcome.UNCHANGED)})
    seen = resumed.visit(picks([1, 5, 3, 2]))
    assert seen.pages.tolist() == [1, 5, 3, 2]
    assert seen.what.tolist() == [Outcome.CHANGED, Outcome.FAILED, Outcome.CHANGED, Outcome.UNCHANGED]
    assert world.asked == [[1, 3]]


def test_when_all_visits_are_recorded_the_world_makes_none() -> None:
    world = Recording()
    assert Resumed(world, {1: 0, 2: 1}).visit(picks([2, 1])).what.tolist() == [1, 0]
    assert world.asked == []


def test_scores_go_with_their_pages() -> None:
    asked = []

    class Seen(NeverChanged):
        def visit(self, picks: Picks, _due: Collection[int] = ()) -> Outcomes:
            asked.append((picks.pages.tolist(), picks.score.tolist(), picks.reason))
            return super().visit(picks)

    Resumed(Seen(), {4: 0}).visit(Picks(np.array([3, 4, 5]), np.array([0.3, 0.4, 0.5]), "why"))
    assert asked == [([3, 5], [0.3, 0.5], "why")]


def test_a_world_that_stops_omits_only_unvisited_pages() -> None:
    seen = Resumed(Recording(most=1), {4: 1}).visit(picks([3, 4, 5]))
    assert seen.pages.tolist() == [3, 4]


@given(
    seed=st.integers(0, 1000),
    pages=st.integers(1, 40),
    budget=st.integers(1, 50),
    cut=st.integers(0, 45),
    draw=st.randoms(use_true_random=False),
)
def test_an_interrupted_cycle_makes_the_same_choices(
    seed: int, pages: int, budget: int, cut: int, draw: Random
) -> None:
    """The first run ends after some visits; of its last batch only some were recorded."""
    book = Book.blank(pages)
    whole = Recording(AlwaysChanged(seed))
    list(drive(Chasing(), whole, book, budget, seed))
    first = Recording(Told(whole.said), most=cut)
    list(drive(Chasing(), first, book, budget, seed))
    last = set(first.asked[-1]) if first.asked else set()
    recorded = {page: what for page, what in first.said.items() if page not in last or draw.random() < 0.5}
    rest = Recording(Told(whole.said))
    second = list(drive(Chasing(), Resumed(rest, recorded), book, budget, seed))
    assert [seen.pages.tolist() for seen in second] == whole.asked
    assert {page for batch in rest.asked for page in batch} == set(whole.said) - set(recorded)


# -- overlapping batches ------------------------------------------------------------------------------------


class Overlapping(_Test):
    """A policy that leaves outcomes to later batches, and chooses by which outcomes it has."""

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        left, changed = rng.permutation(np.flatnonzero(book.known)).tolist(), 0
        while left:
            size = int(rng.integers(1, 6)) if rng.random() < 0.8 else 24  # of 24, an awaited one may lack
            batch, left = left[:size], left[size:]
            seen = yield replace(picks(batch), awaits=float(rng.choice([0.0, 0.4, 0.9, 1.0])))
            changed += int(seen.changed.sum())
            left.sort(key=lambda page: (page * (7 + changed)) % 11)


def test_late_outcomes_come_with_a_later_batch_and_the_end_waits_for_all() -> None:
    class Half(_Test):
        def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
            for first in (0, 4, 8):
                seen = yield replace(picks([*range(first, first + 4)]), awaits=0.5)
                sent.append(seen.pages.tolist())

    sent: list[list[int]] = []
    world = LateWorld(1)
    seen = [page for part in drive(Half(), world, Book.blank(20), 100, 1) for page in part.pages.tolist()]
    awaited = [[page for page in part if page // 4 == batch] for batch, part in enumerate(sent)]
    assert awaited == [[0, 1], [4, 5], [8, 9]], "the first of each batch were awaited"
    assert sorted(seen) == list(range(12)) == sorted(world.pages)
    assert all(part == sorted(part) for part in sent), "not in the order of choice"


def test_a_tenth_of_the_awaited_outcomes_may_lack() -> None:
    """Its server may be down. A world with fewer outcomes has stopped."""

    class Twenty(_Test):
        def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
            sent.append(len((yield replace(picks([*range(40)]), awaits=0.5))))
            sent.append(len((yield picks([40]))))

    sent: list[int] = []
    list(drive(Twenty(), LateWorld(1), Book.blank(50), 100, 1))
    assert sent == [18, 23]
    sent.clear()
    list(drive(Twenty(), Recording(most=17), Book.blank(50), 100, 1))
    assert not sent


@given(awaits=st.floats(0, 1), kept=st.lists(st.booleans(), max_size=30), n=st.integers(0, 40))
def test_a_part_of_a_batch_awaits_the_same_pages(awaits: float, kept: list[bool], n: int) -> None:
    whole = replace(picks([*range(len(kept))]), awaits=awaits)
    awaited = set(whole.pages[: whole.needed].tolist())
    for part in (whole.where(np.array(kept, bool)), whole.first(n)):
        assert set(part.pages[: part.needed].tolist()) == awaited.intersection(part.pages.tolist())
        assert (part.awaits >= 1) == (awaits >= 1), "to wait for earlier batches is another thing"


def test_a_visit_under_way_that_is_not_made_after_all_gives_its_budget_back() -> None:
    class Holding(LateWorld):
        def visit(self, picks: Picks, due: Collection[int] = ()) -> Outcomes:
            seen = super().visit(picks, due)
            return replace(seen, what=np.where(seen.pages < 4, np.int8(Unvisited.HELD), seen.what))

    class Chain(_Test):
        def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
            for page in range(0, 20, 2):
                yield replace(picks([page, page + 1]), awaits=0.0)

    world = Holding(2)
    visited = [part.visited.sum() for part in drive(Chain(), world, Book.blank(20), 6, 1)]
    assert sum(visited) == 6
    assert len(world.pages) == 6 + 4


def test_an_empty_batch_waits_for_what_is_under_way() -> None:
    class Waiting(_Test):
        def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
            sent.append((yield replace(picks([0, 1, 2]), awaits=0.0)).pages.tolist())
            sent.append((yield WAIT).pages.tolist())
            yield picks([3])

    sent: list[list[int]] = []
    list(drive(Waiting(), LateWorld(1), Book.blank(5), 9, 1))
    assert sent == [[], [0, 1, 2]]


@given(seed=st.integers(0, 1000), pages=st.integers(1, 40), budget=st.integers(1, 50), cut=st.integers(0, 12))
def test_an_interrupted_cycle_with_overlapping_batches_makes_the_same_choices(
    seed: int, pages: int, budget: int, cut: int
) -> None:
    """After `cut` deliveries: what was chosen by then is chosen again, though of what the policy was told half is lost;
    what was recorded is not visited again, and what was lost is."""
    book = Book.blank(pages)
    whole, sent = LateWorld(seed), list[Outcomes]()
    list(drive(Overlapping(), Resumed(whole, {}, delivered=sent.append), book, budget, seed))
    cut = min(cut, len(sent))
    draw = np.random.default_rng(seed)
    chosen = [picks.pages.tolist() for picks in whole.picks if len(picks)][: cut + 1]
    recorded = {page: whole.answers[page] for part in chosen for page in part if draw.random() < 0.5}
    rest = LateWorld(seed + 1)
    again = list[list[int]]()

    class Watched:
        def visit(self, picks: Picks) -> Outcomes:
            if len(picks):
                again.append(picks.pages.tolist())
            return resumed.visit(picks)

    resumed = Resumed(rest, recorded, sent=sent[:cut])
    parts = list(drive(Overlapping(), Watched(), book, budget, seed))
    resumed.complete()
    seen = [page for part in parts for page in part.pages.tolist()]
    told, told_again = (
        {page: what for part in some for page, what in zip(part.pages.tolist(), part.what.tolist(), strict=True)}
        for some in (sent[:cut], parts)
    )
    assert told.items() <= told_again.items()
    assert again[: len(chosen)] == chosen
    assert len(seen) == len(set(seen)) == min(pages, budget)
    assert set(rest.pages) == set(seen) - set(recorded)


def test_batches_that_do_not_fit_are_ignored() -> None:
    """As after an update of the policy: it chooses otherwise, and the cycle is finished all the same."""
    world = Recording()
    sent = [Outcomes(np.array([page]), np.zeros(1, np.int8)) for page in (7, 8)]
    resumed = Resumed(world, {7: 0}, sent=sent)
    assert [part.pages.tolist() for part in drive(Scripted([1, 2], [7]), resumed, Book.blank(9), 9, 1)] == [[1, 2], [7]]
    assert world.asked == [[1, 2]]
