"""The mixture of the change model and the Poisson model, and probes of sites without expected gain."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.book import Book
from recrawl.choose.shock.plan import ShockPlan
from recrawl.choose.shock.policy import Shock
from recrawl.columns import DAY
from recrawl.errors import UsageError
from recrawl.learn.shocks.mixture import Mixture, PoissonRate
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks

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


@pytest.mark.slow
def test_each_site_uses_the_model_that_fits_it() -> None:
    book = crawled(days=150)
    mixture = Mixture.of(book)
    assert not mixture.shared(np.arange(EACH)).any(), "here every page changes by itself"
    assert mixture.shared(np.arange(EACH, 2 * EACH)).all(), "here all change at once"
    alone = PoissonRate(book).predict(np.arange(EACH))
    np.testing.assert_allclose(mixture.predict(np.arange(EACH)), alone, atol=0.05)
    together = mixture.change_model.predict(np.arange(EACH, 2 * EACH))
    np.testing.assert_allclose(mixture.predict(np.arange(EACH, 2 * EACH)), together, atol=0.05)


def test_the_change_model_alone_counts_on_a_short_record() -> None:
    book = crawled(days=3)
    mixture = Mixture.of(book)
    pages = np.arange(2 * EACH)
    np.testing.assert_array_equal(mixture.predict(pages), mixture.change_model.predict(pages))


def test_the_lead_is_computed_from_predictions_before_each_visit() -> None:
    """The lead of a single visit is the difference of the log-likelihoods."""
    book = Planted(1).book()
    book.now = 5 * DAY
    one = Outcomes(np.array([EACH]), np.array([Outcome.CHANGED], np.int8))
    note(Shock(), book, one, np.array([book.now]))
    fresh = Planted(1).book()
    fresh.now = 5 * DAY
    mixture = Mixture.of(fresh)
    alone, shared = PoissonRate(fresh).predict(one.pages)[0], mixture.change_model.predict(one.pages)[0]
    assert book.memory["shock.lead"][0].tolist() == pytest.approx([0.0, np.log(alone / shared)], rel=1e-4)


@pytest.mark.parametrize("text", ["nobody", "alone+nobody", "alone+alone", "", "+", "links", "alone+directory"])
def test_unknown_experts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="experts must be alone or none"):
        Shock(experts=text)


@pytest.mark.slow
def test_a_site_without_expected_gain_is_still_probed() -> None:
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
    plan = ShockPlan(book, np.ones(400, bool), 20)
    probes, _ = plan.probes(10.0)
    assert len(probes) == 20
    assert len(np.unique(book.site[probes])) == 20
    assert len(plan.probes(0.0)[0]) == 0
