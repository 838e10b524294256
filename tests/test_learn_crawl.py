"""R's methods over the visits of a crawl: the log against a plain list of visits, the machines against those of the
lab, the fallback to the page's own rate, and the bounds of the cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC

from recrawl.book import Book, LinkGraph, PageWords
from recrawl.choose import make_policy
from recrawl.columns import DAY
from recrawl.lab.predict.days import Days, Planted, as_history, planted
from recrawl.lab.predict.methods import PredictionSetting, chosen_experts
from recrawl.lab.replays.replay import Setup, replay
from recrawl.learn.experts import panels
from recrawl.learn.experts.classifiers import fit_platt_curve
from recrawl.learn.experts.features import FeatureWindow, Observations, numeric_features
from recrawl.learn.experts.online_learner import MachineState, log_loss
from recrawl.learn.experts.panels import NO_LABEL, Machines, Panel, VisitLog
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
        log = log.noted(
            everything, np.full(len(days), day * DAY), days.changed[:, day], np.zeros(len(days)), words, 1000
        )
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
        log = log.noted(pages, np.full(len(pages), float(day)), changed, np.add(pages, 0.5), read, max_words)
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
        assert log.odds[page, visits - len(rows) :].tolist() == [page + 0.5] * len(rows)
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
        log = log.noted(
            np.array([5]), np.array([at]), np.array([True]), np.zeros(1), words_of(np.array([5]), [{1: 1}]), 9
        )
    assert log.text_at(np.array([0]), np.array([[10.0, 15.0, 20.0, 25.0]])).tolist() == [[-1, 0, 0, 1]]


def test_a_page_leaves_when_all_its_visits_had_one_result_or_it_is_gone() -> None:
    known = np.ones(9, bool)
    log = VisitLog.blank(3).renewed(np.array([2, 4, 6]), known, 3)
    for at in range(4):
        labels = np.array([False, at % 2 > 0, True])
        log = log.noted(np.array([2, 4, 6]), np.full(3, float(at)), labels, np.zeros(3), None, 9)
        assert log.renewed(np.array([8]), known, 3).page.tolist() == ([2, 4, 6] if at < 3 else [4, 8])
    known[4] = False
    assert log.renewed(np.array([8, 7]), known, 1).page.tolist() == [8]


# -- the machines -----------------------------------------------------------------------------------------------


def test_the_shared_machine_is_one_machine_on_the_visits_of_all_pages() -> None:
    """Against scikit-learn on plain features: every visit of every page is one example."""
    days = planted(Planted(groups=2, size=4, days=14, seed=3)).days
    log = fully_observed(days, 14)
    rng = np.random.default_rng(1)
    log = replace(log, odds=rng.normal(size=log.at.shape).astype(np.float32))
    pages = np.arange(len(days))
    found, _, fitted = panels.margins(log, Machines("2d", 14), Panel.of(pages, None))
    assert fitted == 1
    observed = Observations(log.bags, log.text, log.changed == 1, log.changed != NO_LABEL)
    numbers, _, present = numeric_features(observed)
    share = log.bags.toarray() / log.bags.sum(axis=1)[:, None]
    examples = [(page, day) for page in pages for day in range(13) if present[page, day] and day >= 0]
    queries = [(page, 13) for page in pages]
    both = examples + queries
    plain = np.array([[*numbers[it], log.odds[it]] for it in both], np.float64)
    words = np.array([share[log.text[it]] for it in both])
    use = slice(0, len(examples))
    spread = plain[use].std(axis=0)
    scaled = np.clip((plain - plain[use].mean(axis=0)) / np.where(spread > 0, spread, np.inf), -5, 5)
    centred = words - words[use].mean(axis=0)
    centred /= np.sqrt((centred[use] ** 2).sum(axis=1).mean())
    inner = (scaled @ scaled.T + np.clip(centred @ centred.T, -25, 25)) / (plain.shape[1] + 1)
    kernel = (inner + 1) ** 3
    labels = [log.changed[page, day + 1] == 1 for page, day in examples]
    machine = SVC(C=1.0, kernel="precomputed").fit(kernel[use, use], labels)
    np.testing.assert_allclose(found, machine.decision_function(kernel[len(examples) :, use]), atol=5e-3)


@pytest.mark.parametrize(
    ("method", "machines"), [("2d", 1), ("3d", 2), ("union", 1), ("bagging", 10), ("boosting", 10)]
)
@pytest.mark.parametrize("shape", [FeatureWindow(1, 1), FeatureWindow(3, 2)])
def test_every_method_answers_from_the_newest_visits_alone(method: str, machines: int, shape: FeatureWindow) -> None:
    days = planted(Planted(groups=3, size=4, days=24, seed=2)).days
    log = fully_observed(days, 24)
    pages = np.arange(len(days))
    experts = panels.choose_experts(log, "content", 3, (0, 7), np.arange(24, dtype=np.float64) * DAY, None)
    parameters = Machines(method, 24, shape=shape)
    found, cost, fitted = panels.margins(log, parameters, Panel.of(pages, experts), tune=True)
    assert np.isfinite(found).all()
    assert fitted == machines
    assert cost in (0.1, 1.0, 10.0)
    other = replace(
        log, changed=np.where(np.arange(24) < shape.window + shape.interval, 0, log.changed).astype(np.int8)
    )
    again = panels.margins(other, parameters, Panel.of(pages, experts), tune=True)[0]
    assert np.isfinite(again).all()
    silent = replace(log, changed=np.where(log.changed == 1, 0, log.changed).astype(np.int8))
    assert np.isnan(panels.margins(silent, parameters, Panel.of(pages, experts))[0]).all(), "one class only"


def test_the_log_can_get_another_number_of_visits() -> None:
    days = planted(Planted(groups=1, size=3, days=9, seed=1)).days
    log = fully_observed(days, 6)
    longer, shorter = log.with_visits(8), log.with_visits(4)
    assert longer.at[:, 2:].tolist() == log.at.tolist()
    assert np.isnan(longer.at[:, :2]).all()
    assert (longer.text[:, :2] == -1).all()
    assert shorter.at.tolist() == log.at[:, 2:].tolist()
    assert len(shorter.start) - 1 == len(np.unique(shorter.text[shorter.text >= 0]))


@pytest.mark.parametrize("how", ["graph", "content", "xcorr", "dtw"])
def test_with_every_page_visited_daily_the_experts_are_those_of_the_lab(how: str) -> None:
    world = planted(Planted(groups=3, size=4, days=30, seed=2))
    days = world.days
    log = fully_observed(days, 31)
    moments = np.arange(30, dtype=np.float64) * DAY
    links = days.links_on(29)
    mine = panels.choose_experts(log, how, 3, (0, 7), moments, LinkGraph(links.start, links.target))
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
        log = log.noted(np.array([page]), np.array([at]), np.array([changed]), np.zeros(1), read, 9)
    observed, panel = panels._observations(log, Panel(np.array([0]), np.array([[0, 1]]), np.ones((1, 2))))
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
    assert machines.work["machines_in_all"] == 50
    assert machines.found.sum() > rate.found.sum() - 2 * np.sqrt(rate.found.sum())


def alternating(text: str, days: int) -> tuple[Any, Book]:
    """A policy that has visited 24 pages daily, which change every other day."""
    book = Book.blank(24, now=1e9)
    book.visits[:] = book.changes[:] = 1
    book.last_visit[:] = book.last_try[:] = book.last_change[:] = book.now
    policy = make_policy(text)
    pages = np.arange(24)
    for day in range(days):
        book.now += DAY
        what = np.where((pages + day) % 2 == 0, Outcome.CHANGED, Outcome.UNCHANGED).astype(np.int8)
        book.words = words_of(pages, [{day % 5 + 10 * page: 3, 500 + page: 2} for page in pages.tolist()])
        note(policy, book, Outcomes(pages, what), np.full(24, book.now))
    book.now += DAY
    return policy, book


@pytest.mark.parametrize("method", ["2d", "3d", "union", "bagging", "boosting"])
def test_the_machines_decide_in_the_first_week(method: str) -> None:
    """The rate of every page is one half; the machines have seen the alternation on other pages."""
    policy, book = alternating(f"predicted(method={method}, k=2, retrain=2, explore=0)", 7)
    assert policy.work(book)["pages_by_machines"] == 24
    probability = policy.change_probability(book, np.arange(24))
    likely = (np.arange(24) + 7) % 2 == 0
    assert probability[likely].min() > 0.6
    assert probability[~likely].max() < 0.4


def test_machines_learn_what_a_rate_cannot() -> None:
    """Pages that change every other visit: the rate says one half, a machine sees the alternation."""
    policy, book = alternating("predicted(method=2d, train=12, explore=0)", 60)
    picks = next(policy.cycle(book, 24, np.random.default_rng(1)))
    likely = (np.arange(24) + 60) % 2 == 0
    probability = np.zeros(24)
    probability[picks.pages] = picks.score
    assert probability[likely].min() > 0.8
    assert probability[~likely].max() < 0.2
    rate = make_policy("predicted(method=1d, explore=0)")
    plain = next(rate.cycle(book, 24, np.random.default_rng(1)))
    assert plain.score.max() < 0.7


# -- the cost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["2d", "3d", "union", "bagging"])
def test_no_cycle_asks_about_more_pages_than_allowed_and_tracks_more(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = planted(Planted(groups=3, size=6, days=40)).days
    policy = make_policy(f"predicted(method={method}, k=3, train=12, fits=8, pages=10, retrain=4)")
    asked: list[int] = []
    fit = panels.margins

    def counted(log: VisitLog, machines: Machines, panel: Panel, *, tune: bool) -> Any:
        asked.append(int((panel.expert >= 0).sum()) if method != "2d" else len(panel.target))
        assert len(log) <= 10
        return fit(log, machines, panel, tune=tune)

    monkeypatch.setattr(panels, "margins", counted)
    found = replay(as_history(days), policy, Setup(budget=12, cycle=DAY, cycles=39, samples=1))
    assert 4 < max(asked) <= 8
    assert found.work["pages_tracked"] <= 10
    assert found.work["machines_in_all"] >= len(asked) - 5
