"""Change priors of pages in the shock model: what differs within a group before the second visit."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from recrawl.book import Book
from recrawl.choose.shock.policy import Shock
from recrawl.columns import DAY
from recrawl.lab.replays.small_worlds import batches
from recrawl.learn.shocks.model import Shocks
from recrawl.learn.shocks.new_pages import FIRST_CRAWL
from recrawl.learn.shocks.page_prior import INITIAL, WEIGHTS, PagePrior


def once_visited(pages: int = 20, now: float = 30 * DAY) -> Book:
    """Pages of one group, all visited once, when they were found."""
    book = Book.blank(pages, now=now)
    book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, 0.0
    book.form = np.ones(pages, np.int64)
    book.memory["shock.hits"] = np.array([10.0, 5.0])  # half of the visits found nothing: there is room to gain
    return book


def predicted(book: Book, *, prior: bool = True) -> np.ndarray:
    shocks = Shocks.of(book, "shock", book.form, prior=prior)
    return shocks.predict(np.arange(len(book)), shocks.bins.place(book.last_visit / DAY))


def test_a_page_with_a_higher_prior_is_likelier_to_have_changed() -> None:
    book = once_visited()
    book.prior = np.linspace(-2, 2, len(book), dtype=np.float32)
    assert (np.diff(predicted(book)) > 0).all()


def test_without_priors_or_with_the_parameter_off_pages_of_a_group_are_equal() -> None:
    book = once_visited()
    neutral = predicted(book)
    book.prior = np.linspace(-2, 2, len(book), dtype=np.float32)
    np.testing.assert_array_equal(predicted(book, prior=False), neutral)
    book.prior = np.zeros(len(book), np.float32)
    np.testing.assert_allclose(predicted(book), neutral)


def test_the_policy_visits_pages_with_the_highest_prior_first() -> None:
    book = once_visited(12)
    book.prior = np.zeros(12, np.float32)
    book.prior[[3, 7]] = 2.0
    assert sorted(chain.from_iterable(batches(Shock(explore=0), book, budget=2))) == [3, 7]
    chosen = chain.from_iterable(batches(Shock(explore=0, prior=False), book, budget=2))
    assert sorted(chosen) != [3, 7]


def test_the_rate_of_a_group_is_relative_to_the_priors_of_the_pages_watched() -> None:
    book = once_visited(40)
    book.prior = np.repeat(np.log(np.array([0.5, 4], np.float32)), 20)
    book.memory["shock.prior"] = np.array([[0.0, 0.0, 99.0]])  # the weight is 1
    book.memory |= {"shock.times": np.array([0.0]), "shock.watched": np.zeros(40, np.float32)}
    watched = np.zeros(40, np.float32)
    watched[20:] = 100.0
    book.memory["shock.watched"], book.memory["shock.changes"] = watched, watched * np.float32(0.04)
    often = Shocks.of(book, "shock", book.form).group_rate[-1]
    book.prior = np.zeros(40, np.float32)
    assert often == pytest.approx(Shocks.of(book, "shock", book.form).group_rate[-1] / 4, rel=0.1)


def test_a_page_found_after_the_first_crawl_is_young_and_its_rate_falls_with_age() -> None:
    book = once_visited(5, now=FIRST_CRAWL + 101 * DAY)
    book.prior = np.array([0, 0, 0, 0, np.nan], np.float32)
    book.found[:] = [0, FIRST_CRAWL, FIRST_CRAWL + DAY, FIRST_CRAWL + 90 * DAY, FIRST_CRAWL + 90 * DAY]
    book.last_visit[:] = book.now - 10 * DAY
    factor = np.asarray(PagePrior.of(book).age_factor(np.arange(5)))
    assert factor[[0, 1, 4]].tolist() == [1, 1, 1]
    assert 1 < factor[2] < 2 < factor[3]


def test_the_age_factor_since_a_visit_adds_up_over_parts_of_the_time() -> None:
    book = once_visited(2, now=100 * DAY)
    book.prior = np.zeros(2, np.float32)
    book.found[1] = 80 * DAY

    def total(since: float, now: float) -> float:
        book.last_visit[:], book.now = since * DAY, now * DAY
        return float(np.asarray(PagePrior.of(book).age_factor(np.array([1])))[0]) * (now - since)

    assert total(80, 100) == pytest.approx(total(80, 85) + total(85, 100))


def test_visits_teach_how_far_the_priors_of_a_site_count() -> None:
    def weights(*, confirmed: bool) -> tuple[float, float]:
        """The weights of a site after visits to it, and of a site without visits."""
        book = once_visited(200)
        book.site[150:], book.form = 1, np.ones(200, np.int64)
        book.prior = np.tile(np.log(np.array([0.25, 4], np.float32)), 100)
        shocks, pages = Shocks.of(book, "shock", book.form), np.arange(150)
        likely = np.asarray(book.prior[:150] > 0)
        changed = likely if confirmed else np.arange(150) % 4 < 2
        for part in np.array_split(pages, 10):
            place = shocks.bins.place(book.last_visit[part] / DAY)
            shocks.score_prior(part, place, changed[part])
            shocks.observe(part, place, changed[part])
        shocks.prior.keep(book)
        first, second = PagePrior.of(book).weight.tolist()
        return first, second

    neutral = float(INITIAL @ WEIGHTS)
    site, other = weights(confirmed=True)
    assert neutral < other < site
    assert site > 0.9
    site, other = weights(confirmed=False)
    assert site < other < neutral


def test_without_a_prior_pages_of_any_age_are_equal() -> None:
    book = once_visited(4, now=100 * DAY)
    book.found[2:] = 90 * DAY
    neutral = predicted(book, prior=False)
    np.testing.assert_array_equal(predicted(book), neutral)
    book.prior = np.full(4, np.nan, np.float32)
    np.testing.assert_array_equal(predicted(book), neutral)
