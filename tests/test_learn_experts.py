"""SVMs against scikit-learn, features against slow implementations, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.svm import SVC

from recrawl.learn.experts.classifiers import (
    MIN_EXAMPLES,
    PlattCurve,
    Problems,
    bagging,
    boosting,
    fit_platt_curve,
    gram_matrix,
    margins,
    polynomial,
    single,
    solve,
    training_set,
    votes,
)
from recrawl.learn.experts.features import FeatureWindow, Observations, own_features, pair_features, row_sums

Array = NDArray[Any]


def problems(count: int, examples: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, examples + 1, 4))
    yes = x[:, :-1, 0] + rng.normal(size=(count, examples)) > 0.3
    return polynomial(np.matmul(x, x.transpose(0, 2, 1)), 0.25), yes


# -- SVMs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [0.1, 1.0, 10.0])
def test_svms_equal_scikit_learn(cost: float) -> None:
    kernel, yes = problems(40, 30, seed=1)
    found = solve(kernel[:, :-1, :-1], yes, np.full(yes.shape, cost)).margin(kernel[:, -1, :-1])
    for place in range(40):
        other = SVC(kernel="precomputed", C=cost, tol=1e-4).fit(kernel[place, :-1, :-1], yes[place])
        assert found[place] == pytest.approx(other.decision_function(kernel[place, -1:, :-1])[0], abs=0.02)


def test_weighted_and_excluded_examples_equal_scikit_learn() -> None:
    kernel, yes = problems(20, 30, seed=2)
    weight = np.random.default_rng(3).integers(0, 4, yes.shape).astype(float)
    found = solve(kernel[:, :-1, :-1], yes, weight).margin(kernel[:, -1, :-1])
    for place in range(20):
        kept = weight[place] > 0
        other = SVC(kernel="precomputed", C=1.0, tol=1e-4)
        other.fit(kernel[place, :-1, :-1][np.ix_(kept, kept)], yes[place, kept], sample_weight=weight[place, kept])
        assert found[place] == pytest.approx(other.decision_function(kernel[place, -1:, :-1][:, kept])[0], abs=0.02)


def test_polynomial_kernel_equals_scikit_learn() -> None:
    x = np.random.default_rng(1).normal(size=(20, 3))
    yes = x[:, 0] ** 3 > x[:, 1]
    machine = solve(polynomial(x @ x.T, 0.5)[None], yes[None], np.ones((1, 20)))
    theirs = SVC(kernel="poly", degree=3, gamma=0.5, coef0=1.0, C=1.0, tol=1e-4).fit(x, yes)
    new = np.array([[0.3, -0.2, 1.0]])
    ours = machine.margin(polynomial(new @ x.T, 0.5))
    assert ours == pytest.approx(theirs.decision_function(new), abs=0.01)


def test_one_class_predicts_that_class() -> None:
    kernel, yes = problems(3, 12, seed=4)
    yes[0], yes[1] = True, False
    cap = np.ones(yes.shape)
    cap[2] = 0
    assert np.sign(solve(kernel[:, :-1, :-1], yes, cap).margin(kernel[:, -1, :-1])).tolist() == [1, -1, 0]


def test_no_problems_give_an_empty_result() -> None:
    assert solve(np.zeros((0, 5, 5)), np.zeros((0, 5), bool), np.zeros((0, 5))).bias.shape == (0,)


def test_a_solved_problem_is_left_alone_while_others_continue() -> None:
    """Two examples among days without a label, solved at once, beside a problem that takes many steps."""
    kernel, yes = problems(2, 30, seed=5)
    cap = np.full(yes.shape, 10.0)
    cap[0] = 0.0
    cap[0, [3, 29]] = 1.0
    yes[0, 3], yes[0, 29] = True, False
    kernel[0, [3, 29], [3, 29]], kernel[0, [3, 29], [29, 3]] = 1.953125, 0.421875  # rests by rounding, not exactly
    both = solve(kernel[:, :-1, :-1], yes, cap)
    alone = solve(kernel[:1, :-1, :-1], yes[:1], cap[:1])
    assert np.isfinite(both.weight).all()
    assert np.isfinite(both.bias).all()
    np.testing.assert_array_equal(both.weight[0], alone.weight[0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 20))
def test_weights_stay_within_bounds(seed: int, cost: float) -> None:
    kernel, yes = problems(3, 15, seed)
    weight = solve(kernel[:, :-1, :-1], yes, np.full(yes.shape, cost)).weight
    assert (weight * np.where(yes, 1, -1) >= -1e-12).all()
    assert (np.abs(weight) <= cost + 1e-9).all()
    assert weight.sum(axis=1) == pytest.approx(np.zeros(3), abs=1e-9)


def test_platt_fit_recovers_the_curve() -> None:
    rng = np.random.default_rng(1)
    score = rng.normal(size=20_000)
    curve = fit_platt_curve(score, rng.random(20_000) < 1 / (1 + np.exp(-(2 * score - 1))))
    assert curve.slope == pytest.approx(2, abs=0.15)
    assert curve.shift == pytest.approx(-1, abs=0.1)
    assert fit_platt_curve(np.array([np.nan]), np.array([True])) == PlattCurve()
    sure = fit_platt_curve(np.ones(50), np.ones(50, bool))(np.array([1.0]))[0]
    assert 0.9 < sure < 1


# -- features ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def diary() -> Observations:
    rng = np.random.default_rng(5)
    text = np.cumsum(rng.random((6, 14)) < 0.5, axis=1) + 20 * np.arange(6)[:, None]
    text[2, 4:6] = -1
    changed = np.zeros(text.shape, bool)
    changed[:, 1:] = text[:, 1:] != text[:, :-1]
    bags = sparse.csr_array(rng.poisson(0.7, (140, 12)).astype(np.uint16))
    return Observations(bags, text.astype(np.int32), changed & (text >= 0), text >= 0)


def cosine(a: Array, b: Array) -> float:
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / size) if size > 1e-9 else 0.0


@pytest.mark.parametrize("shape", [FeatureWindow(1, 1), FeatureWindow(3, 1), FeatureWindow(2, 3)])
def test_own_features_match_the_paper(diary: Observations, shape: FeatureWindow) -> None:
    found = own_features(diary, shape)
    counts = diary.bags.toarray().astype(float)
    page = 1

    def at(day: int) -> Array:
        found: Array = counts[diary.text[page, day]]
        return found

    for day in range(shape.window + shape.interval, 14):
        flags = [float(diary.changed[page, day - i]) for i in range(shape.window)]
        window = range(1, shape.window + 1)
        far = [np.linalg.norm(at(day) - at(day - i)) for i in window]
        steps = [np.linalg.norm(at(day - i) - at(day - i - shape.interval)) for i in window]
        assert found.values[page, day] == pytest.approx([np.mean(flags), *flags, *far, *steps], abs=1e-4)
        share = [at(other) / max(at(other).sum(), 1) for other in (day, day - 2)]
        assert found.words[page, day, day - 2] == pytest.approx(share[0] @ share[1], abs=1e-5)
    assert found.values.shape[2] == 1 + 3 * shape.window


@pytest.mark.parametrize("window", [1, 3])
def test_pair_features_match_the_paper(diary: Observations, window: int) -> None:
    found = pair_features(diary, np.array([0, 3]), np.array([1, 3]), FeatureWindow(window))
    counts = diary.bags.toarray().astype(float)

    def at(page: int, day: int) -> Array:
        found: Array = counts[diary.text[page, day]]
        return found

    for place, (a, b) in enumerate([(0, 1), (3, 3)]):
        for day in range(window, 14):
            alike = [cosine(at(a, day - i), at(b, day - i)) for i in range(window)]
            to_page = [cosine(at(b, day) - at(b, day - i), at(a, day)) for i in range(1, window + 1)]
            moves = [
                cosine(at(b, day - i + 1) - at(b, day - i), at(a, day - i + 1) - at(a, day - i))
                for i in range(1, window + 1)
            ]
            assert found[place, day] == pytest.approx([*alike, *to_page, *moves], abs=1e-4)


def test_an_unobserved_day_has_no_features_and_earlier_ones_use_the_last_text(diary: Observations) -> None:
    found = own_features(diary)
    assert not found.present[2, 4:6].any()
    assert found.present[2, 6]
    assert not found.present[:, 0].any()  # nothing before it
    counts = diary.bags.toarray().astype(float)
    far = np.linalg.norm(counts[diary.text[2, 6]] - counts[diary.text[2, 3]])
    assert found.values[2, 6, 2] == pytest.approx(far, abs=1e-4)


def test_features_do_not_depend_on_later_days(diary: Observations) -> None:
    rng = np.random.default_rng(9)
    text, changed = diary.text.copy(), diary.changed.copy()
    text[:, 8:] = rng.integers(0, 140, (6, 6))
    changed[:, 8:] = rng.random((6, 6)) < 0.5
    other = Observations(diary.bags, text, changed, diary.labelled)
    assert (own_features(diary).values[:, :8] == own_features(other).values[:, :8]).all()
    a, b = np.arange(6), np.arange(6)[::-1].copy()
    assert (pair_features(diary, a, b)[:, :8] == pair_features(other, a, b)[:, :8]).all()


def test_empty_texts_have_features() -> None:
    bags = sparse.csr_array((2, 4), dtype=np.uint16)
    empty = Observations(bags, np.zeros((2, 5), np.int32), np.zeros((2, 5), bool), np.ones((2, 5), bool))
    assert np.isfinite(own_features(empty).values).all()
    assert (pair_features(empty, np.array([0]), np.array([1])) == 0).all()
    assert row_sums(bags).tolist() == [0, 0]


# -- experts -------------------------------------------------------------------------------------------


def panel(signal: bool, days: int = 60, seed: int = 1) -> Problems:
    """Page 0 changes the day after page 1 does; page 1 changes at random."""
    rng = np.random.default_rng(seed)
    flags = rng.random((2, days)) < 0.5
    if signal:
        flags[0, 1:] = flags[1, :-1]
    text = (np.cumsum(flags, axis=1) % 7 + np.array([[0], [7]])).astype(np.int32)
    bags = sparse.csr_array(np.eye(14, dtype=np.uint16))
    diary = Observations(bags, text, flags, np.ones(flags.shape, bool))
    return Problems(own_features(diary), flags, diary.labelled, np.array([0, 0]), np.array([0, 1]))


def test_a_leading_expert_predicts_the_change() -> None:
    it = panel(signal=True)
    right = [(margins(it, day, 30) > 0) == it.changed[0, day] for day in range(40, 60)]
    by_itself, by_expert = np.mean(right, axis=0)
    assert by_expert == 1.0
    assert by_itself < 0.8


def test_gram_matrix_has_variance_one_and_ignores_missing_days() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(3, 5, (1, 21, 1))
    present = np.ones((1, 21), bool)
    present[0, 4] = False
    use = present[:, :-1].copy()
    inner = gram_matrix(values, None, present, use)
    assert np.einsum("bii->bi", inner[:, :-1])[0, use[0]].mean() == pytest.approx(1)
    assert (inner[0, 4] == 0).all()


@pytest.mark.parametrize("labelled", [0, MIN_EXAMPLES - 1])
def test_too_few_examples_abstain(labelled: int) -> None:
    it = panel(signal=True)
    it.labelled[:] = False
    it.labelled[:, 39 : 39 + labelled] = True
    assert np.isnan(margins(it, 50, 30)).all()


def test_one_class_and_constant_features_have_an_answer() -> None:
    it = panel(signal=True)
    it.changed[:] = True
    assert (margins(it, 50, 30) > 0).all()
    it.changed[:] = False
    assert (margins(it, 50, 30) < 0).all()
    it.own.values[:] = 0.0
    it.own.words[:] = 0.0
    it.changed[:, ::2] = True
    assert np.isfinite(margins(it, 50, 30)).all()


def test_abstaining_experts_do_not_vote() -> None:
    says, sure = votes(np.array([[np.nan, 1.0], [-1.0, 1.0]]), np.array([[9.0, 0.1], [2.0, 1.0]]))
    assert says.tolist() == [True, False]
    assert sure[0] == pytest.approx(1.0)


@pytest.mark.parametrize("how", ["one", "bagged", "boosted"])
def test_ensembles_learn_what_a_single_svm_learns(how: str) -> None:
    it = panel(signal=True)
    right = []
    for day in range(40, 55):
        taught = training_set(it, slice(1, 2), day, 30)
        side = {
            "one": lambda t=taught: single(t, 1.0),
            "bagged": lambda t=taught: bagging(t, 1.0, np.random.default_rng(1)),
            "boosted": lambda t=taught: boosting(t, 1.0),
        }[how]()
        right.append((side[0] > 0) == it.changed[0, day])
    assert np.mean(right) == 1.0
