"""Policies that sample directories or clusters in place of sites (Q §1.3.4), and V that adapts (Q fig. 4.1)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book, Clusters
from recrawl.choose import make_policy
from recrawl.choose.papers.by_site.frequency_greedy import past_rates
from recrawl.choose.papers.by_site.site_sampling import Deck
from recrawl.choose.papers.by_site.version_history import ComparisonHistory, steady_versions
from recrawl.errors import UsageError
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks

DAY = 86400.0
SITES, PER_SITE = 4, 50


class ByCluster:
    """A world in which exactly the pages of cluster 0 have changed."""

    def __init__(self, book: Book) -> None:
        assert book.clusters is not None
        self.changed = book.clusters.of == 0
        self.found = 0

    def visit(self, picks: Picks) -> Outcomes:
        what = self.changed[picks.pages].astype(np.int8)
        self.found += int(what.sum())
        return Outcomes(picks.pages, what)


def mixed() -> Book:
    """Sites whose pages are of five clusters in equal parts: a site tells nothing, a cluster everything."""
    book = Book.blank(SITES * PER_SITE)
    book.site[:] = np.repeat(np.arange(SITES), PER_SITE)
    book.folder[:] = book.site * 2 + (np.arange(len(book)) % 2)
    book.note(Outcomes(np.arange(len(book)), np.full(len(book), Outcome.NEW, np.int8)), 0.0)
    book.now = DAY
    of = (np.arange(len(book)) % 5).astype(np.int32)
    book.clusters = Clusters(of, np.array([np.roll(np.arange(5), -own) for own in range(5)], np.int32))
    return book


def found(text: str, budget: int = 60) -> int:
    book = mixed()
    world = ByCluster(book)
    visits = sum(len(seen) for seen in drive(make_policy(text), world, book, budget, 1))
    assert visits == budget
    return world.found


def test_greedy_and_proportional_spend_the_rest_of_the_budget_on_the_changed_cluster() -> None:
    # 4 samples of each of the 5 clusters; the 36 other pages of cluster 0 fit into the other 40 visits.
    assert found("greedy(sample=4, level=cluster)") == 40
    assert found("proportional(sample=4, level=cluster)") == 40
    assert found("greedy(sample=5)") < 20  # by site, 20 % of any pages have changed
    assert found("greedy(sample=4, level=directory)") < 20


@pytest.mark.parametrize(
    "text",
    ["adaptive-sampling(kappa=4, {})", "frequency-greedy(sample=0.1, {})", "frequency-adaptive(kappa=4, {})"],
)
def test_the_other_samplers_find_the_cluster_too(text: str) -> None:
    assert found(text.format("level=cluster")) >= 36
    assert found(text.format("level=site")) < 20


def test_a_policy_needs_clusters_only_at_their_level() -> None:
    assert make_policy("greedy(level=cluster)").needs == {"clusters"}
    assert make_policy("greedy(level=directory)").needs == make_policy("greedy").needs == frozenset()
    with pytest.raises(UsageError, match="site, directory or cluster"):
        make_policy("frequency-greedy(level=page)")


def test_pages_in_no_cluster_are_one_group() -> None:
    book = mixed()
    assert book.clusters is not None
    book.clusters.of[:] = np.where(book.clusters.of == 4, -1, book.clusters.of)
    deck = Deck(book, "cluster", np.random.default_rng(1))
    assert deck.names.tolist() == [-1, 0, 1, 2, 3]
    assert deck.size.tolist() == [40] * 5


def test_renumbered_clusters_keep_their_rates() -> None:
    """Clusters are rebuilt as pages are added; what was learned is about pages, so the numbers do not matter."""
    book = mixed()
    assert book.clusters is not None
    policy = make_policy("frequency-greedy(level=cluster)")
    pages = np.arange(0, len(book), 2)
    for share in (1, 2):
        note(policy, book, Outcomes(pages, (book.clusters.of[pages] < share).astype(np.int8)), np.full(len(pages), 1.0))
    rng = np.random.default_rng(1)
    before = past_rates(book, Deck(book, "cluster", rng), 5)
    assert before.tolist() == [1.0, 0.5, 0.0, 0.0, 0.0]
    number = np.array([3, 0, 4, 1, 2], np.int32)
    book.clusters = Clusters(number[book.clusters.of], book.clusters.nearest)
    assert past_rates(book, Deck(book, "cluster", rng), 5)[number].tolist() == before.tolist()


# -- the number of versions adapts to the variation of the rate ---------------------------------------------------


def since_the_shift(pages: list[list[bool]]) -> int:
    """The definition, over lists of comparisons, the newest first: the shift, at least five
    versions ago, that explains them best, if any does."""
    worth, longest = independent(pages), max(map(len, pages), default=0)

    def logs(flags: list[bool]) -> float:
        rate = sum(flags) / max(1, len(flags))
        return worth * sum(math.log(rate if flag else 1 - rate) for flag in flags)

    everything = [flag for page in pages for flag in page]
    best, versions = 0.0, 60
    for place in range(5, longest):
        parts = [flag for page in pages for flag in page[:place]], [flag for page in pages for flag in page[place:]]
        gain = sum(map(logs, parts)) - logs(everything)
        if gain > best + 1e-9:
            best, versions = gain, place
    return versions if best > math.log(max(2.0, worth * len(everything))) else 60


def independent(pages: list[list[bool]]) -> float:
    """How many independent comparisons one is worth: expected over observed variance of the rate by age."""
    by_age = [[page[age] for page in pages if len(page) > age] for age in range(max(map(len, pages), default=0))]
    if not by_age:
        return 1.0
    rate = [sum(flags) / len(flags) for flags in by_age]
    jumps = [(new - old) ** 2 / 2 for new, old in itertools.pairwise(rate)]
    total, mean = sum(map(len, by_age)), sum(map(sum, by_age)) / sum(map(len, by_age))
    size = total / len(by_age)
    observed = sum(jumps) / max(1, len(jumps))
    return min(1.0, max(1 / size, mean * (1 - mean) / size / max(observed, 1e-12)))


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.booleans(), max_size=60)), min_size=1, max_size=12))
def test_versions_are_those_since_the_rate_shifted(pages: list[tuple[int, list[bool]]]) -> None:
    flags = np.array([sum(flag << place for place, flag in enumerate(bits)) for _, bits in pages], np.int64)
    compared = np.array([len(bits) for _, bits in pages], np.int64)
    group = np.array([number for number, _ in pages])
    got = steady_versions(ComparisonHistory(flags, compared), group)
    for (number, _), versions in zip(pages, got.tolist(), strict=True):
        assert versions == since_the_shift([bits for other, bits in pages if other == number])


def test_a_site_that_has_begun_to_change_is_rated_by_its_last_visits_only() -> None:
    """Site 0 changed at none of 40 visits, then at each of 5; site 1 at every third: V = 45 prefers it."""
    book = Book.blank(80)
    book.site[40:] = 1
    book.note(Outcomes(np.arange(80), np.full(80, Outcome.NEW, np.int8)), 0.0)
    policies = [make_policy("frequency-greedy(versions=auto)"), make_policy("frequency-greedy(versions=45)")]
    books = [book, mixed_copy(book)]
    for visit in range(45):
        changed = np.where(book.site == 0, visit >= 40, visit % 3 == 0).astype(np.int8)
        for policy, own in zip(policies, books, strict=True):
            note(policy, own, Outcomes(np.arange(80), changed), np.full(80, visit * DAY))
    history = ComparisonHistory(books[0].memory["frequency-greedy.flags"], books[0].memory["frequency-greedy.compared"])
    versions = steady_versions(history, book.site)
    assert set(versions[:40].tolist()) == {5}
    assert set(versions[40:].tolist()) == {60}
    rng = np.random.default_rng(1)
    adapting = past_rates(books[0], Deck(books[0], "site", rng), versions)
    fixed = past_rates(books[1], Deck(books[1], "site", rng), 45)
    assert adapting.tolist() == pytest.approx([1.0, 15 / 45])
    assert fixed.tolist() == pytest.approx([5 / 45, 15 / 45])


def mixed_copy(book: Book) -> Book:
    """A book with the same pages and a memory of its own."""
    other = Book.blank(len(book))
    other.site[:] = book.site
    other.visits[:] = book.visits
    return other


def test_versions_are_checked() -> None:
    for text in ("0", "61", "some", "-1"):
        with pytest.raises(UsageError, match="auto or a whole number from 1 to 60"):
            make_policy(f"frequency-greedy(versions={text})")


def test_without_pages_or_comparisons_there_is_nothing_to_adapt_to() -> None:
    none = np.zeros(0, np.int64)
    assert steady_versions(ComparisonHistory(none, none), none).tolist() == []
    assert steady_versions(
        ComparisonHistory(np.zeros(2, np.int64), np.zeros(2, np.int64)), np.zeros(2, int)
    ).tolist() == [60, 60]
