"""Policies that judge sites by samples (spec P3 to P8): worked examples, and what each promises beyond the contract."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book, LinkGraph
from recrawl.choose import describe, make_policy
from recrawl.choose.papers.by_site.frequency_greedy import first_sample, past_rates, sample_sizes
from recrawl.choose.papers.by_site.sample_size import interval, optimal_sample, root_sample, threshold
from recrawl.choose.papers.by_site.site_sampling import (
    Deck,
    apportion,
    draw,
    expected_finds,
    fill_in_order,
    quotas,
    sampled_rates,
    site_rates,
)
from recrawl.choose.papers.change_frequency import page_rates
from recrawl.choose.protocol import names_of
from recrawl.errors import UsageError
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks

DAY = 86400.0


class Shares:
    """A world in which a page of site w has changed with chance shares[w]; keeps its batches, pages by site."""

    def __init__(self, book: Book, shares: Sequence[float], seed: int = 1, dead: Sequence[int] = ()) -> None:
        self.book, self.shares, self.dead = book, np.array(shares), list(dead)
        self.rng = np.random.default_rng(seed)
        self.batches: list[list[int]] = []
        self.found = 0

    def visit(self, picks: Picks) -> Outcomes:
        site = self.book.site[picks.pages]
        self.batches.append(np.bincount(site, minlength=len(self.shares)).tolist())
        what = (self.rng.random(len(site)) < self.shares[site]).astype(np.int8)
        what[np.isin(site, self.dead)] = Outcome.FAILED
        self.found += int((what == Outcome.CHANGED).sum())
        return Outcomes(picks.pages, what)

    def total(self) -> list[int]:
        return [sum(batch[site] for batch in self.batches) for site in range(len(self.shares))]


def sites(*sizes: int) -> Book:
    """Pages that were downloaded once, at the start."""
    book = Book.blank(sum(sizes))
    book.site[:] = np.repeat(np.arange(len(sizes)), sizes)
    book.note(Outcomes(np.arange(len(book)), np.full(len(book), Outcome.NEW, np.int8)), 0.0)
    book.now = DAY
    return book


def run(text: str, book: Book, world: Shares, budget: int, seed: int = 1, *, days: int = 1) -> None:
    """Cycles a day apart, noted in the book when there is more than one."""
    policy = make_policy(text)
    for day in range(days):
        seen = list(drive(policy, world, book, budget, seed * 1000 + day))
        if days > 1 and seen:
            whole = Outcomes(np.concatenate([s.pages for s in seen]), np.concatenate([s.what for s in seen]))
            note(policy, book, whole, np.full(len(whole), book.now))
            book.now += DAY


# -- the example of Q §2.5.4 ---------------------------------------------------------------------------------

CHANGED, SAMPLED, ROOM = np.array([7, 4]), np.array([10, 10]), np.array([90, 90])


def test_the_worked_example_gives_48_and_56() -> None:
    proportional = quotas(CHANGED, SAMPLED, 80, ROOM)
    assert proportional.tolist() == [51, 29]
    assert expected_finds(proportional, CHANGED, SAMPLED).tolist() == [36, 12]
    greedy = fill_in_order(np.argsort(-CHANGED / SAMPLED), 80, ROOM)
    assert greedy.tolist() == [80, 0]
    assert expected_finds(greedy, CHANGED, SAMPLED).tolist() == [56, 0]


def test_both_policies_divide_the_downloads_as_in_the_worked_example() -> None:
    class Worked(Shares):
        """The samples show what they show in the example, whichever pages they are."""

        def visit(self, picks: Picks) -> Outcomes:
            super().visit(picks)
            site = self.book.site[picks.pages]
            what = np.zeros(len(site), np.int8)
            for number, changed in enumerate(CHANGED):
                what[np.flatnonzero(site == number)[:changed]] = Outcome.CHANGED
            return Outcomes(picks.pages, what)

    for text, second in [("proportional(sample=10)", [51, 29]), ("greedy(sample=10)", [80, 0])]:
        book = sites(100, 100)
        world = Worked(book, [0, 0])
        run(text, book, world, 100)
        assert world.batches == [[10, 10], second]


def test_greedy_finds_more_than_proportional_and_proportional_more_than_random_on_the_worked_example() -> None:
    found = {}
    for text in ("greedy(sample=10)", "proportional(sample=10)", "random"):
        found[text] = 0
        for seed in range(300):
            book = sites(100, 100)
            world = Shares(book, [0.7, 0.4], seed)
            run(text, book, world, 100, seed)
            found[text] += world.found
    greedy, proportional, chance = (value / 300 for value in found.values())
    # Samples included: 11 of the 20, then 56 against 47.3 of the 80 when the sample tells the truth.
    assert chance == pytest.approx(55, abs=1.5)
    assert proportional == pytest.approx(11 + 47.3, abs=1.5)
    assert 11 + 52 < greedy <= 11 + 56 + 1.5


# -- dividing ------------------------------------------------------------------------------------------------

parts = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), min_size=1, max_size=12)


@given(parts, st.integers(0, 200))
def test_apportion_spends_everything_that_fits(given_: list[tuple[int, int]], total: int) -> None:
    weight, room = (np.array(column) for column in zip(*given_, strict=True))
    got = apportion(total, weight, room)
    assert got.sum() == min(total, room[weight > 0].sum())
    assert (got <= room).all()
    assert (got[weight == 0] == 0).all()
    # A share that was not cut short is at least, to within one page, what its weight earns beside any other.
    per = got / np.maximum(weight, 1)
    free = (weight > 0) & (got < room)
    if free.any():
        assert (per[free, None] + 1 / weight[free, None] >= per[None, :] - 1 / np.maximum(weight, 1) - 1e-9).all()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=10), st.integers(0, 500))
def test_without_limits_a_share_is_its_exact_part_rounded_up_or_down(weights: list[int], total: int) -> None:
    weight = np.array(weights)
    exact = total * weight / weight.sum()
    got = apportion(total, weight, np.full(len(weight), total))
    assert (np.abs(got - exact) < 1).all()


@given(parts, st.integers(0, 200))
def test_quotas_reach_sites_without_change_only_when_the_others_are_full(
    given_: list[tuple[int, int]], downloads: int
) -> None:
    changed, room = (np.array(column) for column in zip(*given_, strict=True))
    got = quotas(changed, np.full(len(changed), 20), downloads, room)
    assert got.sum() == min(downloads, room.sum())
    if got[changed == 0].any():
        assert (got[changed > 0] == room[changed > 0]).all()


def test_remainders_are_assigned_at_random() -> None:
    rng = np.random.default_rng(1)
    drawn = np.array([apportion(3, np.ones(10), np.full(10, 5), rng.permutation(10)) for _ in range(300)])
    assert drawn.max() == 1
    assert (drawn.sum(axis=1) == 3).all()
    assert drawn.sum(axis=0).min() > 50  # 90 are expected


def test_with_more_sites_than_samples_sites_are_drawn_by_size() -> None:
    rng = np.random.default_rng(1)
    pages = np.array([600, 300, 90, 9, 1])
    drawn = np.array([draw(pages, 10, 3, rng) for _ in range(500)])
    assert (drawn.sum(axis=1) == 3).all()
    assert (drawn.mean(axis=0) / 3).tolist() == pytest.approx([0.6, 0.3, 0.09, 0.009, 0.001], abs=0.03)
    assert draw(pages, 1, 3, rng).max() == 1, "no more of a site than were asked for"
    assert draw(pages, 10, 5, rng).tolist() == [1, 1, 1, 1, 1]
    assert draw(pages, 10, 99, rng).tolist() == [10, 10, 10, 9, 1]


def test_samples_of_a_computed_size_take_half_of_the_budget_at_most() -> None:
    book = sites(*[10] * 60)
    world = Shares(book, [0.5] * 60)
    run("greedy", book, world, 40)
    first, second = (sum(batch) for batch in world.batches)
    assert 10 <= first <= 20, "up to half, less where two of the pages drawn were of one site"
    assert first + second == 40


def test_an_unsampled_site_has_the_mean_rate_and_an_unchanged_one_rate_zero() -> None:
    deck = Deck(sites(5, 5, 5, 5), "site", np.random.default_rng(1))
    deck.deal(np.array([2, 2, 2, 0]))
    assert sampled_rates(deck, np.array([2.0, 0, 0, 0]), np.array([2, 2, 0, 0])).tolist() == [1.0, 0.0, 0.0, 0.5]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(0, 40), st.integers(0, 1000))
def test_a_deck_deals_each_page_once_and_knows_its_group(counts: list[int], each: int, seed: int) -> None:
    book = sites(*counts)
    book.site[:] *= 7
    deck = Deck(book, "site", np.random.default_rng(seed))
    first = deck.deal(np.full(len(deck), each))
    rest = deck.deal(deck.left, np.arange(len(deck))[::-1])
    assert sorted([*first.tolist(), *rest.tolist()]) == list(range(len(book)))
    assert (deck.names[deck.group_of(first)] == book.site[first]).all()
    assert np.bincount(deck.group_of(first), minlength=len(deck)).tolist() == np.minimum(deck.size, each).tolist()


# -- samples --------------------------------------------------------------------------------------------------


def test_the_sample_size_is_the_square_root_of_the_downloads_per_site() -> None:
    book = sites(1000, 1000, 2000)
    world = Shares(book, [0, 0, 0])
    run("greedy", book, world, 400)
    assert root_sample(4000 / 3, 0.1) == 12
    assert world.batches[0] == [12, 12, 12]


def test_samples_that_would_exceed_the_budget_are_even() -> None:
    book = sites(100, 100, 10)
    world = Shares(book, [1, 0, 0])
    run("greedy(sample=50)", book, world, 70)
    assert world.batches == [[30, 30, 10]]


def test_the_optimal_sample_size_follows_the_observed_rates() -> None:
    size = np.full(1000, 100)
    even = (np.arange(1000) + 0.5) / 1000
    for share in (0.1, 0.3, 0.5):
        assert optimal_sample(10_000, share, even, size) == round(math.sqrt(10_000 * share / (3 * (1 - share))))
    assert optimal_sample(100, 0.3, np.full(9, 0.4), size[:9]) is None, "sites that are all alike need no sample"
    assert optimal_sample(100, 0.3, np.array([0.4]), size[:1]) is None


def test_greedy_samples_as_auto_until_rates_are_known_then_optimally() -> None:
    book = sites(*[400] * 20)
    world = Shares(book, np.linspace(0.02, 0.98, 20).tolist())
    run("greedy(sample=optimal)", book, world, 800, days=3)
    auto = root_sample(400, 0.1)
    assert world.batches[0] == [auto] * 20
    names, rates = site_rates(book)
    assert names.tolist() == list(range(20))
    assert np.abs(rates - world.shares).mean() < 0.15
    assert world.batches[4] != [auto] * 20
    assert len(set(world.batches[4])) == 1


def test_directories_of_one_site_are_distinguished() -> None:
    book = sites(200)
    book.folder[:] = np.arange(200) // 100

    class Folder(Shares):
        def visit(self, picks: Picks) -> Outcomes:
            super().visit(picks)
            return Outcomes(picks.pages, self.book.folder[picks.pages].astype(np.int8))

    for text, least in [("greedy(level=directory)", 90), ("greedy", 0)]:
        world = Folder(book, [0])
        pages = np.concatenate([seen.pages for seen in drive(make_policy(text), world, book, 100, 1)])
        assert book.folder[pages].sum() >= least
        assert least or book.folder[pages].sum() < 70


def test_a_site_that_does_not_answer_is_not_downloaded() -> None:
    for text in ("greedy(sample=5)", "proportional(sample=5)", "adaptive-sampling(kappa=5)", "frequency-greedy"):
        book = sites(100, 100)
        world = Shares(book, [1, 0.5], dead=[0])
        run(text, book, world, 60)
        assert world.total()[0] <= 15, text


# -- adaptive sampling -----------------------------------------------------------------------------------------


def test_the_threshold_is_where_the_best_sites_use_up_the_downloads() -> None:
    rate, size = np.array([0.1, 0.9, 0.5]), np.array([10, 20, 30])
    assert threshold(rate, size, 15) == 0.9
    assert threshold(rate, size, 20) == pytest.approx(0.7)
    assert threshold(rate, size, 45) == 0.5
    assert threshold(rate, size, 60) == -math.inf
    assert threshold(rate, size, 99) == -math.inf


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_an_interval_holds_its_share_and_narrows(found: int, more: int, confidence: float) -> None:
    n = found + more
    low, high = interval(np.array([float(found)]), np.array([n]), confidence)
    assert 0 <= low[0] <= high[0] <= 1
    if n:
        assert low[0] - 1e-12 <= found / n <= high[0] + 1e-12
        low2, high2 = interval(np.array([4.0 * found]), np.array([4 * n]), confidence)
        assert high2[0] - low2[0] < high[0] - low[0]


def test_adaptive_sampling_decides_once_there_is_enough_evidence() -> None:
    """10 of 10 and 0 of 10 are clear at once (intervals .72 to 1 and 0 to .28 around a threshold of about .5)."""
    book = sites(100, 100, 100, 100)
    world = Shares(book, [1, 1, 0, 0])
    run("adaptive-sampling(kappa=10)", book, world, 200)
    # Round one; then both good sites whole: nothing of the poor ones but their first sample.
    assert world.batches[0] == [10, 10, 10, 10]
    assert world.total()[2:] == [10, 10]
    assert len(world.batches) == 2


def test_adaptive_sampling_samples_more_where_rates_are_close() -> None:
    book = sites(1000, 1000, 1000)
    world = Shares(book, [0.9, 0.52, 0.48])
    run("adaptive-sampling(kappa=10)", book, world, 2000)
    rounds = [batch for batch in world.batches if max(batch) <= 10]
    assert sum(batch[0] > 0 for batch in rounds) <= 5
    assert sum(batch[1] > 0 for batch in rounds) > 10
    assert world.total()[0] == 1000
    assert sum(world.total()) == 2000


def test_less_confidence_decides_sooner() -> None:
    batches = []
    for confidence in (0.5, 0.99):
        book = sites(1000, 1000)
        world = Shares(book, [0.6, 0.4])
        run(f"adaptive-sampling(kappa=10, confidence={confidence})", book, world, 1000)
        batches.append(len(world.batches))
    assert batches[0] < batches[1]


def test_rounds_end_when_sites_cannot_be_distinguished() -> None:
    book = sites(1000, 1000, 1000)
    world = Shares(book, [0.5, 0.5, 0.5])
    run("adaptive-sampling(kappa=1, rounds=7)", book, world, 1000)
    assert len(world.batches) <= 8
    assert sum(world.total()) == 1000


# -- grouped --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["proportional", "greedy", "adaptive-sampling", "frequency-greedy"])
def test_groups_take_turns_and_the_turn_is_stored_in_the_book(inner: str) -> None:
    book = sites(*[30] * 6)
    world = Shares(book, [0.5] * 6)
    text = f"grouped(inner={inner}, groups=3)"
    visited = []
    for day in range(4):
        world.batches.clear()
        policy = make_policy(text)  # anew each time: nothing but the book is carried on
        seen = list(drive(policy, world, book, 40, day))
        whole = Outcomes(np.concatenate([s.pages for s in seen]), np.concatenate([s.what for s in seen]))
        note(policy, book, whole, np.full(len(whole), book.now))
        visited.append(set(np.flatnonzero(world.total()).tolist()))
    assert visited == [{0, 3}, {1, 4}, {2, 5}, {0, 3}]


def test_a_crawl_takes_no_turn() -> None:
    """A crawl after every cycle brings new pages of every site; with two groups, both still come about."""
    policy = make_policy("grouped(groups=2)")
    book = sites(*[30] * 2, 10)  # of the last 10 pages, two are found each day
    book.site[60:] = np.arange(10) % 2
    book.forget(np.arange(60, 70))
    book.known[60:] = False
    visited = []
    for day in range(4):
        world = Shares(book, [0.5] * 2)
        seen = list(drive(policy, world, book, 20, day))
        whole = Outcomes(np.concatenate([s.pages for s in seen]), np.concatenate([s.what for s in seen]))
        note(policy, book, whole, np.full(len(whole), book.now))
        visited.append(set(np.flatnonzero(world.total()).tolist()))
        new = np.array([60, 61]) + 2 * day
        book.known[new] = True
        note(policy, book, Outcomes(new, np.full(2, Outcome.NEW, np.int8)), np.full(2, book.now))
    assert visited == [{0}, {1}, {0}, {1}]


def test_budget_that_a_group_does_not_need_goes_to_the_next() -> None:
    book = sites(5, 5, 5, 5)
    world = Shares(book, [0.5] * 4)
    run("grouped(groups=4)", book, world, 12)
    assert sum(world.total()) == 12
    assert world.total()[:2] == [5, 5]


def test_grouped_survives_its_own_text() -> None:
    for text in (
        "grouped(inner=proportional)",
        "grouped(inner=greedy(sample=7), groups=2)",
        "grouped(inner=anchor-depth(n=1, every=3), groups=2)",
    ):
        assert describe(make_policy(text)) == text


def test_grouped_needs_what_its_inner_policy_needs() -> None:
    assert make_policy("grouped").needs == frozenset()
    assert make_policy("grouped(inner=anchor-depth)").needs == {"links"}
    assert make_policy("grouped(inner=sampling(neighbours=clusters))").needs == {"clusters"}
    assert make_policy("grouped(inner=shock(objective=links))").needs >= {"arrivals", "hints"}


def test_the_inner_policy_gets_links_and_keeps_its_memory() -> None:
    """Two sites, each a chain of links: only the pages near the anchor of the group whose turn it is are visited."""
    book = Book.blank(8, now=1e9)
    book.site[:] = [0, 0, 0, 0, 1, 1, 1, 1]
    book.depth[:] = [0, 1, 2, 3, 0, 1, 2, 3]
    book.links = LinkGraph(np.array([0, 1, 2, 3, 3, 4, 5, 6, 6]), np.array([1, 2, 3, 5, 6, 7], np.int32))
    book.visits[:] = book.changes[:] = 2
    book.last_try[:] = book.last_visit[:] = book.now - 1e6
    policy = make_policy("grouped(inner=anchor-depth(n=1, rest=0), groups=2)")
    first = []
    for _ in range(2):
        seen = list(drive(policy, Shares(book, [0.5] * 2), book, 2, 1))
        whole = Outcomes(np.concatenate([s.pages for s in seen]), np.concatenate([s.what for s in seen]))
        note(policy, book, whole, np.full(len(whole), book.now))
        first.append(sorted(whole.pages.tolist()))
        book.now += 1e5
    assert first == [[0, 1], [4, 5]]
    assert book.memory["anchor-depth.depth"].tolist() == [0, 1, 2, 3] * 2
    assert names_of(policy) == ("grouped", "anchor-depth")


@pytest.mark.parametrize(
    "text",
    [
        "grouped(inner=grouped)",
        "grouped(inner=nothing)",
        "grouped(groups=0)",
        "grouped(groups=1.5)",
        "greedy(sample=0)",
        "greedy(sample=few)",
        "greedy(level=page)",
        "proportional(sample=optimal)",
        "proportional(level=page)",
        "adaptive-sampling(kappa=0)",
        "adaptive-sampling(kappa=2.5)",
        "adaptive-sampling(confidence=1)",
        "adaptive-sampling(rounds=0)",
        "frequency-greedy(sample=0)",
        "frequency-greedy(most=1.5)",
        "frequency-greedy(versions=61)",
        "frequency-adaptive(versions=0)",
        "frequency-adaptive(confidence=0)",
        "change-frequency(allocation=fair)",
    ],
)
def test_invalid_parameters_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        make_policy(text)


# -- frequency-greedy ------------------------------------------------------------------------------------------


def test_sample_sizes_worked_by_hand() -> None:
    """Q's nine sites and 100 pages: 25.77/167.43·100 = 15.39, 81.95 → 48.94, 43.59 → 26.03, 9.09 → 5.42; others 5."""
    rate = np.array([3.27, 25.77, 2.22, 81.95, 0, 0, 1.54, 43.59, 9.09])
    assert first_sample(100, 9) == 11
    assert sample_sizes(rate, 100).tolist() == [5, 15, 5, 48, 5, 5, 5, 26, 5]
    # With 10 pages even the site that earns 4 gets the reserve, and 10/20 is nothing in whole numbers.
    assert sample_sizes(rate, 10).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert sample_sizes(np.array([0.8, 0.2]), 10, reserve=1).tolist() == [8, 1]
    assert sample_sizes(np.zeros(3), 100).tolist() == [5, 5, 5]


def test_frequency_greedy_samples_evenly_first_and_then_by_rate() -> None:
    book = sites(*[250] * 4)
    world = Shares(book, [1, 1, 0, 0])
    run("frequency-greedy(sample=0.1)", book, world, 200, days=2)
    assert world.batches[0] == [25, 25, 25, 25]
    # 100 pages, rates 1 1 0 0: half each, and the reserve of 100/20 for those that showed no change. What that is
    # over the hundred that half the budget allows is cut in proportion.
    assert world.batches[2] == [45, 45, 5, 5]


def test_a_sampled_page_counts_with_its_last_versions() -> None:
    """Site 0 changed in all four earlier comparisons and not today; site 1 only today."""
    book = sites(40, 40)
    policy = make_policy("frequency-greedy(sample=1, most=0.5, versions=5)")
    all_pages = np.arange(80)
    for day in range(4):
        book.now = (day + 1) * DAY
        note(policy, book, Outcomes(all_pages, (book.site == 0).astype(np.int8)), np.full(80, book.now))
    book.now = 5 * DAY
    assert (book.memory["frequency-greedy.compared"] == 4).all()
    assert set(book.memory["frequency-greedy.flags"].tolist()) == {0b1111, 0}
    for text, best in [("frequency-greedy(sample=1, most=0.5, versions=5)", 0), ("greedy(sample=10)", 1)]:
        world = Shares(book, [0, 1])
        run(text, book, world, 40)
        assert world.batches[1][best] == 20
    # Of 5 comparisons, 4 found a change against 1; over the last comparison alone it is the other way round.
    world = Shares(book, [0, 1])
    run("frequency-greedy(sample=1, most=0.5, versions=1)", book, world, 40)
    assert world.batches[1][1] == 20


def test_first_downloads_and_failures_are_not_comparisons() -> None:
    book = Book.blank(3)
    policy = make_policy("frequency-adaptive(versions=3)")
    for what in ([2, 4, 4], [1, 4, 2], [0, 2, 1], [1, 0, 1], [1, 1, 4]):
        note(policy, book, Outcomes(np.arange(3), np.array(what, np.int8)), np.zeros(3))
    assert book.memory["frequency-adaptive.flags"].tolist() == [0b011, 0b01, 0b11]
    assert book.memory["frequency-adaptive.compared"].tolist() == [3, 2, 2]


def test_frequency_greedy_keeps_the_rates_of_sites_that_it_did_not_visit() -> None:
    book = sites(5, 5)
    policy = make_policy("frequency-greedy")
    note(policy, book, Outcomes(np.arange(10), (book.site == 1).astype(np.int8)), np.zeros(10))
    note(policy, book, Outcomes(np.arange(5), np.ones(5, np.int8)), np.zeros(5))
    assert past_rates(book, Deck(book, "site", np.random.default_rng(1)), 5).tolist() == [0.5, 1.0]


def test_frequency_adaptive_settles_on_the_site_that_changes_most_often() -> None:
    book = sites(400, 400, 400)
    world = Shares(book, [0.8, 0.2, 0.2], seed=4)
    run("frequency-adaptive(kappa=5)", book, world, 400, days=6)
    late = np.sum(world.batches[len(world.batches) // 2 :], axis=0)
    assert late[0] > 2 * late[1:].sum()


# -- change frequency --------------------------------------------------------------------------------------------


def visited(changes: Sequence[int], visits: int, days: float) -> Book:
    book = Book.blank(len(changes))
    book.visits[:] = visits + 1
    book.changes[:] = np.array(changes) + 1
    book.last_try[:] = book.last_visit[:] = days * DAY
    book.now = (days + 1) * DAY
    return book


def test_page_rates_are_the_estimator_of_the_visits_made() -> None:
    book = visited([0, 5, 10], visits=10, days=20)
    rate = page_rates(book)
    assert rate.tolist() == pytest.approx([0.5 / 20, -math.log(5.5 / 10.5) / 2, -math.log(0.5 / 10.5) / 2])


def test_page_rates_count_from_the_first_download_not_from_discovery() -> None:
    book = Book.blank(1)
    policy = make_policy("change-frequency")
    for day, what in [(10, Outcome.NEW), (12, Outcome.CHANGED), (14, Outcome.UNCHANGED)]:
        note(policy, book, Outcomes(np.zeros(1, np.int64), np.array([what], np.int8)), np.array([day * DAY]))
    assert page_rates(book)[0] == pytest.approx(-math.log(1.5 / 2.5) / 2)


def order(allocation: str, book: Book) -> list[int]:
    seen = next(drive(make_policy(f"change-frequency(allocation={allocation})"), Shares(book, [0]), book, 99, 1))
    return [int(page) for page in seen.pages]


def test_allocations_order_pages_by_their_rule() -> None:
    book = visited([1, 4, 10], visits=10, days=10)
    book.last_try[:] -= np.array([2, 1, 0]) * DAY
    assert order("uniform", book) == [0, 1, 2], "longest waiting first"
    assert order("proportional", book) == [2, 1, 0], "most changes expected first"
    assert order("optimal", book)[-1] == 2, "a page that changes faster than it can be visited comes last"


def test_proportional_allocation_visits_pages_as_often_as_they_change() -> None:
    """Ten pages each with 1, 2, 3 and 4 changes in a hundred days, a visit every day: visits in that proportion."""
    book = visited([10, 20, 30, 40] * 10, visits=1000, days=1000)
    visits = np.zeros(40)
    policy = make_policy("change-frequency")
    for day in range(2000):
        book.now += DAY
        for seen in drive(policy, Shares(book, [0]), book, 1, day):
            visits[seen.pages] += 1
            book.last_try[seen.pages] = book.now
    assert (visits.reshape(10, 4).sum(axis=0) / 2000).tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.02)
