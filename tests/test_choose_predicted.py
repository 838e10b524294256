"""`predicted` as it learns: from its own visits only, the same after a restart, and better than chance."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from recrawl.book import Book, Directories
from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.histories.history import History, assemble
from recrawl.lab.replays.replay import Setup, replay
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks

DAY = 86400.0


class Coins:
    """A world in which each page changes by its own coin between visits."""

    def __init__(self, rates: np.ndarray, seed: int) -> None:
        self.rates, self.rng = rates, np.random.default_rng(seed)

    def visit(self, picks: Picks) -> Outcomes:
        hit = self.rng.random(len(picks)) < self.rates[picks.pages]
        return Outcomes(picks.pages, np.where(hit, Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8))


def book_of(pages: int) -> Book:
    book = Book.blank(pages, now=1.7e9)
    book.folders = Directories(np.array([-1]), np.zeros(1, np.int32))
    book.visits[:] = book.changes[:] = 1
    book.last_visit[:] = book.last_try[:] = book.last_change[:] = book.now
    return book


def crawl(text: str, book: Book, world: Coins, cycles: int, budget: int) -> list[list[int]]:
    policy = make_policy(text)
    chosen = []
    for k in range(cycles):
        book.now += DAY
        batches = list(drive(policy, world, book, budget, seed=k))
        seen = Outcomes(np.concatenate([b.pages for b in batches]), np.concatenate([b.what for b in batches]))
        note(policy, book, seen, np.full(len(seen), book.now))
        chosen.append(seen.pages.tolist())
    return chosen


def weekly(pages: int, weeks: int, seed: int = 1) -> History:
    """Each page changes on one weekday of its own, four weeks out of five."""
    rng = np.random.default_rng(seed)
    page, time = [], []
    for number in range(pages):
        on = 7 * np.flatnonzero(rng.random(weeks) < 0.8) + number % 7
        moments = np.concatenate(([0.0], (on + 0.5) * DAY))
        page += [number] * len(moments)
        time += moments.tolist()
    urls = [f"https://s{number % 3}.example/{number}" for number in range(pages)]
    version = np.arange(len(page))
    return assemble(urls, np.array(page), np.array(time), version, change="text", carries=frozenset())


@pytest.mark.parametrize("text", ["predicted(retrain=3)", "predicted(method=1d)", "predicted(pick=coin, retrain=2)"])
def test_all_learned_state_is_in_the_book(text: str) -> None:
    """A process that begins with the memory of another makes the same choices."""
    rates = np.linspace(0.05, 0.95, 60)
    book, world = book_of(60), Coins(rates, 1)
    crawl(text, book, world, 8, 20)
    kept = {name: np.array(column) for name, column in book.memory.items()}
    assert all(column.dtype != object for column in kept.values())
    other = copy.deepcopy(book)
    other.memory = kept
    assert crawl(text, book, Coins(rates, 2), 6, 20) == crawl(text, other, Coins(rates, 2), 6, 20)


def test_it_fits_a_model_on_schedule_and_not_before() -> None:
    book = book_of(40)
    world = Coins(np.full(40, 0.5), 1)
    crawl("predicted(retrain=4)", book, world, 3, 20)
    assert "predicted.model.mix" not in book.memory
    crawl("predicted(retrain=4)", book, world, 1, 20)
    assert "predicted.model.mix" in book.memory


def test_a_model_of_an_older_version_with_other_columns_is_dropped() -> None:
    """Rows and models of other columns are of no use; what is known of pages stays."""
    rates = np.full(40, 0.5)
    book = book_of(40)
    crawl("predicted(retrain=2)", book, Coins(rates, 1), 6, 20)
    compared = book.memory["predicted.ledger.compared"].sum()
    del book.memory["predicted.columns"]
    book.memory["predicted.rows"] = book.memory["predicted.rows"][:, :-3]
    assert "own history" in next(make_policy("predicted").cycle(book, 4, np.random.default_rng(1))).reason
    crawl("predicted(retrain=2)", book, Coins(rates, 2), 1, 20)
    assert "predicted.model.mix" not in book.memory
    assert len(book.memory["predicted.rows"]) <= 20
    assert book.memory["predicted.ledger.compared"].sum() > compared


def test_it_prefers_pages_that_change() -> None:
    rates = np.where(np.arange(80) < 20, 0.9, 0.05)
    chosen = crawl("predicted", book_of(80), Coins(rates, 3), 40, 16)
    late = [page for pages in chosen[-10:] for page in pages]
    assert np.mean(np.array(late) < 20) > 0.8


def test_random_visits_carry_their_probability() -> None:
    book = book_of(100)
    picks = list(make_policy("predicted(explore=0.2)").cycle(book, 20, np.random.default_rng(1)))
    by_chance = picks[-1]
    assert "at random" in by_chance.reason
    assert len(by_chance) == 4
    assert by_chance.score == pytest.approx(4 / 84)


def test_failed_visits_are_not_learned_and_dead_pages_do_not_block_others() -> None:
    book = book_of(10)
    policy = make_policy("predicted(retrain=1)")
    failed = Outcomes(np.arange(10), np.full(10, Outcome.FAILED, np.int8))
    note(policy, book, failed, np.full(10, book.now + DAY))
    assert (book.memory["predicted.ledger.compared"] == 0).all()
    assert len(book.memory["predicted.labels"]) == 0
    book.failures[:5] = 6
    first = next(policy.cycle(book, 4, np.random.default_rng(1)))
    assert first.pages.min() >= 5


def test_weekdays_are_learned_while_crawling() -> None:
    """With as many visits as there are changes, who knows the weekdays finds changes sooner."""
    history = weekly(70, 20)
    setup = Setup(budget=10, cycle=DAY, cycles=130)
    best = replay(history, make_policy("predicted(retrain=30)"), setup)
    plain = replay(history, make_policy("change-frequency"), setup)
    assert best.delay < plain.delay * 0.9
    assert best.found.sum() > plain.found.sum() * 1.05


@pytest.mark.parametrize(
    "text",
    ["predicted(method=4d)", "predicted(retrain=0)", "predicted(retrain=1.5)", "predicted(explore=2)",
     "predicted(explore=-0.1)", "predicted(pick=worst)", "predicted(method=3d, experts=best)", "predicted(k=0)",
     "predicted(method=2d, train=9)", "predicted(method=3d, fits=0)", "predicted(words=1.5)"],
)  # fmt: skip
def test_invalid_parameters_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        make_policy(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("predicted(window=0)", "window"),
        ("predicted(method=2d, interval=0)", "interval"),
        ("predicted(omega=tfidf)", "omega must be one of last, changes, moves, even"),
        ("predicted(lags=x)", "invalid lags 'x'"),
        ("predicted(method=3d, lags=9-3)", "invalid lags '9-3'"),
    ],
)
def test_parameters_of_the_features_are_checked(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        make_policy(text)
