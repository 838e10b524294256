"""Experts side by side: whom a site believes follows from what its visits found, and nobody is left alone for long."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.book import Book, Clusters, LinkGraph
from recrawl.choose import make_policy
from recrawl.choose.shock.plan import Plan
from recrawl.choose.shock.policy import Shock
from recrawl.errors import UsageError
from recrawl.learn.rates.poisson import PoissonRate
from recrawl.learn.shocks.mixture import EXPERTS, NEEDS, Mixture
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks

DAY = 86400.0
EACH = 120
"""Pages of a site."""


class Planted:
    """Two sites: on the first every page changes by itself, often or never; on the second all change at once."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.rates = self.rng.gamma(0.5, 0.2, EACH)
        self.changed = np.zeros(2 * EACH, bool)

    def book(self) -> Book:
        book = Book.blank(2 * EACH)
        book.site[EACH:] = 1
        book.folder[:] = np.arange(2 * EACH) // 20
        book.form = book.site.astype(np.int64)
        book.visits[:], book.changes[:], book.last_visit[:], book.last_try[:] = 1, 1, 0.0, 0.0
        return book

    def live_on(self) -> None:
        """A day passes."""
        self.changed[:EACH] |= self.rng.random(EACH) < -np.expm1(-self.rates)
        self.changed[EACH:] |= self.rng.random() < 0.15

    def visit(self, picks: Picks) -> Outcomes:
        what = np.where(self.changed[picks.pages], Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8)
        self.changed[picks.pages] = False
        return Outcomes(picks.pages, what)


def cycle(policy: Shock, world: Planted, book: Book, day: int, budget: int) -> Outcomes:
    """A day passes, and a cycle is made at its end."""
    world.live_on()
    book.now = day * DAY
    seen = list(drive(policy, world, book, budget, seed=day))
    whole = Outcomes(*(np.concatenate([getattr(one, name) for one in seen]) for name in ("pages", "what")))
    note(policy, book, whole, np.full(len(whole), book.now))
    return whole


def crawled(days: int) -> Book:
    """The book after so many daily cycles."""
    world = Planted(1)
    book = world.book()
    for day in range(1, days + 1):
        cycle(Shock(), world, book, day, budget=40)
    return book


def test_each_site_believes_who_is_right_about_it() -> None:
    book = crawled(days=150)
    council = Mixture.of(book, ["alone"])
    assert not council.shared(np.arange(EACH)).any(), "here every page changes by itself"
    assert council.shared(np.arange(EACH, 2 * EACH)).all(), "here all change at once"
    alone = PoissonRate(book).chance(np.arange(EACH))
    np.testing.assert_allclose(council.chance(np.arange(EACH)), alone, atol=0.05)
    together = council.opinion.chance(np.arange(EACH, 2 * EACH))
    np.testing.assert_allclose(council.chance(np.arange(EACH, 2 * EACH)), together, atol=0.05)


def test_nobody_is_believed_on_a_short_record() -> None:
    book = crawled(days=3)
    council = Mixture.of(book, ["alone", "directory"])
    pages = np.arange(2 * EACH)
    np.testing.assert_array_equal(council.chance(pages), council.opinion.chance(pages))


def test_an_expert_that_is_right_is_believed_whoever_it_is() -> None:
    """Shocks within directories of 20 pages, while all pages of the site have addresses of one form."""
    rng = np.random.default_rng(3)
    policy = Shock(experts="directory")
    book = Book.blank(200)
    book.folder[:] = np.arange(200) // 20
    book.form = np.zeros(200, np.int64)
    book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, 0.0
    changed = np.zeros(200, bool)
    for day in range(1, 60):
        book.now = day * DAY
        changed |= np.repeat(rng.random(10) < 0.1, 20)
        pages = rng.permutation(200)[:60]
        what = np.where(changed[pages], Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8)
        changed[pages] = False
        note(policy, book, Outcomes(pages, what), np.full(60, book.now))
    assert book.memory["shock.lead"][0, 0] > 25


def test_what_an_expert_is_worth_is_counted_from_what_was_known_before_each_visit() -> None:
    """Pages that all changed: who was told of the first of them would be right about the others; nobody was, of one."""
    book = Planted(1).book()
    book.now = 5 * DAY
    one = Outcomes(np.array([EACH]), np.array([Outcome.CHANGED], np.int8))
    note(Shock(), book, one, np.array([book.now]))
    fresh = Planted(1).book()
    fresh.now = 5 * DAY
    council = Mixture.of(fresh, ["alone"])
    alone, shared = PoissonRate(fresh).chance(one.pages)[0], council.opinion.chance(one.pages)[0]
    assert book.memory["shock.lead"][0].tolist() == pytest.approx([0.0, np.log(alone / shared)], rel=1e-4)


def test_all_experts_can_be_heard_at_once() -> None:
    policy = Shock(experts="+".join(EXPERTS))
    world = Planted(2)
    book = world.book()
    pages = np.arange(2 * EACH, dtype=np.int32)
    book.links = LinkGraph(
        np.arange(2 * EACH + 1) * 10, np.repeat(pages // 10 * 10, 10) + np.tile(np.arange(10), 2 * EACH)
    )
    book.clusters = Clusters(pages % 7, np.zeros((7, 7), np.int32))
    for day in range(1, 9):
        assert len(np.unique(cycle(policy, world, book, day, budget=30).pages)) == 30
    assert book.memory["shock.lead"].shape == (len(EXPERTS), 2)
    assert np.isfinite(book.memory["shock.lead"]).all()
    chance = Mixture.of(book, tuple(EXPERTS)).chance(np.arange(2 * EACH))
    assert ((chance > 0) & (chance < 1)).all()


def test_a_policy_needs_what_its_experts_do() -> None:
    assert make_policy("shock").needs == {"forms", "hints"}
    for name in EXPERTS:
        assert make_policy(f"shock(experts=alone+{name})" if name != "alone" else "shock").needs >= NEEDS.get(
            name, set()
        )
    assert make_policy("shock(experts=links+clusters)").needs == {"forms", "hints", "links", "clusters"}


@pytest.mark.parametrize("text", ["nobody", "alone+nobody", "alone+alone", "", "+", "alone+"])
def test_experts_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="experts are alone, directory"):
        Shock(experts=text)


def test_a_site_of_which_nothing_is_expected_is_looked_at_all_the_same() -> None:
    """The second site was still for so long that nobody would visit it; a share of the budget is its own."""

    class Still(Planted):
        def live_on(self) -> None:
            self.changed[:EACH] = True

    def gap(policy: Shock) -> int:
        world, last, longest = Still(1), 0, 0
        book = world.book()
        for day in range(1, 80):
            seen = cycle(policy, world, book, day, budget=20)
            if (book.site[seen.pages] == 1).any():
                last = day
            longest = max(longest, day - last)
        return longest

    # Half of the pages, 20 visits a day: a share of 0.04 is worth 0.4 visits a day to it.
    assert gap(Shock(explore=0, patience=0, probe=0.04)) <= 3
    assert gap(Shock(explore=0, patience=0, probe=0)) > 20


def test_probes_are_one_a_site_and_bounded() -> None:
    book = Book.blank(400, now=50 * DAY)
    book.site[:] = np.arange(400) // 4
    book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, 0.0
    book.memory["shock.times"] = np.arange(50.0)
    plan = Plan(book, np.ones(400, bool), 20)
    probes = plan.probes(10.0)
    assert len(probes) == 20
    assert len(np.unique(book.site[probes])) == 20
    assert len(plan.probes(0.0)) == 0
