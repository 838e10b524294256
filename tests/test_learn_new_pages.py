"""New pages as signs of change in the pages that list them."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.book import Book
from recrawl.columns import DAY
from recrawl.learn.shocks.mixture import Mixture
from recrawl.learn.shocks.new_pages import FIRST_CRAWL, INITIAL, NewPages, note_hits
from recrawl.learn.shocks.url_templates import index_pages, url_templates
from recrawl.learn.structure.directories import places

URLS = [
    *("https://a.example/", "https://a.example/news/index.html", "https://a.example/news/old.html"),
    *("https://a.example/docs/", "https://a.example/news/new.html", "https://b.example/"),
]
FRONT, LISTING, SIBLING, OTHER, NEW, ELSEWHERE = range(6)
NOW = FIRST_CRAWL + 30 * DAY


def book_of(*, urls: list[str] = URLS, new: int = NEW, found: float = NOW - DAY) -> Book:
    """Pages that were all visited at time 0, and one that was found later."""
    book = Book.blank(len(urls), now=NOW)
    _, book.site, book.folder, book.folders = places(urls)
    book.form, book.index = url_templates(urls), index_pages(urls)
    book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, 0.0
    book.found[new] = book.last_visit[new] = found
    book.memory["shock.hits"] = np.array([10.0, 5.0])  # half of the visits found nothing: there is room to gain
    return book


def given(book: Book, probability: float = 0.2) -> list[float]:
    pages = np.arange(len(book))
    return [float(one) for one in NewPages.of(book).predict(pages, np.full(len(book), probability))]


def test_a_new_page_makes_changes_of_its_listing_the_front_page_and_its_siblings_likelier() -> None:
    expected = 1 - 0.8 * (1 - INITIAL)
    chances = given(book_of())
    assert [chances[page] for page in (LISTING, FRONT, SIBLING)] == pytest.approx(expected.tolist(), abs=0.01)
    assert [chances[page] for page in (OTHER, NEW, ELSEWHERE)] == [0.2] * 3


def test_an_index_page_stands_in_the_directory_above_its_own() -> None:
    urls = ["https://a.example/", "https://a.example/blog/", "https://a.example/blog/a/", "https://a.example/blog/b/"]
    chances = given(book_of(urls=urls, new=3), 0.0)
    assert chances == pytest.approx([INITIAL[1], INITIAL[0], INITIAL[2], 0.0], abs=0.01)


@pytest.mark.parametrize("found", [FIRST_CRAWL, NOW + 1], ids=["first crawl", "future"])
def test_pages_of_the_first_crawl_and_pages_not_found_yet_are_not_new(found: float) -> None:
    assert given(book_of(found=found)) == [0.2] * len(URLS)


def test_a_visit_after_the_page_was_found_has_seen_its_effect() -> None:
    book = book_of(found=NOW - 5 * DAY)
    book.last_visit[LISTING] = NOW - 5 * DAY  # the visit that found it
    chances = given(book)
    assert chances[LISTING] == 0.2
    assert chances[FRONT] > 0.2


def test_days_with_new_pages_count_not_the_pages() -> None:
    urls = [*URLS, "https://a.example/news/more.html"]
    book = book_of(urls=urls)
    once = given(book)[LISTING]
    book.found[-1] = book.found[NEW] + 60
    assert given(book)[LISTING] == pytest.approx(once)
    book.found[-1] = book.found[NEW] - 3 * DAY
    assert given(book)[LISTING] > once


def test_visits_teach_how_often_new_pages_change_each_relation_on_the_site_and_elsewhere() -> None:
    book = book_of()
    model = NewPages.of(book)
    before = model.predict(np.array([LISTING, FRONT, SIBLING]), np.zeros(3))
    for _ in range(30):
        model.observe(np.array([LISTING, SIBLING]), np.array([False, True]), lambda pages: np.zeros(len(pages)))
    model.keep(book)
    after = NewPages.of(book).predict(np.array([LISTING, FRONT, SIBLING]), np.zeros(3))
    assert after[0] < before[0] / 3
    assert after[1] == pytest.approx(before[1])
    assert after[2] > 3 * before[2]


def test_a_change_that_was_expected_anyway_is_weak_evidence() -> None:
    def learned(probability: float) -> float:
        model = NewPages.of(book_of())
        for _ in range(10):
            model.observe(np.array([SIBLING]), np.array([True]), lambda pages: np.full(len(pages), probability))
        return float(model.predict(np.array([SIBLING]), np.zeros(1))[0])

    assert learned(0.95) < learned(0.1)


def test_new_pages_that_tell_nothing_are_unlearned() -> None:
    """Three in ten visits find a change, with new pages or without: what new pages add falls below 4 points."""
    model, rng = NewPages.of(book_of()), np.random.default_rng(1)
    for _ in range(400):
        model.observe(np.array([SIBLING]), rng.random(1) < 0.3, lambda pages: np.full(len(pages), 0.3))
    assert model.predict(np.array([SIBLING]), np.zeros(1))[0] < 0.04


def test_the_visits_to_a_group_are_evidence_up_to_the_first_change() -> None:
    """Pages of a group that change at once do so for one reason."""
    urls = [*URLS, *(f"https://a.example/news/item-{letter}.html" for letter in "abcdefghijkl")]
    book = book_of(urls=urls)
    items, changed = np.arange(len(URLS), len(urls)), np.arange(12) >= 2
    kept = []
    for visits in (2, 3, 12):
        mixture = Mixture.of(book)
        mixture.score(items[:visits], changed[:visits])
        kept.append(mixture.new_pages.logs)
    assert not np.array_equal(kept[0], kept[1])
    np.testing.assert_array_equal(kept[1], kept[2])
    mixture.observe(items, changed)
    mixture.score(items, changed)  # a change of the group is known by now
    np.testing.assert_array_equal(mixture.new_pages.logs, kept[2])


def test_where_every_visit_finds_a_change_new_pages_do_not_count() -> None:
    book = book_of()
    note_hits(book.memory, np.ones(1000, bool))
    assert given(book) == pytest.approx([0.2] * len(URLS))


def test_the_mixture_uses_new_pages_and_works_without_directories() -> None:
    book = book_of()
    with_new = Mixture.of(book).predict(np.array([LISTING]))[0]
    book.folders = None
    assert with_new > 0.6 > Mixture.of(book).predict(np.array([LISTING]))[0]
