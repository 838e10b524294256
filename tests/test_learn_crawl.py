"""R's methods over the visits of a crawl: the log against a plain list of visits, the machines against those of the
lab, the fallback to the page's own rate, and the bounds of the cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.book import Book, LinkGraph, PageWords
from recrawl.choose import make_policy
from recrawl.columns import DAY
from recrawl.lab.predict.days import Days, as_history
from recrawl.lab.predict.methods import PredictionSetting, chosen_experts, margins_by_day
from recrawl.lab.predict.planted_world import Planted, planted
from recrawl.lab.replays.replay import Setup, replay
from recrawl.learn.experts import visit_panels
from recrawl.learn.experts.machine_state import MachineState, log_loss
from recrawl.learn.experts.panels import Machines, Panel
from recrawl.learn.experts.svm import fit_platt_curve
from recrawl.learn.experts.visit_log import EARLIER_VISITS, NO_LABEL, VisitLog
from recrawl.loop import note
from recrawl.model import Outcome, Outcomes


def words_of(pages: np.ndarray, texts: list[dict[int, int]]) -> PageWords:
    """The words of pages, from dictionaries of counts."""
    word = np.array([w for text in texts for w in sorted(text)], np.int32)
    count = np.array([text[w] for text in texts for w in sorted(text)], np.uint16)
    return PageWords(pages, np.cumsum([0, *map(len, texts)]), word, count)


def fully_observed(days: Days, visits: int) -> VisitLog:
    """The log of a crawl that visits every page on each of the last days."""
    everything = np.arange(len(days))
    log = VisitLog.blank(visits).renewed(everything, np.ones(len(days), bool), len(days))
    for day in range(days.seen.shape[1]):
        counts = days.counts(day)
        words = PageWords(everything, counts.indptr.astype(np.int64), counts.indices, counts.data.astype(np.uint16))
        log = log.noted(everything, np.full(len(days), day * DAY), days.changed[:, day], words, 1000)
    return log


# -- the log ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(1, 4))
def test_the_log_holds_the_last_visits_of_every_page(seed: int, visits: int, max_words: int) -> None:
    """Against plain lists: time, label and words of each visit."""
    rng = np.random.default_rng(seed)
    log = VisitLog.blank(visits).renewed(np.arange(4), np.ones(4, bool), 3)
    plain: dict[int, list[tuple[float, int, dict[int, int] | None]]] = {page: [] for page in range(3)}
    for day in range(9):
        pages = np.flatnonzero(rng.random(4) < 0.6)
        changed = rng.random(len(pages)) < 0.5
        has_words = rng.random(len(pages)) < 0.8
        texts = [{int(w): int(rng.integers(1, 9)) for w in rng.choice(12, 3, replace=False)} for _ in pages]
        read = words_of(pages[has_words], [text for text, given in zip(texts, has_words, strict=True) if given])
        log = log.noted(pages, np.full(len(pages), float(day)), changed, read, max_words)
        for page, found, given_words, text in zip(pages.tolist(), changed, has_words, texts, strict=True):
            if page < 3:
                rows = plain[page]
                before = rows[-1][2] if rows else None
                known = (text if given_words else None) if found or before is None else before
                rows.append((float(day), NO_LABEL if not rows else int(found), known))
    bags = log.bags
    for page, every in plain.items():
        rows = every[-visits:]
        assert log.at[page, visits - len(rows) :].tolist() == [row[0] for row in rows]
        assert log.changed[page, visits - len(rows) :].tolist() == [row[1] for row in rows]
        for row, number in zip(rows, log.text[page, visits - len(rows) :].tolist(), strict=True):
            assert (number < 0) == (row[2] is None)
            if row[2] is not None:
                kept = bags[[number]]
                stored = dict(zip(kept.indices.tolist(), kept.data.tolist(), strict=True))
                assert len(stored) == min(max_words, 3)
                assert stored.items() <= row[2].items()
    assert len(log.start) - 1 == len(np.unique(log.text[log.text >= 0])), "no text is kept that no visit refers to"


def test_what_was_known_at_a_time() -> None:
    log = VisitLog.blank(3).renewed(np.array([5]), np.ones(6, bool), 1)
    for at in (10.0, 20.0):
        log = log.noted(np.array([5]), np.array([at]), np.array([True]), words_of(np.array([5]), [{1: 1}]), 9)
    assert log.text_at(np.array([0]), np.array([[10.0, 15.0, 20.0, 25.0]])).tolist() == [[-1, 0, 0, 1]]


def test_a_page_leaves_when_all_its_visits_had_one_result_or_it_is_gone() -> None:
    known = np.ones(9, bool)
    log = VisitLog.blank(3).renewed(np.array([2, 4, 6]), known, 3)
    for at in range(4):
        labels = np.array([False, at % 2 > 0, True])
        log = log.noted(np.array([2, 4, 6]), np.full(3, float(at)), labels, None, 9)
        assert log.renewed(np.array([8]), known, 3).page.tolist() == ([2, 4, 6] if at < 3 else [4, 8])
    known[4] = False
    assert log.renewed(np.array([8, 7]), known, 1).page.tolist() == [8]


# -- the machines -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "how"),
    [("2d", "xcorr"), ("3d", "graph"), ("3d", "content"), ("union", "content"), ("boosting", "graph")],
)
def test_with_every_page_visited_daily_the_margins_are_those_of_the_lab(method: str, how: str) -> None:
    """The fully observed case: the visits of a page are the days."""
    days = planted(Planted(groups=3, size=4, days=30, seed=2)).days
    train = 20
    log = fully_observed(days, train + EARLIER_VISITS)
    setting = PredictionSetting(method, experts=how, k=3, train=train)
    experts = None if method == "2d" else chosen_experts(days, setting, 30)
    # The lab predicts day 30 from days 9 to 29; it needs a day 30 to exist.
    longer = _with_unlabelled_day(days)
    pages = np.arange(len(days))
    _, lab = margins_by_day(longer, setting, range(30, 31), experts, pages)
    own = visit_panels.choose_cost(log, setting.machines(), pages)
    crawl = visit_panels.margins(log, Machines(method, train, own), Panel.of(pages, experts))
    assert np.isfinite(crawl).sum() > 6
    np.testing.assert_allclose(crawl, lab[:, 0], rtol=1e-3, atol=1e-3)


def _with_unlabelled_day(days: Days) -> Days:
    more = np.concatenate((np.arange(days.seen.shape[1]), [days.seen.shape[1] - 1]))
    columns: dict[str, Any] = {
        name: getattr(days, name)[:, more] for name in ("seen", "version", "words", "size", "text", "lists")
    }
    last = np.zeros((len(days), 1), bool)
    flags: dict[str, Any] = {
        name: np.concatenate((getattr(days, name), last), axis=1) for name in ("changed", "labelled")
    }
    return replace(days, times=np.append(days.times, days.times[-1] + 86400), **columns, **flags)


@pytest.mark.parametrize("how", ["graph", "content", "xcorr", "dtw"])
def test_with_every_page_visited_daily_the_experts_are_those_of_the_lab(how: str) -> None:
    world = planted(Planted(groups=3, size=4, days=30, seed=2))
    days = world.days
    log = fully_observed(days, 31)
    moments = np.arange(30, dtype=np.float64) * DAY
    links = days.links_on(29)
    mine = visit_panels.choose_experts(log, how, 3, 7, moments, LinkGraph(links.start, links.target))
    lab = chosen_experts(days, PredictionSetting("3d", experts=how, k=3), 30)
    assert mine.page.tolist() == lab.page.tolist()
    np.testing.assert_allclose(mine.weight, lab.weight, rtol=1e-5)


def test_an_expert_counts_as_it_was_known_before_the_visit() -> None:
    """What an expert's visit finds after the target's visit is not part of the example of that visit."""
    pages = np.array([0, 1])
    log = VisitLog.blank(4).renewed(pages, np.ones(2, bool), 2)
    visits = [(1.0, 1, True, 11), (2.0, 0, False, 1), (3.0, 1, True, 12), (4.0, 0, True, 2), (5.0, 1, True, 13)]
    for at, page, changed, word in visits:
        read = words_of(np.array([page]), [{word: 1}])
        log = log.noted(np.array([page]), np.array([at]), np.array([changed]), read, 9)
    observed, panel = visit_panels._observations(log, Panel(np.array([0]), np.array([[0, 1]]), np.ones((1, 2))))
    known = [int(observed.bags[[text]].indices[0]) if text >= 0 else None for text in observed.text[1]]
    assert known == [None, None, 12, 13], "before the visits at 4 and now"
    assert panel.expert.tolist() == [[0, 1]]
    assert observed.changed[0].tolist() == [False, False, False, True]
    assert observed.labelled[0].tolist() == [False, False, False, True]


def test_a_platt_curve_with_an_offset_corrects_the_offset() -> None:
    """With scores that say nothing, the offset stays; with scores that say all, it is corrected."""
    rng = np.random.default_rng(1)
    odds = rng.normal(size=4000)
    label = rng.random(4000) < 1 / (1 + np.exp(-odds))
    idle = fit_platt_curve(rng.normal(size=4000), label, odds)
    assert idle.slope < 0.1
    assert abs(idle.shift) < 0.1
    score = rng.normal(size=4000)
    label = rng.random(4000) < 1 / (1 + np.exp(-odds - 2 * score))
    assert fit_platt_curve(score, label, odds).slope == pytest.approx(2.0, abs=0.2)


# -- the fallback -----------------------------------------------------------------------------------------------


def test_machines_are_trusted_only_where_their_record_is_better() -> None:
    state = MachineState.blank(np.arange(4))
    state.margin[:] = [1.0, 1.0, np.nan, 1.0]
    site = np.array([0, 1, 0, 0], np.int32)
    assert not state.trusted(site).any(), "without a record the rate decides"
    for _ in range(40):
        state.judge(np.array([0]), np.array([0.9]), np.array([0.5]), np.array([True]))
        state.judge(np.array([1]), np.array([0.9]), np.array([0.5]), np.array([False]))
    assert state.trusted(site).tolist() == [True, False, False, True], "page 3 follows its site; page 2 abstains"
    assert state.gain[0] == pytest.approx(
        sum(0.95**n for n in range(40)) * (log_loss(np.array([0.5]), np.ones(1, bool))[0] + np.log(0.9))
    )


def _replayed(text: str, days: Days, budget: int, cycles: int) -> Any:
    return replay(as_history(days), make_policy(text), Setup(budget=budget, cycle=DAY, cycles=cycles, samples=1))


def test_where_pages_change_by_chance_it_finds_as_much_as_the_rate() -> None:
    """Nothing can be learned here; what the machines cost is within chance."""
    base = planted(Planted(groups=15, size=2, days=60, rate=0.3, seed=5))
    alone = base.days.take(np.flatnonzero(base.kind == 2))
    rate = _replayed("predicted(method=1d)", alone, 4, 59)
    machines = _replayed("predicted(method=2d, train=15)", alone, 4, 59)
    assert machines.work["machines_in_all"] > 50
    assert machines.found.sum() > rate.found.sum() - 2 * np.sqrt(rate.found.sum())


def test_machines_learn_what_a_rate_cannot() -> None:
    """Pages that change every other visit: the rate says one half, a machine sees the alternation."""
    book = Book.blank(12, now=1e9)
    book.visits[:] = book.changes[:] = 1
    book.last_visit[:] = book.last_try[:] = book.last_change[:] = book.now
    policy = make_policy("predicted(method=2d, train=12, explore=0)")
    pages = np.arange(12)
    for day in range(60):
        book.now += DAY
        flags = (pages + day) % 2 == 0
        what = np.where(flags, Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8)
        book.words = words_of(pages, [{day % 5 + 10 * page: 3, 500 + page: 2} for page in pages.tolist()])
        note(policy, book, Outcomes(pages, what), np.full(12, book.now))
    book.now += DAY
    picks = next(policy.cycle(book, 12, np.random.default_rng(1)))
    likely = (pages + 60) % 2 == 0
    probability = np.zeros(12)
    probability[picks.pages] = picks.score
    assert probability[likely].min() > 0.8
    assert probability[~likely].max() < 0.2
    rate = make_policy("predicted(method=1d, explore=0)")
    plain = next(rate.cycle(book, 12, np.random.default_rng(1)))
    assert plain.score.max() < 0.7


# -- the cost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["2d", "3d", "union", "bagging"])
def test_no_cycle_fits_more_machines_than_allowed_and_tracks_more_pages(method: str) -> None:
    days = planted(Planted(groups=3, size=6, days=40)).days
    history = as_history(days)
    policy = make_policy(f"predicted(method={method}, k=3, train=12, fits=30, pages=10, retrain=4)")
    most: list[int] = []
    learn = policy.learn  # type: ignore[attr-defined]

    def counted(book: Book, seen: Outcomes, at: np.ndarray) -> None:
        learn(book, seen, at)
        work = policy.work(book)  # type: ignore[attr-defined]
        most.append(work["machines"])
        assert work["pages_tracked"] <= 10

    policy.learn = counted  # type: ignore[attr-defined]
    found = replay(history, policy, Setup(budget=12, cycle=DAY, cycles=39, samples=1))
    assert max(most) <= 30
    assert max(most) > 5
    assert found.work["machines_in_all"] == sum(most)
    assert found.summary()["work"] == found.work
