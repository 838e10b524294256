"""What hints are worth: against Monte-Carlo, against planted sources, against liars, and when there are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.book import Book, Hints
from recrawl.choose.shock.plan import ShockPlan
from recrawl.learn.hints import Signals, plausible, signals_change

DAY = 86400.0


def book_with(
    signals: np.ndarray,
    *,
    gap: float = 10.0,
    covered: bool = True,
    sites: int = 1,
    kinds: tuple[str, ...] = ("lastmod",),
) -> Book:
    """Pages last visited `gap` days ago; the same signals and silence from every kind."""
    pages = len(signals)
    book = Book.blank(pages, now=1000 * DAY)
    book.visits[:] = 1
    book.last_visit[:] = book.now - gap * DAY
    book.site[:] = np.arange(pages) % sites
    shape = (len(kinds), pages)
    told = np.broadcast_to(signals, shape).astype(np.int16)
    until = np.full(shape, book.now if covered else -np.inf)
    book.hints = Hints(kinds, told, np.full(shape, -np.inf), until)
    return book


def taught(recall: float, alarms: float, *, rounds: int = 60, seed: int = 1, sites: int = 1) -> Book:
    """A book whose memory has seen so many rounds of visits to pages with a planted source."""
    rng = np.random.default_rng(seed)
    memory: dict[str, np.ndarray] = {}
    pages, gap, u = np.arange(100), 10.0, 0.3
    book = book_with(np.zeros(100), gap=gap, sites=sites)
    for _ in range(rounds):
        true = rng.poisson(recall * u, 100)
        missed = rng.poisson((1 - recall) * u, 100)
        book = book_with(true + rng.poisson(alarms * gap, 100), gap=gap, sites=sites)
        book.memory = memory
        signals = Signals.of(book)
        signals.predict(pages, np.full(100, -np.expm1(-u)))
        signals.observe(pages, true + missed > 0)
        signals.keep(book)
    return book


def probed(book: Book, visits: float) -> list[int]:
    """The sites that are owed a visit after four days, if so many visits a cycle belong to sites."""
    book.memory["shock.times"] = np.arange(996.0, 1000.0)
    return sorted(book.site[ShockPlan(book, np.ones(len(book), bool), 20).probes(visits)[0]].tolist())


def test_a_site_with_a_reliable_source_gets_fewer_visits() -> None:
    book = taught(0.99, 1e-4, sites=2)
    assert book.hints is not None
    book.hints.until[:, book.site == 1] = -np.inf
    assert probed(book, 1.0) == [1], "the source says nothing of the other site"
    assert probed(book, 3.0) == [0, 1], "it may have fallen silent"


@pytest.mark.parametrize(("recall", "alarms"), [(0.0, 0.0), (0.0, 0.3), (0.1, 0.1)])
def test_a_source_with_low_recall_takes_no_visits_from_a_site(recall: float, alarms: float) -> None:
    assert probed(taught(recall, alarms, sites=2), 1.0) == [0, 1]


def test_without_hints_nothing_changes() -> None:
    book = Book.blank(3, now=5 * DAY)
    signals, chance = Signals.of(book), np.array([0.1, 0.5, 0.9])
    assert signals.predict(np.arange(3), chance) is chance
    signals.observe(np.arange(3), np.array([True, False, True]))
    signals.keep(book)
    assert not book.memory
    assert signals.trust() == []


@pytest.mark.parametrize("alarms", [None, 0.0, 0.3])
def test_silence_of_a_source_without_trust_does_not_even_break_ties(alarms: float | None) -> None:
    """Of a new source, and of one whose signals say nothing; pages that it does not list have the same probability."""
    book = book_with(np.zeros(100)) if alarms is None else taught(0.0, alarms)
    told = np.zeros((1, 100), np.int16)
    told[0, 7] = 1
    book.hints = Hints(("lastmod",), told, np.full((1, 100), -np.inf), np.full((1, 100), book.now))
    chance = np.random.default_rng(3).random(100)
    got = Signals.of(book).predict(np.arange(100), chance)
    assert (got[np.arange(100) != 7] == chance[np.arange(100) != 7]).all()
    assert got[7] == pytest.approx(chance[7], abs=0.01)
    if alarms is None:
        assert got[7] > chance[7], "a first signal does"


def test_the_formula_equals_a_simulation() -> None:
    """P(unchanged | n signals), against 400,000 drawn histories."""
    rng = np.random.default_rng(5)
    recall, alarms, gap, u = 0.6, 0.05, 10.0, 0.4
    true, missed = rng.poisson(recall * u, 400_000), rng.poisson((1 - recall) * u, 400_000)
    told = true + rng.poisson(alarms * gap, 400_000)
    for n in (0, 1, 2):
        drawn = np.mean((true + missed == 0)[told == n])
        false = alarms * gap
        assert np.exp(-(1 - recall) * u) * (false / (false + recall * u)) ** n == pytest.approx(drawn, abs=0.01)


@pytest.mark.parametrize(("recall", "alarms"), [(0.95, 1e-3), (0.5, 0.03), (0.95, 0.1)])
def test_recall_and_false_alarms_of_a_planted_source_are_learned(recall: float, alarms: float) -> None:
    """What is believed in the end foretells as well as the truth would."""
    book = taught(recall, alarms, rounds=100)
    book.hints = book_with(np.array([0, 1, 2] * 33 + [0])).hints
    u, gap = 0.3, 10.0
    got = Signals.of(book).predict(np.arange(3), np.full(3, -np.expm1(-u)))
    false = alarms * gap
    truth = 1 - np.exp(-(1 - recall) * u) * (false / (false + recall * u)) ** np.arange(3)
    assert got == pytest.approx(truth, abs=0.06)


def test_an_uninformative_source_has_no_effect() -> None:
    book = taught(0.0, 0.1, rounds=100)
    book.hints = book_with(np.array([0, 1, 5] * 33 + [0])).hints
    got = Signals.of(book).predict(np.arange(3), np.full(3, 0.26))
    assert got == pytest.approx(np.full(3, 0.26), abs=0.03)
    (trust,) = Signals.of(book).trust()
    assert trust.recall < 0.05
    assert trust.precision == pytest.approx(0.26, abs=0.05)


@pytest.mark.parametrize("changes", [0.6, 1.5, 2.5])
def test_a_source_that_signals_all_pages_gains_no_trust(changes: float) -> None:
    """Not even where it would make up for chances that are wrong in a way that no factor mends."""
    rng = np.random.default_rng(3)
    memory: dict[str, np.ndarray] = {}
    book = book_with(np.zeros(100))
    for _ in range(60):
        gap = float(rng.integers(1, 20))
        book = book_with(np.full(100, gap), gap=gap)
        book.memory = memory
        believed = rng.choice([0.05, 0.3, 0.9], 100)
        signals = Signals.of(book)
        signals.predict(np.arange(100), -np.expm1(-believed))
        signals.observe(np.arange(100), rng.random(100) < -np.expm1(-(believed**changes)))
        signals.keep(book)
    (trust,) = Signals.of(book).trust()
    assert trust.heeded < 0.06
    chance = np.array([0.05, 0.3, 0.9])
    assert Signals.of(book).predict(np.arange(3), chance) == pytest.approx(chance, abs=0.06)


def test_pages_discovered_after_the_hints_were_read_are_handled() -> None:
    book = book_with(np.arange(100) % 3)
    assert book.hints
    book.hints = book.hints.first(97)
    signals, pages = Signals.of(book), np.arange(97)
    chance = signals.predict(pages, np.full(97, 0.3))
    assert ((chance > 0) & (chance < 1)).all()
    signals.observe(pages, chance > 0.3)
    signals.keep(book)
    assert Signals.of(book).trust()


def test_sites_share_evidence_about_sources() -> None:
    """A site that was never visited after a signal is believed as others of its kind deserve."""
    book = taught(0.99, 1e-4, sites=9)
    fresh = book_with(np.ones(100), sites=10)
    alone = Signals.of(fresh).predict(np.arange(100), np.full(100, 0.1))
    fresh.memory = book.memory
    with_others = Signals.of(fresh).predict(np.arange(100), np.full(100, 0.1))
    assert with_others[9] > alone[9]
    assert with_others[9] > 0.85


def test_a_source_gains_no_trust_from_signals_of_another_kind() -> None:
    """An honest feed beside a sitemap that says something at random: all is laid to the feed."""
    rng = np.random.default_rng(3)
    pages = np.arange(100)
    memory: dict[str, np.ndarray] = {}
    for _ in range(60):
        changed = rng.random(100) < 0.1
        book = book_with(np.zeros(100), kinds=("lastmod", "feed"))
        assert book.hints is not None
        hints = book.hints
        book.hints = Hints(
            hints.kinds, np.stack((rng.random(100) < 0.3, changed)).astype(np.int16), hints.claimed, hints.until
        )
        book.memory = memory
        signals = Signals.of(book)
        chance = signals.predict(pages, np.full(100, 0.1))
        seen = np.argsort(-chance)[:20]  # as a policy would
        signals.observe(seen, changed[seen])
        signals.keep(book)
    trust = {row.kind: row for row in signals.trust()}
    assert trust["feed"].recall > 0.9
    assert trust["lastmod"].recall < 0.2


def test_old_evidence_decays() -> None:
    book = taught(0.99, 1e-4)
    before = Signals.of(book).trust()[0]
    book.now += 2000 * DAY
    after = Signals.of(book).trust()[0]
    assert after.silent < before.silent * 0.01
    book.now -= 9000 * DAY  # a clock that steps back makes nothing grow
    assert Signals.of(book).trust()[0].silent == pytest.approx(before.silent)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 40))
def test_any_hints_give_probabilities(seed: int, pages: int) -> None:
    """Numbers stay chances, silence never raises one, and what is kept can be gone on from."""
    rng = np.random.default_rng(seed)
    book = Book.blank(pages, now=float(rng.choice([0.0, 1.7e9])))
    book.site[:] = rng.integers(0, 3, pages)
    book.last_visit[:] = book.now - rng.choice([-1e5, 0.0, 1e3, 1e7, np.inf], pages)
    shape = (2, pages)
    until = book.now - rng.choice([-1e9, 0.0, 1e5, np.inf], shape)
    book.hints = Hints(("lastmod", "feed"), rng.choice([0, 1, 30_000], shape).astype(np.int16), until, until)
    base = rng.choice([0.0, 1e-9, 0.3, 1.0], pages)
    for _ in range(3):
        signals = Signals.of(book)
        some = np.flatnonzero(rng.random(pages) < 0.7)
        chance = signals.predict(some, base[some])
        assert ((chance >= 0) & (chance <= 1)).all()
        quiet = (book.hints.signals[:, some] == 0).all(axis=0)
        assert (chance[quiet] <= np.maximum(base[some][quiet], 1e-8)).all()
        signals.observe(some, rng.random(len(some)) < 0.5)
        signals.keep(book)
    assert all(np.isfinite(column).all() for column in book.memory.values())


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_impossible_dates_are_not_signals(claims: list[float]) -> None:
    claimed = np.array(claims)
    told = signals_change(claimed, np.full(len(claims), np.nan), np.full(len(claims), -np.inf), 1e9)
    assert (told <= plausible(claimed, 1e9)).all()
    assert not told[~np.isfinite(claimed)].any()
    assert not signals_change(claimed, claimed, np.full(len(claims), -np.inf), 1e9).any(), "said twice"
