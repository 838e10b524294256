"""The sampling policy: T's Algorithms 1 and 2, the rules for φ, and what batches change."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.book import Book, Clusters, Directories, LinkGraph
from recrawl.choose import make_policy
from recrawl.choose.papers import sampling
from recrawl.choose.papers.sampling import Sampling, by_popularity, in_one_cycle, rates, recent_rates
from recrawl.errors import UsageError
from recrawl.learn.structure.pagerank import pagerank
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks

SAMPLE = "it was drawn at random as a sample"
NEIGHBOUR = "it is a neighbour of a sampled page"


class Changed:
    """A world in which some pages have changed and the others have not."""

    def __init__(self, changed: np.ndarray) -> None:
        self.changed = changed
        self.picks: list[Picks] = []

    def visit(self, picks: Picks) -> Outcomes:
        self.picks.append(picks)
        return Outcomes(picks.pages, self.changed[picks.pages].astype(np.int8))

    def pages(self, reason: str | None = None) -> list[int]:
        return [page for picks in self.picks if reason in (None, picks.reason) for page in picks.pages.tolist()]


def run(text: str, book: Book, changed: Any, budget: int, seed: int) -> Changed:
    world = Changed(np.asarray(changed))
    list(drive(make_policy(text), world, book, budget, seed))
    return world


def two_directories() -> Book:
    """Pages 0 to 4 in one directory, 5 to 9 in another."""
    book = Book.blank(10)
    book.folder[5:] = 1
    return book


def rate(found: np.ndarray, weights: np.ndarray | None = None) -> float:
    """λ of one page from its counted visits, oldest first: eq. 6, or eq. 8 with weights that sum to 1."""
    if not len(found):
        return 0.0
    return float(found.mean() if weights is None else (weights * found).sum())


# -- the algorithm -------------------------------------------------------------------------------------------


@given(st.integers(0, 500))
def test_only_changed_samples_lead_to_their_directory(seed: int) -> None:
    world = run("sampling(d=0)", two_directories(), np.arange(10) < 5, 10, seed)
    samples, near = world.pages(SAMPLE), world.pages(NEIGHBOUR)
    first = next(place for place, page in enumerate(samples) if page < 5)
    assert set(near) == set(range(5)) - set(samples[: first + 1]), "all of the directory, once"
    assert len(samples) + len(near) == 10


def literal(book: Book, changed: np.ndarray, visited: frozenset[int], left: int) -> Counter[frozenset[int]]:
    """How likely each set of pages is by Algorithms 1 and 2 as printed, with φ of eq. 3 and d = 0, exactly."""
    if not left:
        return Counter({visited: 1.0})
    chances: Counter[frozenset[int]] = Counter()
    free = set(range(len(book))) - visited
    for page in free:
        near = {q for q in free - {page} if changed[page] and book.folder[q] == book.folder[page]}
        taken = list(combinations(near, min(len(near), left - 1)))
        for some in taken:
            after = literal(book, changed, visited | {page, *some}, left - 1 - len(some))
            chances.update({pages: chance / len(free) / len(taken) for pages, chance in after.items()})
    return chances


def test_one_at_a_time_is_the_printed_algorithm() -> None:
    book, changed, runs = Book.blank(6), np.array([True, False, False, True, False, True]), 2000
    book.folder[:] = [0, 0, 0, 1, 1, 2]
    expected = literal(book, changed, frozenset(), 3)
    assert sum(expected.values()) == pytest.approx(1.0)
    got = Counter(frozenset(run("sampling(d=0, batch=1)", book, changed, 3, seed).pages()) for seed in range(runs))
    assert got.keys() <= expected.keys()
    off = sum((got[pages] - runs * chance) ** 2 / (runs * chance) for pages, chance in expected.items())
    assert off < 50, "chi-squared with 19 degrees of freedom: once in 10,000"


@pytest.mark.parametrize("batch", [50, 1000])
def test_batches_find_as_much_as_one_page_at_a_time(batch: int) -> None:
    rng = np.random.default_rng(2)
    book = Book.blank(6000)
    book.folder[:] = rng.integers(0, 300, len(book))
    changed = rng.random(len(book)) < (rng.random(300) ** 4)[book.folder]
    found = {
        size: np.mean(
            [changed[run(f"sampling(batch={size})", book, changed, 1500, s).pages()].mean() for s in range(15)]
        )
        for size in (1, batch)
    }
    assert found[1] > 1.3 * changed.mean(), "it is worth something"
    assert found[batch] == pytest.approx(found[1], rel=0.1)


@given(st.integers(0, 40), st.integers(0, 2**32), st.sampled_from(["0", "0.0"]))
def test_phi_zero_is_random(budget: int, seed: int, phi: str) -> None:
    book = Book.blank(30)
    book.known[::7] = False
    everywhere = np.ones(30, bool)
    assert run(f"sampling(phi={phi})", book, everywhere, budget, seed).pages() == (
        run("random", book, everywhere, budget, seed).pages()
    )


@pytest.mark.parametrize("batch", [1, 50])
@pytest.mark.parametrize("phi", ["1", "0.3"])
@pytest.mark.parametrize("leads", ["any", "changed"])
def test_a_fixed_phi_asks_for_a_change_if_only_changed_samples_lead(leads: str, phi: str, batch: int) -> None:
    text = f"sampling(d=0, phi={phi}, leads={leads}, batch={batch})"
    for changed in (True, False):
        led = sum(len(run(text, two_directories(), np.full(10, changed), 2, s).pages(NEIGHBOUR)) for s in range(300))
        assert led / 300 == pytest.approx(float(phi) if changed or leads == "any" else 0.0, abs=0.08)


@given(st.integers(0, 2**32), st.sampled_from([1, 3, 50]))
def test_phi_1_for_changed_samples_is_status(seed: int, batch: int) -> None:
    changed = np.random.default_rng(seed).random(10) < 0.4
    one, status = (
        run(f"sampling(d=0, phi={phi}, batch={batch})", two_directories(), changed, 7, seed).pages()
        for phi in ("1", "status")
    )
    assert one == status


@given(st.integers(0, 2**32), st.sampled_from(["ha", "wha"]), st.booleans(), st.sampled_from([1, 50]))
def test_unchanged_samples_lead_nowhere_by_history(seed: int, phi: str, newest: bool, batch: int) -> None:
    """T §3: neighbours are those of a changed sample, whatever the history says."""
    text = f"sampling(d=0, phi={phi}, newest={str(newest).lower()}, batch={batch})"
    policy, book = make_policy(text), two_directories()
    for when in range(4):
        note(policy, book, Outcomes(np.arange(10), np.full(10, Outcome.CHANGED, np.int8)), np.full(10, float(when)))
    assert run(text, book, np.zeros(10), 6, seed).pages(NEIGHBOUR) == []


def test_where_the_budget_ends_the_nearest_come_first() -> None:
    book = Book.blank(9)
    book.folder[:] = [0, 0, 0, 0, 0, 1, 1, 1, 1]
    book.folders = Directories(np.array([-1, 0]), np.array([0, 1], np.int32))
    for seed in range(40):
        world = run("sampling(phi=1, leads=any, d=1)", book, np.zeros(9), 5, seed)
        if world.pages()[0] >= 5:
            assert set(world.pages()[:4]) == {5, 6, 7, 8}
            scores = world.picks[1].score.tolist()
            assert scores == sorted(scores, reverse=True)
            return
    pytest.fail("no run began below")


def test_at_equal_distance_pages_are_left_out_at_random() -> None:
    book = Book.blank(40)
    seen = Counter(page for seed in range(60) for page in run("sampling(phi=1)", book, np.ones(40), 10, seed).pages())
    assert len(seen) == 40


@pytest.mark.parametrize(("neighbours", "near"), [("links", {1, 2}), ("clusters", {3, 4})])
def test_links_and_clusters_lead_too(neighbours: str, near: set[int]) -> None:
    book = Book.blank(6)
    book.links = LinkGraph(np.array([0, 2, 2, 2, 2, 2, 2]), np.array([1, 2], np.int32))
    book.clusters = Clusters(np.array([0, 1, 1, 0, 0, -1], np.int32), np.array([[0, 1], [1, 0]], np.int32))
    changed = np.arange(6) == 0
    d = 1 if neighbours == "links" else 0
    for seed in range(60):
        world = run(f"sampling(neighbours={neighbours}, d={d})", book, changed, 6, seed)
        if world.pages()[0] == 0:
            assert set(world.pages()[1:3]) == near
            return
    pytest.fail("page 0 was never drawn first")


# -- φ ---------------------------------------------------------------------------------------------------------

histories = st.lists(st.booleans(), min_size=1, max_size=30).map(np.array)


@given(histories)
def test_equal_weights_make_the_weighted_history_the_plain_one(found: np.ndarray) -> None:
    n = len(found)
    assert rate(found, np.full(n, 1 / n)) == pytest.approx(rate(found))
    assert rates(np.array([found.sum()]), np.array([n]))[0] == pytest.approx(rate(found))


@given(histories)
def test_the_kept_sum_gives_the_weighted_rate(found: np.ndarray) -> None:
    i = np.arange(1, len(found) + 1)
    kept = np.array([float((i * found).sum())])
    assert recent_rates(kept, np.array([float(len(found))]))[0] == pytest.approx(rate(found, i / i.sum()))


def test_the_three_pages_of_the_paper_are_distinguished() -> None:
    """T fig. 3: one change; three, most of them early; three, all of them late."""
    once, early, late = (np.array([bool(int(c)) for c in text]) for text in ("000001", "110001", "000111"))
    i = np.arange(1, 7)
    assert rate(once) < rate(early) == rate(late), "the plain history cannot tell when"
    assert rate(once, i / i.sum()) < rate(early, i / i.sum()) < rate(late, i / i.sum())


def test_probabilities_are_between_0_and_1() -> None:
    assert in_one_cycle(np.array([0.0, 1.0])).tolist() == pytest.approx([0.0, 1 - np.exp(-1)])
    assert by_popularity(np.arange(11)).tolist() == pytest.approx([k / 11 for k in range(1, 12)])


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from([None, *Outcome]), min_size=5, max_size=5), max_size=8))
def test_learning_counts_each_pages_own_visits(cycles: list[list[Outcome | None]]) -> None:
    policy, book = make_policy("sampling(phi=wha, n=visits)"), Book.blank(5)
    book.visits[:2] = book.changes[:2] = 1  # in the repository from the start
    own: list[list[bool]] = [[True]] * 2 + [[]] * 3
    for when, cycle in enumerate(cycles):
        seen = [(page, what) for page, what in enumerate(cycle) if what is not None]
        pages = np.array([page for page, _ in seen], np.int64)
        outcomes = Outcomes(pages, np.array([what for _, what in seen], np.int8))
        note(policy, book, outcomes, np.full(len(seen), float(when)))
        for page, what in seen:
            if what is not Outcome.FAILED:
                own[page] = [*own[page], what is not Outcome.UNCHANGED]
    lately = recent_rates(book.kept("sampling.weighted", 0.0), np.maximum(book.visits - 1.0, 0.0))
    for page, visits in enumerate(own):
        counted = np.array(visits[1:], bool)
        i = np.arange(1, len(counted) + 1)
        assert lately[page] == pytest.approx(rate(counted, i / max(1, i.sum())))


@given(st.lists(st.lists(st.sampled_from([None, 0, 1, 4]), min_size=3, max_size=3), min_size=1, max_size=12))
def test_with_all_cycles_the_rates_are_equations_6_and_8_as_printed(cycles: list[list[int | None]]) -> None:
    """A cycle in which the page was not visited, or its visit failed, counts as one without a change."""
    for phi in ("ha", "wha"):
        policy, with_newest, book = Sampling(phi=phi, newest=False), Sampling(phi=phi), Book.blank(4)
        book.note(Outcomes(np.arange(4), np.full(4, Outcome.NEW, np.int8)), 0.0)
        for when, cycle in enumerate(cycles, 1):
            seen = {0: 0} | {page + 1: what for page, what in enumerate(cycle) if what is not None}
            outcomes = Outcomes(np.array(list(seen)), np.array(list(seen.values()), np.int8))
            note(policy, book, outcomes, np.full(len(seen), float(when)))
        n = len(cycles)
        for page in range(3):
            changed = [i for i, cycle in enumerate(cycles, 1) if cycle[page] == 1]
            rate = len(changed) / n if phi == "ha" else sum(i / (n * (n + 1) / 2) for i in changed)
            assert policy._phi(book).changed[page + 1] == pytest.approx(1 - math.exp(-rate))
            now = [*changed, n + 1]  # eqs. 6 and 8 run to the comparison just made
            rate = len(now) / (n + 1) if phi == "ha" else sum(i / ((n + 1) * (n + 2) / 2) for i in now)
            assert with_newest._phi(book).changed[page + 1] == pytest.approx(1 - math.exp(-rate))


@pytest.mark.parametrize("phi", ["ha", "wha"])
def test_only_pages_with_a_history_lead_to_neighbours(phi: str) -> None:
    text = f"sampling(d=0, phi={phi}, newest=false)"
    policy, book = make_policy(text), two_directories()
    everything = Outcomes(np.arange(10), np.full(10, Outcome.CHANGED, np.int8))
    assert run(text, book, np.ones(10), 6, 1).pages(NEIGHBOUR) == []
    for when in range(4):  # the first is the creation
        note(policy, book, everything, np.full(10, float(when)))
    leads = [len(run(text, book, np.ones(10), 2, seed).pages(NEIGHBOUR)) for seed in range(500)]
    assert np.mean(leads) == pytest.approx(1 - np.exp(-1), abs=0.07)


@pytest.mark.parametrize("phi", ["ha", "wha"])
def test_the_creation_of_a_page_is_no_change(phi: str) -> None:
    text = f"sampling(d=0, phi={phi}, newest=false)"
    policy, book = make_policy(text), two_directories()
    for when, what in enumerate([Outcome.NEW, Outcome.UNCHANGED, Outcome.FAILED]):
        note(policy, book, Outcomes(np.arange(10), np.full(10, what, np.int8)), np.full(10, float(when)))
    for seed in range(20):
        assert run(text, book, np.ones(10), 6, seed).pages(NEIGHBOUR) == []


def star(pages: int) -> LinkGraph:
    """All pages link to page 0."""
    return LinkGraph(np.arange(pages + 1), np.zeros(pages, np.int32))


def test_popular_pages_always_lead_to_neighbours_and_others_rarely() -> None:
    book = two_directories()
    book.links = star(10)
    leads: dict[bool, list[int]] = {True: [], False: []}
    for seed in range(500):
        world = run("sampling(d=0, phi=pra)", book, np.zeros(10), 2, seed)
        leads[world.pages()[0] == 0].append(len(world.pages(NEIGHBOUR)))
    assert set(leads[True]) == {1}
    assert np.mean(leads[False]) == pytest.approx(1 / 11, abs=0.04)


def test_ranks_are_recomputed_only_when_links_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, book, reckoned = make_policy("sampling(d=0, phi=pra)"), two_directories(), []
    book.links = star(10)

    def counted(links: LinkGraph, start: np.ndarray | None = None) -> np.ndarray:
        reckoned.append(start)
        return pagerank(links, start=start)

    monkeypatch.setattr(sampling, "pagerank", counted)
    for cycle in range(4):
        if cycle == 3:
            book.links = LinkGraph(np.arange(11), np.ones(10, np.int32))
        seen = list(drive(policy, Changed(np.zeros(10)), book, 3, cycle))
        if cycle == 0:
            assert book.memory == {}, "a cycle that may crash has not written"
        if 0 < cycle < 3:
            assert len(reckoned) == 1, "once for the first cycle and for what is learned of it"
        everything = Outcomes(np.concatenate([one.pages for one in seen]), np.concatenate([one.what for one in seen]))
        note(policy, book, everything, np.zeros(len(everything)))
    assert reckoned[0] is None
    assert len(reckoned) == 2
    assert reckoned[1] is not None, "and then from the old ones"
    assert book.memory["sampling.ranks"].argmax() == 1


# -- its outside ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("sampling", {"folders"}),
        ("sampling(neighbours=links)", {"links"}),
        ("sampling(neighbours=clusters)", {"clusters"}),
        ("sampling(phi=pra)", {"folders", "links"}),
    ],
)
def test_it_needs_what_its_parameters_use(text: str, needs: set[str]) -> None:
    assert make_policy(text).needs == needs


@pytest.mark.parametrize(
    "text",
    [
        "sampling(neighbours=friends)",
        "sampling(d=1.5)",
        "sampling(d=1e999)",
        "sampling(d=101)",
        "sampling(phi=2)",
        "sampling(phi=-0.1)",
        "sampling(phi=nan)",
        "sampling(phi=often)",
        "sampling(leads=all)",
        "sampling(n=weeks)",
        "sampling(newest=2)",
        "sampling(batch=0)",
        "sampling(batch=2.5)",
    ],
)
def test_invalid_parameters_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="sampling"):
        make_policy(text)
