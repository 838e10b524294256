"""Every policy, kept to an allowance: limits hold, and the budget is spent on what has room."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse  # noqa: F401  # or the first policy that loads it misses its deadline
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.budget.allowance import Allowance, Balance
from recrawl.choose.budget.budgeted import Budgeted
from recrawl.lab.replays.small_worlds import NeverChanged
from recrawl.loop import Resumed, drive
from recrawl.model import Outcome, Outcomes, Picks, Unvisited
from recrawl.testing.books import LateWorld
from tests.test_policies import Watched, books, every_policy

few = settings(max_examples=4)  # there are many policies


class Sites:
    """A world that answers by page number alone; some sites turn us away, every page weighs what it is told."""

    def __init__(
        self, book: Book, dead: frozenset[int] = frozenset(), weight: int = 1000, how: Unvisited = Unvisited.HELD
    ) -> None:
        self.site, self.dead, self.weight, self.how = book.site, dead, weight, how

    def visit(self, picks: Picks, _due: Collection[int] = ()) -> Outcomes:
        what = np.array([(0, 1, 0, 4)[page * 7 % 4] for page in picks.pages.tolist()], np.int8)
        what[np.isin(self.site[picks.pages], list(self.dead))] = self.how
        return Outcomes(picks.pages, what, np.where(what <= Outcome.FAILED, self.weight, 0).astype(np.int64))


def spent(text: str, book: Book, budget: int, allowance: Allowance, world: Any = None, **columns: Any) -> list[int]:
    """The pages that were visited, in order."""
    watched = Watched(world or Sites(book))
    for _ in drive(Budgeted(make_policy(text), allowance, **columns), watched, book, budget, 1):
        pass
    return [page for page in watched.pages if watched.said[page] <= Outcome.FAILED]


def eager(text: str, book: Book, world: Any = None) -> bool:
    """Whether a policy would visit every page if it could; rules about intervals would not.

    Those of `anchor-depth` look at the pages around, so what it wants of some pages is not what it wants of all.
    """
    if text.startswith("anchor-depth"):
        return False
    pages = spent(text, book, len(book), Allowance(), world)
    return set(pages) == set(np.flatnonzero(book.known).tolist())


@st.composite
def limits(draw: Callable[..., Any]) -> Allowance:
    sites = st.dictionaries(st.integers(0, 4), st.integers(0, 12))
    return Allowance(
        site_most=draw(st.none() | st.integers(1, 12)),
        most=draw(sites),
        least=draw(sites),
        new=draw(st.none() | st.integers(0, 20)),
        pushed=draw(st.integers(0, 10)),
    )


# -- every policy -------------------------------------------------------------------------------------------


@few
@given(book=books(), budget=st.integers(0, 60))
@every_policy
def test_without_limits_nothing_changes(text: str, book: Book, budget: int) -> None:
    plain, under = Watched(Sites(book)), Watched(Sites(book))
    list(drive(make_policy(text), plain, book, budget, 1))
    list(drive(Budgeted(make_policy(text), Allowance()), under, book, budget, 1))
    assert [picks.pages.tolist() for picks in under.picks] == [picks.pages.tolist() for picks in plain.picks]


@few
@given(book=books(), budget=st.integers(0, 60), allowance=limits(), pushes=st.integers(0, 2**32))
@every_policy
def test_limits_hold_and_the_budget_goes_to_sites_with_room(
    text: str, book: Book, budget: int, allowance: Allowance, pushes: int
) -> None:
    pushed = np.random.default_rng(pushes).random(len(book)) < 0.3
    pages = spent(text, book, budget, allowance, pushed=pushed)
    assert len(pages) <= budget
    for site, visits in zip(*np.unique(book.site[pages], return_counts=True), strict=True):
        assert visits <= allowance.most.get(int(site), allowance.site_most or budget)
    there = np.bincount(book.site[book.known], minlength=5)
    room = sum(min(int(there[site]), allowance.most.get(site, allowance.site_most or 99)) for site in range(5))
    if eager(text, book):
        assert len(pages) == min(budget, room)


@few
@given(book=books(least=1), budget=st.integers(1, 60), dead=st.frozensets(st.integers(0, 4), max_size=4))
@every_policy
def test_refused_requests_use_no_budget(text: str, book: Book, budget: int, dead: frozenset[int]) -> None:
    alive = book.known & ~np.isin(book.site, list(dead))
    for how in Unvisited:  # the whole server, or page by page
        pages = spent(text, book, budget, Allowance(), Sites(book, dead, how=how))
        if eager(text, book):
            assert len(pages) == min(budget, np.count_nonzero(alive))


@few
@given(book=books(least=1), budget=st.integers(10, 60), kept=st.integers(0, 10), pushes=st.integers(0, 2**32))
@every_policy
def test_reserved_visits_go_to_new_pushed_or_own_pages(
    text: str, book: Book, budget: int, kept: int, pushes: int
) -> None:
    if not eager(text, book):
        return
    new, own = book.visits == 0, book.site == 0
    pushed = np.random.default_rng(pushes).random(len(book)) < 0.3
    for whose, allowance in (
        (new, Allowance(new=kept)),
        (pushed, Allowance(pushed=kept)),
        (own, Allowance(least={0: kept})),
    ):
        pages = spent(text, book, budget, allowance, pushed=pushed)
        got = int(np.count_nonzero(whose[pages]))
        assert got >= min(kept, int(np.count_nonzero(whose & book.known)))
        if allowance.new is not None:  # and no more while others wait
            assert got <= max(kept, budget - int(np.count_nonzero(~new & book.known)))


@few
@given(book=books(least=1), budget=st.integers(1, 60), total=st.integers(500, 40_000), weight=st.integers(1, 3000))
@every_policy
def test_the_byte_limit_ends_a_cycle_and_only_the_last_batch_can_exceed_it(
    text: str, book: Book, budget: int, total: int, weight: int
) -> None:
    expected = np.full(len(book), float(weight))
    allowance = Allowance(bytes=float(total))
    world = Sites(book, weight=weight)
    pages = spent(text, book, budget, allowance, world, expected=expected)
    assert len(pages) * weight <= total
    if eager(text, book):
        assert len(pages) == min(budget, np.count_nonzero(book.known), total // weight)


@few
@given(book=books(least=1), budget=st.integers(1, 60), allowance=limits(), cut=st.integers(0, 45))
@every_policy
def test_an_interrupted_cycle_makes_the_same_choices(
    text: str, book: Book, budget: int, allowance: Allowance, cut: int
) -> None:
    dead = frozenset({1})
    whole = Watched(Resumed(Sites(book, dead), {}, {}, site=book.site))
    list(drive(Budgeted(make_policy(text), allowance), whole, book, budget, 1))
    first = Watched(Resumed(Sites(book, dead), {}, {}, site=book.site), most=cut)
    list(drive(Budgeted(make_policy(text), allowance), first, book, budget, 1))
    second = Watched(Resumed(Sites(book, dead), dict(first.said), dict.fromkeys(first.said, 1000), site=book.site))
    list(drive(Budgeted(make_policy(text), allowance), second, book, budget, 1))
    assert second.pages == whole.pages


@few
@given(book=books(least=1), budget=st.integers(1, 60), allowance=limits(), seed=st.integers(0, 99))
@every_policy
def test_limits_hold_while_batches_overlap(text: str, book: Book, budget: int, allowance: Allowance, seed: int) -> None:
    class LateSites(LateWorld):
        """Of site 1 nothing can be visited, which shows late."""

        def visit(self, picks: Picks, due: Collection[int] = ()) -> Outcomes:
            seen = super().visit(picks, due)
            return replace(seen, what=np.where(book.site[seen.pages] == 1, np.int8(Unvisited.HELD), seen.what))

    world, pages = LateSites(seed), list[int]()
    for seen in drive(Budgeted(make_policy(text), allowance), world, book, budget, seed):
        pages += seen.pages[seen.visited].tolist()
    assert len(pages) == len(set(pages)) <= budget
    assert sorted(page for part in world.returned for page in part) == sorted(world.pages), "an outcome was lost"
    for site, visits in zip(*np.unique(book.site[pages], return_counts=True), strict=True):
        assert visits <= allowance.most.get(int(site), allowance.site_most or budget)


# -- single things ----------------------------------------------------------------------------------------------


def test_a_batch_is_filled_to_the_limit_before_it_is_visited() -> None:
    """Else a limited time would be over before the second batch."""
    book = Book.blank(100)
    book.site[80:] = 1
    watched = Watched(NeverChanged())
    list(drive(Budgeted(make_policy("round-robin"), Allowance(site_most=10)), watched, book, 20, 1))
    assert [len(picks) for picks in watched.picks] == [20]


def test_a_page_that_is_too_large_does_not_stop_smaller_ones() -> None:
    book = Book.blank(4)
    book.size[:] = [500, 5000, 400, 300]
    assert spent("round-robin", book, 4, Allowance(bytes=1000.0), NeverChanged()) == [0, 2]


def test_a_site_gets_its_share_of_the_bytes() -> None:
    book = Book.blank(8)
    book.site[4:] = 1
    book.size[:] = 1000
    pages = spent("round-robin", book, 8, Allowance(bytes=8000.0, site_bytes=2000.0))
    assert np.bincount(book.site[pages]).tolist() == [2, 2]


def test_received_bytes_count_not_expected_ones() -> None:
    """Pages bring a tenth of what was expected: ten times as many are visited, in several rounds."""
    book = Book.blank(100)
    pages = spent(
        "round-robin", book, 100, Allowance(bytes=10_000.0), Sites(book, weight=100), expected=np.full(100, 1000.0)
    )
    assert 80 <= len(pages) <= 100
    pages = spent("random", book, 100, Allowance(bytes=10_000.0), Sites(book, weight=5000), expected=np.full(100, 1e3))
    assert len(pages) == 10, "they brought far more than expected, so there was no second batch"


def test_an_allowance_is_stored_as_text() -> None:
    for allowance in (Allowance(), Allowance(bytes=5.0, most={2: 3}, least={1: 1}, new=0, pushed=4, site_most=7)):
        assert Allowance.of(allowance.text()) == allowance
    assert Allowance().text() == ""


@given(book=books(), pages=st.lists(st.integers(0, 39), unique=True), allowance=limits(), budget=st.integers(0, 40))
def test_a_batch_that_fits_can_be_paid_for(book: Book, pages: list[int], allowance: Allowance, budget: int) -> None:
    asked = np.array([page for page in pages if page < len(book) and book.known[page]], np.int64)
    balance = Balance(allowance, book, budget)
    fits = balance.fit(asked)
    balance.pay(Outcomes(asked[fits], np.zeros(np.count_nonzero(fits), np.int8)))
    assert balance.left == budget - np.count_nonzero(fits) >= 0
    assert not balance.open()[asked[fits]].any()


def test_looking_ahead_leaves_an_allowance_unchanged() -> None:
    book = Book.blank(5)
    balance = Balance(Allowance(site_most=2), book, 5)
    assert not balance.after(np.array([0, 1])).open().any()
    assert balance.open().all()
