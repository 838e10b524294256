"""The revisit rules of other crawlers, against values worked out by hand from their code (spec P9)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.crawlers.heritrix1 import Heritrix1
from recrawl.choose.crawlers.interval_base import IntervalRule
from recrawl.choose.crawlers.manifoldcf import ManifoldCF
from recrawl.choose.crawlers.marginalia import Marginalia, queue, skip_probability
from recrawl.choose.crawlers.norconex import PERIODS, pass_times
from recrawl.choose.crawlers.nutch import Nutch
from recrawl.choose.crawlers.stormcrawler import StormCrawler
from recrawl.choose.protocol import Learner
from recrawl.errors import UsageError
from recrawl.lab.replays.small_worlds import AlwaysChanged, NeverChanged
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks

DAY = 86400.0
MINUTE = 60.0
RULES = ("nutch", "nutch(sync=false)", "stormcrawler", "heritrix1", "manifoldcf")
NEW, SAME, CHANGED, GONE, FAILED = Outcome.NEW, Outcome.UNCHANGED, Outcome.CHANGED, Outcome.GONE, Outcome.FAILED


def gaps(rule: IntervalRule[Any], outcomes: list[Outcome], begin: float = 1.7e9) -> list[float]:
    """One page, visited whenever it is due: seconds from each visit to the next."""
    state, at = rule.start(Book.blank(1)), begin
    found = []
    for what in outcomes:
        state = rule.step(state, np.array([what], np.int8), np.array([at]))
        found.append(float(state.due[0] - at))
        at = float(state.due[0])
    return found


def days(values: list[float], places: int) -> list[float]:
    return [round(value / DAY, places) for value in values]


# -- Nutch -----------------------------------------------------------------------------------------------------


def test_nutch_a_page_that_never_changes() -> None:
    found = days(gaps(Nutch(), [NEW, *[SAME] * 3]), 1)
    assert found == [30.0, 33.0, 44.1, 75.0]


def test_nutch_with_shipped_values_ends_in_a_cycle_of_81_and_89_days() -> None:
    """The cap makes it forget the page, so the next visit cannot tell; then it grows once more, and so on."""
    found = days(gaps(Nutch(), [NEW, *[SAME] * 10]), 1)
    assert found[4:] == [81.0, 89.1, 81.0, 89.1, 81.0, 89.1, 81.0]


@pytest.mark.parametrize("sync", [True, False])
def test_nutch_a_page_that_always_changes(sync: bool) -> None:
    found = days(gaps(Nutch(sync=sync), [NEW, *[CHANGED] * 6]), 2)
    assert found == [30.0, 24.0, 19.2, 15.36, 12.29, 9.83, 7.86]


def test_nutch_without_sync_grows_by_its_rate_alone() -> None:
    assert days(gaps(Nutch(sync=False), [NEW, SAME, SAME, SAME, SAME]), 2) == [30.0, 42.0, 58.8, 82.32, 115.25]
    assert days(gaps(Nutch(sync=False), [NEW, *[SAME] * 8]), 1)[5:] == [81.0, 113.4, 81.0, 113.4]


def test_nutch_visits_an_unchanged_page_ever_faster_where_max_binds() -> None:
    """NUTCH-1564: max and cap of seven days."""
    week = Nutch(max=7 * DAY, cap=7 * DAY)
    assert days(gaps(week, [NEW, *[SAME] * 6]), 1) == [7.0, 4.9, 3.4, 2.4, 1.7, 1.2, 0.8]
    year = days(gaps(Nutch(cap=1e10), [NEW, *[SAME] * 12]), 6)
    binding = year[6:]
    assert year[5] > binding[0] > binding[-1]
    for one, other in pairwise(binding):
        assert other == pytest.approx(0.7 * one, rel=1e-4)


def test_nutch_does_not_shift_beyond_its_maximum() -> None:
    """0.3 of the age is over max: the whole-number division makes the offset 0."""
    rule = Nutch(max=7 * DAY, cap=7 * DAY)
    at = 1.7e9
    for age, gap in ((23.0, 0.1), (24.0, 7.0)):
        state = rule.start(Book.blank(1))._replace(
            interval=np.array([7 * DAY]), modified=np.array([at - age * DAY]), signed=np.array([True])
        )
        due = rule.step(state, np.array([SAME], np.int8), np.array([at])).due[0]
        assert (due - at) / DAY == pytest.approx(gap)


def test_nutch_errors_and_gone_pages() -> None:
    found = gaps(Nutch(), [NEW, FAILED, FAILED, FAILED, FAILED, FAILED, FAILED])
    assert days(found, 3) == [30.0, 1.0, 1.0, 45.0, 67.5, 81.0, 81.0]
    assert days(gaps(Nutch(), [NEW, FAILED, FAILED, CHANGED, FAILED]), 3) == [30.0, 1.0, 1.0, 24.0, 1.0]
    assert days(gaps(Nutch(), [NEW, GONE, GONE, GONE]), 3) == [30.0, 45.0, 67.5, 81.0]


def test_nutch_ignores_times_beyond_the_cap() -> None:
    rule, book = Nutch(), Book.blank(2, now=100 * DAY)
    book.memory["nutch.due"] = np.array([191 * DAY, 189 * DAY])
    assert [seen.pages.tolist() for seen in drive(rule, NeverChanged(), book, 2, 1)] == [[0]]


def test_nutch_stays_within_its_bounds_and_whole_seconds() -> None:
    rule = Nutch()
    state = rule.start(Book.blank(1))
    at = 1.7e9
    for _ in range(200):
        state = rule.step(state, np.array([CHANGED], np.int8), np.array([at]))
        at += 1.0
        assert state.interval[0] == int(state.interval[0]) >= rule.min
    assert state.interval[0] == 60


# -- StormCrawler ----------------------------------------------------------------------------------------------


def minutes(values: list[float]) -> list[float]:
    return [round(value / MINUTE, 6) for value in values]


def test_stormcrawler_runs() -> None:
    down = minutes(gaps(StormCrawler(), [NEW, *[CHANGED] * 8]))
    assert down == [1440, 750, 405, 232, 146, 103, 81, 70, 65]
    up = minutes(gaps(StormCrawler(), [NEW, *[SAME] * 8]))
    assert up == [1440, 2160, 3240, 4860, 7290, 10935, 16402, 20160, 20160]


def test_stormcrawler_restarts_after_a_failure_and_gives_up_after_three() -> None:
    assert minutes(gaps(StormCrawler(), [NEW, SAME, SAME, FAILED, CHANGED, SAME])) == [
        1440,
        2160,
        3240,
        120,
        1440,
        2160,
    ]
    never = gaps(StormCrawler(), [NEW, FAILED, FAILED, FAILED])
    assert minutes(never[:3]) == [1440, 120, 120]
    assert never[3] == np.inf
    assert minutes(gaps(StormCrawler(error=5000), [NEW, FAILED, FAILED, FAILED, GONE]))[3:] == [5000, 5000]


def test_a_page_that_is_never_due_does_not_fill_the_budget() -> None:
    rule, book = StormCrawler(fill=True), Book.blank(2, now=1e9)
    rule.learn(book, Outcomes(np.array([0, 1]), np.array([GONE, NEW], np.int8)), np.full(2, 1e9))
    assert [seen.pages.tolist() for seen in drive(rule, NeverChanged(), book, 2, 1)] == [[1]]


# -- Heritrix 1, ManifoldCF ------------------------------------------------------------------------------------


def test_heritrix_waits_by_a_factor_within_bounds() -> None:
    hours = [value / 3600 for value in gaps(Heritrix1(), [NEW, SAME, SAME, FAILED, CHANGED, CHANGED, CHANGED])]
    assert hours == pytest.approx([24, 36, 54, 54, 36, 24, 16])
    assert days(gaps(Heritrix1(), [NEW, *[SAME] * 12]), 3)[-1] == 28.0
    assert gaps(Heritrix1(), [NEW, *[CHANGED] * 12])[-1] == 3600.0


def test_manifoldcf_uses_the_average_time_between_changes() -> None:
    """Days: new at 0, wait 1 + 0/1; changed at 1, wait 1 + 1/2; same at 2.5, wait 1 + 2.5/2; changed at 4.75, ..."""
    found = [value / DAY for value in gaps(ManifoldCF(), [NEW, CHANGED, SAME, CHANGED, FAILED])]
    assert found == pytest.approx([1, 1.5, 2.25, 1 + 4.75 / 3, 1 + 4.75 / 3])
    assert [value / DAY for value in gaps(ManifoldCF(max=1800), [NEW, CHANGED, SAME, CHANGED])][1:] == [1.25] * 3


def test_manifoldcf_doubles_the_age_of_a_page_that_never_changes() -> None:
    assert days(gaps(ManifoldCF(), [NEW, *[SAME] * 6]), 3) == [1, 2, 4, 8, 16, 30, 30]


def test_manifoldcf_forgets_a_removed_page() -> None:
    assert [value / DAY for value in gaps(ManifoldCF(), [NEW, CHANGED, GONE, NEW, CHANGED])] == [1, 1.5, 1, 1, 1.5]


# -- Norconex --------------------------------------------------------------------------------------------------


def test_norconex_lets_everything_through_by_default() -> None:
    book = Book.blank(4, now=1e9)
    book.last_try[:3] = [1e9, 1e9 - 1, 1e9 - DAY]
    chosen = [seen.pages.tolist() for seen in drive(make_policy("norconex"), NeverChanged(), book, 9, 1)]
    assert chosen == [[3, 2, 1, 0]]


@pytest.mark.parametrize(("word", "seconds"), [*PERIODS.items(), ("1.5", 1.5 * DAY)])
def test_norconex_waits_longer_than_its_minimum_interval(word: str, seconds: float) -> None:
    policy = make_policy(f"norconex(min_frequency={word})")
    for since, passed in ((seconds - 1, seconds == 0), (seconds, seconds == 0), (seconds + 1, seconds < np.inf)):
        book = Book.blank(1, now=1.7e9)
        book.last_try[0] = book.now - min(since, 1e12) if since > 0 else book.now
        assert bool(list(drive(policy, NeverChanged(), book, 1, 1))) == passed, (word, since)


def test_norconex_uses_sitemaps_where_the_book_has_hints() -> None:
    book = Book.blank(5, now=1000 * DAY)
    book.last_try[:] = [990 * DAY, 990 * DAY, 990 * DAY, 990 * DAY, -np.inf]
    book.memory["hints.lastmod"] = np.array([989 * DAY, 991 * DAY, np.nan, np.nan, 1 * DAY])
    book.memory["hints.changefreq"] = np.array([0.0, np.inf, PERIODS["monthly"], PERIODS["weekly"], np.inf])
    chosen = [seen.pages.tolist() for seen in drive(make_policy("norconex"), NeverChanged(), book, 9, 1)]
    assert chosen == [[4, 1, 3]]
    deaf = [seen.pages.tolist() for seen in drive(make_policy("norconex(sitemap=false)"), NeverChanged(), book, 9, 1)]
    assert sorted(deaf[0]) == [0, 1, 2, 3, 4]


@given(st.lists(st.tuples(*[st.sampled_from([-np.inf, 0.0, 50.0, np.nan, 90.0])] * 3), max_size=20))
def test_norconex_pass_times_are_never_nan(rows: list[tuple[float, float, float]]) -> None:
    table = np.array(rows, float).reshape(-1, 3)
    processed = np.where(np.isnan(table[:, 0]), -np.inf, table[:, 0])
    due = pass_times(processed, table[:, 1], np.abs(table[:, 2]), 5.0)
    assert not np.isnan(due).any()
    assert (due[processed == -np.inf] == -np.inf).all()


# -- Marginalia ------------------------------------------------------------------------------------------------


def test_marginalia_bounds_of_the_skip_probability() -> None:
    def one(visited: int, same: int, gone_through: int) -> float:
        return float(skip_probability(*(np.array([value]) for value in (visited, same, gone_through)))[0])

    assert one(0, 0, 0) == 0.0
    assert one(25, 25, 25) == 0.0
    assert one(26, 26, 26) == 0.5
    assert one(40, 10, 60) == 0.25
    assert one(40, 0, 1000) == 0.0
    assert one(500, 0, 1001) == 0.5
    assert one(500, 300, 1001) == 0.6
    assert one(500, 500, 1001) == 0.75
    assert one(900, 0, 10001) == 0.75
    assert one(900, 900, 10001) == 0.99


def visited(policy: Marginalia, book: Book, world: Any, budget: int, seed: int = 1) -> list[int]:
    return [page for seen in drive(policy, world, book, budget, seed) for page in seen.pages.tolist()]


def old_book(sites: list[int]) -> Book:
    book = Book.blank(sum(sites), now=100 * DAY)
    book.site[:] = np.repeat(np.arange(len(sites)), sites)
    book.note(Outcomes(np.arange(len(book)), np.full(len(book), NEW, np.int8)), 0.0)
    return book


def test_marginalia_visits_small_sites_whole() -> None:
    book = old_book([26, 3, 20])
    assert sorted(visited(Marginalia(), book, NeverChanged(), 100)) == list(range(49))


@pytest.mark.parametrize(("changed", "low", "high"), [(0.0, 0.5, 0.5), (0.7, 0.7, 0.7), (1.0, 1.0, 1.0)])
def test_marginalia_skips_as_many_pages_as_were_unchanged(changed: float, low: float, high: float) -> None:
    book = old_book([1000] * 20)
    share = len(visited(Marginalia(), book, AlwaysChanged(4, changed=changed, failed=0.0), 10**6)) / len(book)
    assert low - 0.02 < share < high + 0.03


def test_marginalia_skips_most_of_a_large_unchanged_site() -> None:
    book = old_book([100_000])
    found = np.array(visited(Marginalia(), book, NeverChanged(), 10**6))
    assert (found < 26).sum() == 26
    parts = [(26, 1000, 0.5), (1001, 10_000, 0.25), (10_001, 100_000, 0.01)]
    for begin, end, share in parts:
        inside = ((found >= begin) & (found < end)).mean() * len(found) / (end - begin)
        assert inside == pytest.approx(share, abs=0.06 if end == 1000 else 0.02)


def test_marginalia_visits_new_pages_of_every_site() -> None:
    book = old_book([3000, 40])
    book.forget(np.arange(500, 900))
    assert set(range(500, 900)) <= set(visited(Marginalia(), book, NeverChanged(), 10**6))


def test_marginalia_stops_visiting_a_failing_site() -> None:
    book = old_book([500, 30])
    book.last_try[500:] += 1.0

    class Down:
        def visit(self, picks: Picks) -> Outcomes:
            return Outcomes(picks.pages, np.where(picks.pages < 500, np.int8(FAILED), np.int8(SAME)))

    found = visited(Marginalia(), book, Down(), 10**6)
    assert 21 <= sum(page < 500 for page in found) <= 26
    assert sum(page >= 500 for page in found) >= 26


def test_marginalia_continues_where_the_budget_ended() -> None:
    book = old_book([10, 10, 10])
    seen: list[int] = []
    for _ in range(6):
        book.now += DAY
        now = visited(Marginalia(), book, NeverChanged(), 5)
        book.note(Outcomes(np.array(now), np.full(len(now), SAME, np.int8)), book.now)
        seen += now
    assert sorted(seen) == list(range(30))


def test_marginalia_queue_is_in_stored_order_behind_the_page_tried_last() -> None:
    book = old_book([4, 3])
    book.last_try[:] = [5, 9, 5, 5, 2, 2, 2]
    pages, ends = queue(book)
    assert pages.tolist() == [4, 5, 6, 2, 3, 0, 1]
    assert ends.tolist() == [3, 7]


# -- what the interval rules share ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", RULES)
@given(seed=st.integers(0, 2**32), budget=st.integers(1, 40), cycles=st.integers(1, 8), step=st.sampled_from([0.3, 5]))
def test_only_due_pages_are_visited_unless_the_budget_is_filled(
    text: str, seed: int, budget: int, cycles: int, step: float
) -> None:
    lean = make_policy(text)
    full = make_policy(f"{text[:-1]}, fill=true)" if text.endswith(")") else f"{text}(fill=true)")
    assert isinstance(lean, IntervalRule)
    assert isinstance(lean, Learner)
    book = Book.blank(30)
    world = AlwaysChanged(seed, failed=0.2)
    for _ in range(cycles):
        book.now += step * DAY
        due = lean.due_times(lean.load(book), book.now)
        chosen = np.concatenate([np.zeros(0, int), *(s.pages for s in drive(lean, NeverChanged(), book, budget, seed))])
        assert len(chosen) == min(budget, int((book.known & (due <= book.now)).sum()))
        assert (due[chosen] <= book.now).all()
        assert (np.sort(due[chosen]) == due[chosen]).all()
        seen = list(drive(full, world, book, budget, seed))
        pages = np.concatenate([np.zeros(0, int), *(batch.pages for batch in seen)])
        assert len(pages) == min(budget, int((book.known & (due < np.inf)).sum()))
        assert pages[: len(chosen)].tolist() == chosen.tolist()
        what = np.concatenate([np.zeros(0, np.int8), *(batch.what for batch in seen)])
        note(lean, book, Outcomes(pages, what), np.full(len(pages), book.now))


@pytest.mark.parametrize("text", RULES)
@given(
    what=st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=12),
    begin=st.sampled_from([0.0, 1.7e9]),
)
def test_columns_equal_page_by_page_updates(text: str, what: list[Outcome], begin: float) -> None:
    """Pages do not disturb each other, the time's origin does not matter, and no time is undefined."""
    rule = make_policy(text)
    assert isinstance(rule, IntervalRule)
    book = Book.blank(len(what), now=begin)
    for turn in range(3):
        at = begin + DAY * (turn + 1) + np.arange(len(what), dtype=np.float64)
        rule.learn(book, Outcomes(np.arange(len(what)), np.roll(what, turn).astype(np.int8)), at)
    for page in range(len(what)):
        alone = Book.blank(1, now=begin)
        for turn in range(3):
            outcome = np.roll(what, turn)[page]
            at = np.array([begin + DAY * (turn + 1) + page], np.float64)
            rule.learn(alone, Outcomes(np.array([0]), np.array([outcome], np.int8)), at)
        for key, column in alone.memory.items():
            assert book.memory[key][page] == column[0], key
            assert not np.isnan(column[0])


@pytest.mark.parametrize("text", RULES)
def test_learning_keeps_other_stored_columns(text: str) -> None:
    rule, book = make_policy(text), Book.blank(3)
    assert isinstance(rule, Learner)
    rule.learn(book, Outcomes(np.arange(2), np.full(2, NEW, np.int8)), np.array([5.0, 6.0]))
    before = {key: (column, column.copy()) for key, column in book.memory.items()}
    rule.learn(book, Outcomes(np.arange(3), np.full(3, CHANGED, np.int8)), np.full(3, 9e6))
    for key, (column, copy) in before.items():
        assert column is not book.memory[key]
        np.testing.assert_array_equal(column, copy)


@pytest.mark.parametrize(
    "text",
    [
        "nutch(min=100, max=50)",
        "nutch(dec=2)",
        "nutch(cap=0)",
        "nutch(sync=1)",
        "nutch(fill=maybe)",
        "stormcrawler(min=100, max=50)",
        "stormcrawler(decr=-1)",
        "stormcrawler(interval=0)",
        "heritrix1(factor=0.5)",
        "heritrix1(min=7200, max=3600)",
        "manifoldcf(interval=10, max=5)",
        "norconex(min_frequency=fortnightly)",
        "norconex(min_frequency=-1)",
        "norconex(min_frequency=nan)",
        "marginalia(fill=3)",
    ],
)
def test_invalid_parameters_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        make_policy(text)


def test_booleans_are_written_as_in_the_settings_file() -> None:
    for text in ("nutch(sync=false)", "nutch(sync=False)"):
        policy = make_policy(text)
        assert isinstance(policy, Nutch)
        assert policy.sync is False
