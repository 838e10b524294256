"""Shared shocks: what a visit to one page says of the others, and what stays of it from cycle to cycle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recrawl.book import Book, Hints
from recrawl.choose.shock.plan import SAMPLE, Objective, ShockPlan
from recrawl.choose.shock.policy import Shock
from recrawl.choose.shock.ranking import highest, highest_of
from recrawl.columns import DAY, Float32s
from recrawl.learn.chunks import AnyPages, where
from recrawl.learn.shocks import model
from recrawl.learn.shocks.change_model import FEATURES, LEVELS, ChangeModel, network
from recrawl.learn.shocks.model import FIRST_SHARE, MAX_BINS, Bins, Groups, GroupTally, Shocks
from recrawl.loop import drive, note
from recrawl.model import Outcome, Outcomes, Picks


def watched(pages: int = 40, now: float = 10 * DAY) -> Book:
    """AnyPages of two forms, all visited nine days ago."""
    book = Book.blank(pages, now=now)
    book.visits[:], book.changes[:], book.last_visit[:] = 1, 1, now - 9 * DAY
    book.form = np.repeat(np.array([11, 22], np.int64), pages // 2)
    return book


def outcomes(pages: list[int], changed: bool) -> Outcomes:
    what = Outcome.CHANGED if changed else Outcome.UNCHANGED
    return Outcomes(np.array(pages), np.full(len(pages), what, np.int8))


def visit(plan: ShockPlan, pages: list[int], *, changed: bool) -> None:
    plan.take(np.array(pages))
    plan.observe(outcomes(pages, changed=changed))


@given(st.lists(st.floats(0.01, 30), min_size=1, max_size=400))
def test_bins_stay_few_and_tables_keep_their_sums(gaps: list[float]) -> None:
    bins, table, now = Bins(np.array([0.0])), np.zeros((1, 0), np.float32), 0.0
    for gap in gaps:
        now += gap
        bins, step = bins.up_to(now)
        table = step(table, groups=1)
        table[0, -1] += 1
    assert len(bins) <= MAX_BINS
    assert table.shape == (1, len(bins))
    assert table.sum() == len(gaps)
    assert bins.times[0] == 0
    assert bins.times[-1] == now
    assert (np.diff(bins.times) > 0).all()


def test_a_clock_that_steps_back_adds_no_bin() -> None:
    bins = Bins(np.array([0.0, 5.0]))
    again, step = bins.up_to(3.0)
    assert again is bins
    assert step(np.ones((1, 1)), groups=1).tolist() == [[1.0]]


def test_a_changed_page_raises_the_probability_of_its_group_most() -> None:
    book = watched()
    shocks = Shocks.of(book, "shock", book.form)
    place = shocks.bins.place(book.last_visit / DAY)
    before = shocks.exposure(np.arange(40), place)
    shocks.observe(np.array([0]), place[:1], np.array([True]))
    after = shocks.exposure(np.arange(40), place)
    same, other = after[1:20] / before[1:20], after[20:] / before[20:]
    assert (same > 2).all()
    assert (same > other.max()).all()


def test_unchanged_pages_lower_the_probability_of_their_group() -> None:
    book = watched()
    shocks = Shocks.of(book, "shock", book.form)
    place = shocks.bins.place(book.last_visit / DAY)
    before = shocks.exposure(np.arange(1, 20), place[1:20])
    shocks.observe(np.arange(1), place[:1], np.array([False]))
    assert (shocks.exposure(np.arange(1, 20), place[1:20]) < before).all()


def test_groups_keep_their_numbers_when_pages_are_added() -> None:
    book = watched()
    first = Groups.by(book, "x", book.form)
    first.keep(book, "x")
    more = watched(60)
    more.form = np.concatenate((np.full(20, 5), np.asarray(book.form)))
    more.memory = {name: value for name, value in book.memory.items() if name != "x.of"}
    later = Groups.by(more, "x", more.form)
    assert later.of[20:].tolist() == first.of.tolist()
    assert later.of[0] == len(first)


@given(st.data())
def test_a_tally_counts_since_any_bin(data: st.DataObject) -> None:
    book = Book.blank(10)
    book.form = np.repeat(np.array([1, 2], np.int64), 5)
    groups = Groups(np.repeat(np.array([0, 1], np.int32), 5), np.array([1, 2]), np.array([0, 0]))
    bins = Bins(np.array([0.0]))
    log: list[tuple[int, int, bool]] = []
    for day in range(data.draw(st.integers(1, 6))):
        bins, step = bins.up_to(day + 1.0)
        tally = GroupTally.of(book, ["t"], (groups,), step, len(bins))
        seen = data.draw(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=6))
        tally.observe(np.array([page for page, _ in seen], np.int64), np.array([hit for _, hit in seen], bool))
        log += [(day, page // 5, hit) for page, hit in seen]
        tally.keep(book, ["t"])
    for since in range(len(bins)):
        tries, hits = tally.since(np.array([0, 1]), since)
        for group in (0, 1):
            rows = [hit for day, of, hit in log if of == group and day >= since]
            assert (tries[group], hits[group]) == (len(rows), sum(rows))


def test_learning_is_the_same_after_storage() -> None:
    """What a cycle believes in its middle is what the memory holds when it was learned as a whole."""
    book = watched()
    seen = outcomes([3, 4, 30], changed=True)
    change_model = ChangeModel.of(book)
    change_model.observe(seen.pages, seen.changed)
    note(Shock(), book, seen, np.full(3, book.now))
    again = ChangeModel.of(book)
    np.testing.assert_allclose(again.shocks.events, change_model.shocks.events, rtol=1e-6)
    np.testing.assert_allclose(again.tally.today, change_model.tally.today)


def test_probabilities_are_valid_and_rise_with_evidence() -> None:
    book = watched()
    change_model = ChangeModel.of(book)
    others = np.arange(10, 20)
    before = change_model.predict(others)
    change_model.observe(np.arange(8), np.ones(8, bool))
    after = change_model.predict(others)
    assert ((before > 0) & (before < 1)).all()
    assert (after > before).all()
    assert (after > change_model.predict(np.arange(20, 40)).max()).all()


def sites_of_two_forms(sites: int) -> Book:
    """Forty pages a site, all visited nine days ago."""
    book = watched(40 * sites)
    book.site[:] = np.arange(len(book)) // 40
    book.folder[:] = np.arange(len(book)) // 10
    book.form = book.site * 2 + np.arange(len(book)) % 2
    return book


@given(st.data())
def test_group_estimates_are_updated_where_visits_changed_them(data: st.DataObject) -> None:
    book = sites_of_two_forms(3)
    change_model, pages = ChangeModel.of(book), np.arange(len(book))
    change_model.predict(pages)
    for _ in range(data.draw(st.integers(1, 3))):
        some = np.array(data.draw(st.lists(st.sampled_from(pages.tolist()), unique=True, max_size=5)), np.int64)
        change_model.observe(some, np.array([data.draw(st.booleans()) for _ in some], bool))
    renewed = change_model.features(pages)
    assert change_model.groups is not None
    change_model.groups = None
    np.testing.assert_array_equal(renewed, change_model.features(pages))


def test_the_cost_of_an_update_grows_with_visits_not_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    totals: list[int] = []
    features = ChangeModel.features

    def counting(self: ChangeModel, pages: AnyPages) -> NDArray[np.float32]:
        if looked:
            looked[-1] += len(pages)
        return features(self, pages)

    monkeypatch.setattr(ChangeModel, "features", counting)
    for sites in (2, 50):
        book = sites_of_two_forms(sites)
        change_model = ChangeModel.of(book)
        page = np.array([40])
        moved = change_model.shocks.observe(page, change_model.place(page), np.array([True]))
        assert moved.tolist() == [2, 3], "the groups of its site"
        assert len(change_model.tally.observe(page, np.array([True]))) == len(LEVELS)

        plan = ShockPlan(book, np.ones(len(book), bool), budget=10)
        looked.append(0)
        visit(plan, [40], changed=True)
        totals.append(looked.pop())
    assert totals[0] == totals[1] > 0


def test_stored_columns_of_wider_types_are_read() -> None:
    """As earlier programs wrote it: not a number where a group was never visited."""
    book = sites_of_two_forms(2)
    note(Shock(), book, outcomes([3, 4, 30], changed=True), np.full(3, book.now))
    book.now += DAY
    expected = ChangeModel.of(book).predict(np.arange(80))
    for name, column in book.memory.items():
        if column.dtype == np.float32:
            book.memory[name] = column.astype(np.float64)
        if name.endswith(("form.lately", "folder.lately", "site.lately")):
            book.memory[name] = np.where(column == FIRST_SHARE, np.nan, column)
    np.testing.assert_array_equal(ChangeModel.of(book).predict(np.arange(80)), expected)


def test_many_groups_are_summed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    book, pages = sites_of_two_forms(5), np.arange(0, 200, 7)
    believed = []
    for many in (1 << 12, 1):
        monkeypatch.setattr(model, "_GROUPS_AT_ONCE", many)
        monkeypatch.setattr(model, "_SITES_AT_ONCE", many)
        change_model = ChangeModel.of(book)
        moved = change_model.shocks.observe(pages, change_model.place(pages), pages % 2 == 0)
        assert sorted(moved) == list(range(10))
        believed.append(change_model.exposure(np.arange(200)))
    np.testing.assert_allclose(believed[1], believed[0], rtol=1e-6)


def test_counts_of_any_size_are_kept() -> None:
    book = Book.blank(70_000)
    groups = Groups(np.zeros(70_000, np.int32), np.array([1]), np.array([0]))
    bins, step = Bins(np.array([0.0])).up_to(1.0)
    for visits in (3, 300, 70_000):
        tally = GroupTally.of(Book.blank(70_000), ["t"], (groups,), step, len(bins))
        tally.observe(np.arange(visits), np.zeros(visits, bool))
        tally.keep(book, ["t"])
        again = GroupTally.of(book, ["t"], (groups,), bins.up_to(1.0)[1], len(bins))
        assert again.since(np.array([0]), 0).tolist() == [[visits], [0]]


def test_a_grouping_may_come_when_old_bins_are_joined() -> None:
    bins, step = Bins(np.arange(MAX_BINS + 1.0)).up_to(MAX_BINS + 1.0)
    groups = Groups(np.zeros(3, np.int32), np.array([1]), np.array([0]))
    tally = GroupTally.of(Book.blank(3), ["new"], (groups,), step, len(bins))
    tally.observe(np.array([1]), np.array([True]))
    assert step.merged
    assert tally.since(np.array([0]), 0).tolist() == [[1.0], [1.0]]


def test_the_network_fits_its_training_data() -> None:
    fitted = network()
    assert fitted.hidden.shape == (len(FEATURES), len(fitted.out))
    assert fitted.middle.shape == fitted.spread.shape == (len(FEATURES),)
    assert (fitted.spread > 0).all()


@pytest.mark.parametrize("odd", [np.inf, -np.inf, 0.0])
def test_extreme_books_give_valid_probabilities(odd: float) -> None:
    book = watched()
    book.found[:] = odd
    book.last_visit[3] = book.now + 5 * DAY  # a clock that has stepped back
    chance = ChangeModel.of(book).predict(np.arange(40))
    assert np.isfinite(chance).all()
    assert ((chance >= 0) & (chance <= 1)).all()


def test_in_one_batch_an_uncertain_group_is_only_sampled() -> None:
    """Of a group that may have changed a few pages are asked for first; when they have, it leads the next batch."""
    book = watched(400)
    book.form = np.repeat(np.arange(40, dtype=np.int64), 10)
    choice = Shock(batches=2, explore=0).cycle(book, 80, np.random.default_rng(1))
    first = next(choice).pages
    assert np.bincount(first // 10).max() <= SAMPLE
    hit = first // 10 == first[0] // 10
    what = np.where(hit, Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8)
    second = choice.send(Outcomes(first, what))  # awaited pages come first, the others by their score
    best = second.pages[np.argsort(-second.score, kind="stable")]
    assert (best[:SAMPLE] // 10 == first[0] // 10).all()


def test_samples_of_large_groups_come_before_samples_of_small_ones() -> None:
    """All pages are alike but for the size of their groups: the first of each large one is asked for first."""
    book = watched(400)
    form = np.concatenate((np.repeat([1, 2], 100), np.repeat(np.arange(3, 23), 10))).astype(np.int64)
    book.form = form
    choice = Shock(batches=10, explore=0, probe=0, curiosity=4).cycle(book, 40, np.random.default_rng(1))
    first = sorted(form[next(choice).pages].tolist())
    assert first[:2] == [1, 2]
    assert len(set(first)) == 4, "one of each of four groups"
    plan = ShockPlan(book, book.visits > 0, 40)
    plain = plan.value(plan.probability)
    raised = plain.copy()
    plan.add_information_value(raised, 4.0, 40)
    assert np.count_nonzero(raised > plain) == 22, "one page of each group"
    visit(plan, np.flatnonzero(raised > plain).tolist(), changed=False)
    after = plan.value(plan.probability)
    again = after.copy()
    plan.add_information_value(again, 4.0, 40)
    assert (again == after).all(), "each has had its visit"


def test_with_only_certain_pages_there_is_little_exploration() -> None:
    book = watched(400)
    plan = ShockPlan(book, book.visits > 0, 40)

    def best(last_taken: float) -> float:
        plan._last_taken = last_taken
        worth = plan.value(plan.probability)
        plan.add_information_value(worth, 4.0, 40)
        return float(worth.max())

    assert best(0.0) > best(0.5) > best(1.0) == plan.probability.max()


def test_information_is_worth_at_most_the_visits_that_can_use_it() -> None:
    book = watched(400)
    plan = ShockPlan(book, book.visits > 0, 40)

    def raised(after: int) -> float:
        worth = plan.value(plan.probability)
        plan.add_information_value(worth, 4.0, after)
        return float(worth.max())

    assert raised(10_000) == raised(400) > raised(40) > raised(1) > raised(0) == plan.probability.max()


@pytest.mark.parametrize("objective", ["freshness", "harmonic", "age", "links"])
def test_scores_follow_the_outcomes_of_a_batch(objective: Objective) -> None:
    """Only pages whose chances have moved are looked at again; that must make no difference."""
    book = sites_of_two_forms(2)
    plan = ShockPlan(book, book.visits > 0, 40, objective=objective)
    before = plan.value(plan.probability)
    visit(plan, [3, 4, 30], changed=True)
    after = plan.value(plan.probability)
    assert (after[[3, 4, 30]] == -np.inf).all(), "they are done"
    assert (after[plan.open] != before[plan.open]).any()
    for pages in where(plan.open):
        np.testing.assert_array_equal(after[pages], plan._index(pages, plan.probability[pages]).astype(np.float32))


def test_the_age_of_a_page_is_at_most_its_waiting_time() -> None:
    """Of two pages that have changed as surely, the one that has waited longer is worth more by age; not by others."""
    book = watched(400)
    book.last_visit[:] = book.now - 2 * DAY
    book.last_visit[1] = book.now - 20 * DAY

    def worth(objective: Objective) -> Float32s:
        plan = ShockPlan(book, book.visits > 0, 40, objective=objective)
        plan.probability[:2] = 0.9
        return plan.value(plan.probability)[:2]

    young, old = worth("age")
    assert old > 10 * young
    young, old = worth("freshness")
    assert old == young


@pytest.mark.parametrize("kinds", [1, 2, 5])
def test_of_many_equal_values_some_that_lie_apart_are_chosen(kinds: int) -> None:
    """As if all positions of the value at the end were listed first."""
    column = np.random.default_rng(kinds).integers(0, kinds, 40_000).astype(np.float32)
    for many in (1, 30, 1000):
        last = np.sort(column)[-many]
        more, equal = np.flatnonzero(column > last), np.flatnonzero(column == last)
        apart = equal[np.linspace(0, len(equal) - 1, many - len(more)).astype(int)]
        assert highest(column, many).tolist() == [*more[np.argsort(-column[more], kind="stable")], *apart]
        assert highest_of(column, many).tolist() == highest(column, many).tolist()


@pytest.mark.parametrize("values", [2, 40, 1_000_000])
@pytest.mark.parametrize("many", [1, 7, 60, 300, 3999, 4000])
def test_the_preselection_keeps_the_best_pages(values: int, many: int) -> None:
    rng = np.random.default_rng(values)
    worth = (rng.integers(values, size=4000) / values).astype(np.float32)
    worth[rng.random(len(worth)) < 0.3] = -np.inf
    for column in (worth, np.sort(worth), np.sort(worth)[::-1].copy(), np.zeros_like(worth)):
        found = highest(column, many)
        np.testing.assert_array_equal(found, highest_of(column, many))
        np.testing.assert_array_equal(np.sort(column[found])[::-1], np.sort(column)[::-1][:many])
        assert len(set(found.tolist())) == many


def test_every_page_is_visited_eventually() -> None:
    """AnyPages that never change give way to some that always do, but only as long as `patience` says."""
    pages, budget, patience = 60, 10, 2.0
    book = watched(pages, now=DAY)
    book.last_visit[:] = book.last_try[:] = 0.0
    policy, lively = Shock(batches=2, patience=patience), np.arange(pages) < 20
    longest = np.zeros(pages)
    for cycle in range(1, 121):
        book.now = cycle * DAY
        seen = list(drive(policy, Lively(lively), book, budget, seed=cycle))
        whole = Outcomes(np.concatenate([part.pages for part in seen]), np.concatenate([part.what for part in seen]))
        longest[whole.pages] = np.maximum(longest[whole.pages], book.now - book.last_try[whole.pages])
        note(policy, book, whole, np.full(len(whole), book.now))
    longest = np.maximum(longest, book.now - book.last_try)
    round_ = pages / budget * DAY
    # A tenth of the budget is for those that are over their time, so that all of them are seen within ten more rounds.
    assert longest.max() <= (patience + 10) * round_ + DAY


class Lively:
    """A world in which some pages have changed at every visit, the others never."""

    def __init__(self, lively: np.ndarray) -> None:
        self.lively = lively

    def visit(self, picks: Picks) -> Outcomes:
        what = np.where(self.lively[picks.pages], Outcome.CHANGED, Outcome.UNCHANGED)
        return Outcomes(picks.pages, what.astype(np.int8))


def test_a_reliable_hint_and_a_higher_weight_come_first() -> None:
    book = watched()
    book.hints = Hints(("lastmod",), np.zeros((1, 40), np.int16), np.full((1, 40), -np.inf), np.full((1, 40), book.now))
    book.hints.signals[0, 33] = 1
    assert next(Shock(batches=1, explore=0).cycle(book, 1, np.random.default_rng(1))).pages.tolist() == [33]
    book.hints = None
    book.weight = np.where(np.arange(40) == 17, 5.0, 1.0)
    assert next(Shock(batches=1, explore=0).cycle(book, 1, np.random.default_rng(1))).pages.tolist() == [17]
