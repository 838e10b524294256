"""Classifiers that predict whether a page will change, each trained on the features of one page (spec L3; R §5).

A *problem* is a target page and an expert page. Its examples are the expert's features on past days, its labels whether
the target changed `interval` days later, and its query the expert's features today. With the page as its own only
expert this is R's single expert. With several experts the answer is a weighted vote (R fig. 3), or one machine takes
the features of all experts (relational union), optionally with bagging or boosting.

Every feature is scaled to variance 1 over the examples of the problem; the word distribution as a whole counts as one
feature. A day without features or without a label is not an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from recrawl.columns import Flags, Float32s, Floats, Ints
from recrawl.extras import sklearn
from recrawl.learn.experts.features import FeatureWindow, OwnFeatures
from recrawl.learn.pooled.model import single_thread

# --------------------------------------------------------------------------------------------------------------------
# Thousands of small support vector machines solved at once (spec L3).
#
# R trains a machine for every page, each of its experts and every day, on about 50 examples each. With a library, the
# time goes into thousands of calls rather than into solving. Here the problems are stacked in one array and every step
# is taken in all of them together. The method is SMO with second-order pair selection, as in LIBSVM, so the machines
# equal those of scikit-learn's `SVC`; the tests compare the two.
#
#     maximise  Σ a - ½ Σ a_i a_j y_i y_j K_ij,   0 ≤ a_i ≤ limit_i,   Σ a_i y_i = 0
#
# An example with a limit of 0 is ignored, which is how days without a label are left out. If all labels are the same,
# the machine always predicts that label.
#
# `fit_platt_curve` calibrates margins: a logistic curve from scores to probabilities (Platt; R §8.3, spec L7).


_TOLERANCE = 1e-3
_MIN_CURVATURE = 1e-12
_MAX_STEPS = 20_000
_SVM_BATCH = 512
"""Problems solved together; few enough for the processor's cache."""
_LARGE = 100
"""Examples from which a lone problem goes to scikit-learn."""
_CHECK_EVERY = 16
"""Steps between two checks for solved problems."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedSVMs:
    """Solved problems, one per row."""

    weight: Floats
    """Problem by example: a·y."""
    bias: Floats

    def margin(self, kernel: Floats) -> Floats:
        """The margin of a new example, above 0 for yes; `kernel` (problem by training example) is its kernel."""
        return self.margins(kernel[:, None])[:, 0]

    def margins(self, kernel: Floats) -> Floats:
        """The margins of several new examples (problem by new example by training example)."""
        margins: Floats = np.einsum("bqi,bi->bq", kernel, self.weight) + self.bias[:, None]
        return margins


def polynomial(inner: Floats, gamma: Floats | float, degree: int = 3) -> Floats:
    """The kernel (gamma·<x, y> + 1)^degree from inner products (spec L3: degree 3)."""
    base: Floats = inner * gamma + 1.0
    return base**degree


def solve(kernel: Floats, label: Flags, limit: Floats) -> TrainedSVMs:
    """Train one machine per problem: kernel [B, n, n], labels [B, n], upper bound of each example's weight [B, n].

    >>> x = np.array([[-1.0, 1.0, 2.0]])
    >>> machines = solve(x[:, :, None] * x[:, None, :], x > 0, np.full((1, 3), 10.0))
    >>> machines.margin(np.array([[-0.5, 0.5, 1.0]])).round(3).tolist()     # of a new x = 0.5
    [0.5]
    """
    if len(label) == 1 and label.shape[1] > _LARGE:
        return _solve_large(kernel[0], label[0], limit[0])
    parts = [slice(start, start + _SVM_BATCH) for start in range(0, len(label), _SVM_BATCH)]
    solved = [_solve_batch(kernel[part], np.where(label[part], 1.0, -1.0), limit[part]) for part in parts]
    weight = np.concatenate([part for part, _ in solved]) if solved else np.zeros(limit.shape)
    return TrainedSVMs(weight, np.concatenate([part for _, part in solved]) if solved else np.zeros(0))


def _solve_large(kernel: Floats, label: Flags, limit: Floats) -> TrainedSVMs:
    """One problem of many examples: scikit-learn's `SVC` is faster than steps of numpy."""
    used = np.flatnonzero(limit > 0)
    weight = np.zeros((1, len(label)))
    if not len(used) or label[used].all() or not label[used].any():
        sign = 0.0 if not len(used) else 1.0 if label[used[0]] else -1.0
        return TrainedSVMs(weight, np.array([sign]))
    with single_thread():
        machine = sklearn.svm.SVC(C=1.0, kernel="precomputed", tol=_TOLERANCE)
        machine.fit(kernel[np.ix_(used, used)], label[used], sample_weight=limit[used])
    weight[0, used[machine.support_]] = machine.dual_coef_[0]
    return TrainedSVMs(weight, machine.intercept_)


def _solve_batch(kernel: Floats, sign: Floats, limit: Floats) -> tuple[Floats, Floats]:
    """Weights and biases of one batch of problems."""
    low, high = np.where(sign > 0, 0.0, -limit), np.where(sign > 0, limit, 0.0)
    weight, gradient = np.zeros(sign.shape), sign.copy()
    diagonal = np.einsum("bii->bi", kernel)
    rows = np.arange(len(sign))
    # Of the unsolved problems: weight a·y, gradient y - K·weight, bounds and kernel diagonal.
    active = [weight.copy(), gradient.copy(), low, high, diagonal]
    for step in range(_MAX_STEPS):
        gap = _smo_step(kernel, rows, *active)
        if step % _CHECK_EVERY == 0:
            weight[rows], gradient[rows] = active[0], active[1]
            unsolved = gap > _TOLERANCE
            if not unsolved.any():
                break
            rows, active = rows[unsolved], [column[unsolved] for column in active]
    weight[rows], gradient[rows] = active[0], active[1]
    return weight, _bias(gradient, weight, low, high, sign, limit)


def _smo_step(
    kernel: Floats,
    rows: Ints,
    weight: Floats,
    gradient: Floats,
    low: Floats,
    high: Floats,
    diagonal: Floats,
) -> Floats:
    """Shift weight from example j to example i in every problem, in place; return each problem's optimality gap.

    Example i has the largest gradient among those that can grow. Example j gives the largest gain of the objective
    (second order, as in LIBSVM). The gap is the one before the step.
    """
    at = np.arange(len(rows))
    up = np.where(weight < high, gradient, -np.inf)
    i = up.argmax(axis=1)
    highest = up[at, i]
    row_i = kernel[rows, i]
    pull = highest[:, None] - np.where(weight > low, gradient, np.inf)  # -inf where the weight cannot shrink
    gap = pull.max(axis=1)
    curvature = np.maximum(diagonal[at, i][:, None] + diagonal - 2 * row_i, _MIN_CURVATURE)
    gain = np.where(pull > 0, pull, 0.0) ** 2 / curvature
    j = gain.argmax(axis=1)
    room_i, room_j = high[at, i] - weight[at, i], weight[at, j] - low[at, j]
    shift = np.minimum(np.minimum(pull[at, j] / curvature[at, j], room_i), room_j)
    # A solved problem is left alone. Further steps would shrink until the squared pull underflows to 0, and j would no
    # longer be an example whose weight can shrink.
    shift = np.where(gap > _TOLERANCE, shift, 0.0)
    # A weight that reaches its bound is set to it exactly: one off by rounding would keep the problem unsolved.
    raised = np.where(shift >= room_i, high[at, i], weight[at, i] + shift)
    lowered = np.where(shift >= room_j, low[at, j], weight[at, j] - shift)
    weight[at, i], weight[at, j] = (
        np.where(shift > 0, raised, weight[at, i]),
        np.where(shift > 0, lowered, weight[at, j]),
    )
    gradient -= shift[:, None] * (row_i - kernel[rows, j])
    return np.where(np.isfinite(gap), gap, 0.0)


def _bias(gradient: Floats, weight: Floats, low: Floats, high: Floats, sign: Floats, limit: Floats) -> Floats:
    """The mean gradient of the examples strictly within their bounds; else the middle of the feasible interval."""
    free = (weight > low) & (weight < high)
    count = free.sum(axis=1)
    mean = np.divide((gradient * free).sum(axis=1), count, out=np.zeros(len(count)), where=count > 0)
    highest = np.where(weight < high, gradient, -np.inf).max(axis=1)
    lowest = np.where(weight > low, gradient, np.inf).min(axis=1)
    bounded = np.isfinite(highest) & np.isfinite(lowest)
    middle = (np.where(bounded, highest, 0.0) + np.where(bounded, lowest, 0.0)) / 2
    bias = np.where(count > 0, mean, middle)
    # With one class only, no weight was shifted, and the answer is that class.
    included = limit > 0
    any_example, all_yes = included.any(axis=1), ~(included & (sign < 0)).any(axis=1)
    all_no = ~(included & (sign > 0)).any(axis=1)
    return np.where(~any_example, 0.0, np.where(all_yes, 1.0, np.where(all_no, -1.0, bias)))


_ITERATIONS = 30
_RIDGE = 1e-6
_MAX_LOGIT = 30.0


@dataclass(frozen=True, slots=True)
class PlattCurve:
    """P(yes | score) = 1 / (1 + exp(-(slope·score + shift)))."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, score: Floats, offset: Floats | float = 0.0) -> Floats:
        """The probabilities of scores; NaN stays NaN. `offset` is added to the log odds."""
        odds = np.clip(self.slope * score + self.shift + offset, -_MAX_LOGIT, _MAX_LOGIT)
        probability: Floats = 1.0 / (1.0 + np.exp(-odds))
        return probability


def fit_platt_curve(score: Floats, label: Flags, offset: Floats | float = 0.0) -> PlattCurve:
    """Fit the curve by Newton's method, with Platt's smoothed targets, so that it never becomes a step.

    `offset` is what the log odds of each example are without its score; the curve is a correction of it.

    >>> curve = fit_platt_curve(np.array([-2.0, -1.0, 1.0, 2.0] * 50), np.array([False, False, True, True] * 50))
    >>> curve(np.array([-1.0, 0.0, 1.0])).round(2).tolist()
    [0.03, 0.5, 0.97]
    """
    finite = np.isfinite(score)
    score, label = score[finite], label[finite]
    offset = np.broadcast_to(np.asarray(offset, np.float64), finite.shape)[finite]
    positive, negative = int(label.sum()), int((~label).sum())
    if not positive + negative:
        return PlattCurve()
    target = np.where(label, (positive + 1) / (positive + 2), 1 / (negative + 2))
    columns = np.stack((score, np.ones(len(score))))
    theta = np.array([0.0, np.log((positive + 1) / (negative + 1)) if not offset.any() else 0.0])
    for _ in range(_ITERATIONS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(theta @ columns + offset, -_MAX_LOGIT, _MAX_LOGIT)))
        gradient = columns @ (target - probability) - _RIDGE * theta
        hessian = (columns * (probability * (1 - probability))) @ columns.T + _RIDGE * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        theta += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-6:
            break
    # A negative slope is noise: all scores get the same probability.
    return PlattCurve(float(max(theta[0], 0.0)), float(theta[1]))


# --------------------------------------------------------------------------------------------------------------------


MIN_EXAMPLES = 10
"""With fewer examples a classifier abstains."""
_CLIP = 5.0
"""Scaled features are clipped at this many standard deviations."""
_BATCH = 1_000
"""Problems solved at a time."""
ENSEMBLE = 10
"""Machines in a bagged or boosted ensemble."""
_COST_GRID = (0.1, 1.0, 10.0)
"""Values of the SVM's C that `select_cost` tries."""
FOLDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Problems:
    """Targets, their experts, and the experts' features."""

    own: OwnFeatures
    changed: Flags
    labelled: Flags
    target: Ints
    """One per problem."""
    expert: Ints
    pairs: Float32s | None = None
    """Problem by day by feature: kinds 6 and 7; None in the settings 1D and 2D."""
    history_only: bool = False
    """Use only the history of changes (R's setting 1D)."""
    shape: FeatureWindow = field(default_factory=FeatureWindow)

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """The examples of a batch of problems, and queries: rows of `inner` after those of the examples."""

    inner: Floats
    """Problem by row by example: inner products of features; the rows are the examples, then the queries."""
    label: Flags
    usable: Flags
    """Problem by example: it has features and a label."""
    answerable: Flags
    """One per problem: the expert has features today, and there are enough examples."""


def training_set(problems: Problems, part: slice, day: int, train: int, ahead: int = 0) -> TrainingSet:
    """The examples for the prediction of a day, from the `train` days before it.

    With `ahead`, the query is that many days later: what machines that are not trained again are asked then.
    """
    target, expert = problems.target[part], problems.expert[part]
    labels = slice(day - train, day)
    last = day - problems.shape.interval
    features = np.append(np.arange(last - train, last), last + ahead)
    present = problems.own.present[expert[:, None], features]
    numbers = problems.own.values[expert[:, None], features]
    if problems.history_only:
        numbers = numbers[:, :, : problems.own.history_columns]
    if problems.pairs is not None:
        numbers = np.concatenate((numbers, problems.pairs[part][:, features]), axis=2)
    usable = present[:, :-1] & problems.labelled[target, labels]
    words = None
    if not problems.history_only:
        words = problems.own.words[expert[:, None, None], features[:, None], features[:-1]]
    inner = gram_matrix(numbers.astype(np.float64), words, present, usable)
    return TrainingSet(
        inner, problems.changed[target, labels], usable, present[:, -1] & (usable.sum(axis=1) >= MIN_EXAMPLES)
    )


def gram_matrix(numbers: Floats, words: Float32s | None, present: Flags, usable: Flags) -> Floats:
    """Inner products of rows with examples, the first rows: the mean over features, each of variance 1 over the usable.

    `numbers` is problem by row by feature, `words` problem by row by example.
    """
    examples = usable.shape[1]
    weight = usable / np.maximum(usable.sum(axis=1, keepdims=True), 1)
    mean = np.einsum("bi,bif->bf", weight, numbers[:, :examples])
    centred = numbers - mean[:, None]
    spread = np.sqrt(np.einsum("bi,bif->bf", weight, centred[:, :examples] ** 2))
    varies = spread > 1e-6 * np.maximum(np.abs(mean), 1.0)
    scale = np.divide(1.0, spread, out=np.zeros(spread.shape), where=varies)
    scaled = np.clip(centred * scale[:, None], -_CLIP, _CLIP) * present[:, :, None]
    inner = np.matmul(scaled, scaled[:, :examples].transpose(0, 2, 1))
    features = numbers.shape[2]
    if words is not None:
        inner += _word_gram(words.astype(np.float64), weight, present)
        features += 1
    averaged: Floats = inner / features
    return averaged


def _word_gram(words: Floats, weight: Floats, present: Flags) -> Floats:
    """Inner products of the word distributions, centred, with a total variance of 1."""
    examples = words.shape[2]
    to_mean = np.einsum("bij,bj->bi", words, weight)
    square = np.einsum("bi,bi->b", to_mean[:, :examples], weight)
    centred = words - to_mean[:, :, None] - to_mean[:, None, :examples] + square[:, None, None]
    spread = np.einsum("bi,bii->b", weight, centred[:, :examples])
    varies = spread > 1e-6 * np.maximum(square, 1e-12)
    scale = np.divide(1.0, spread, out=np.zeros(len(spread)), where=varies)
    both = present[:, :, None] & present[:, None, :examples]
    clipped: Floats = np.clip(centred * scale[:, None, None], -(_CLIP**2), _CLIP**2) * both
    return clipped


def margins(problems: Problems, day: int, train: int, cost: float = 1.0) -> Floats:
    """One per problem: the margin for today, above 0 for change; NaN where the expert abstains."""
    found = np.full(len(problems), np.nan)
    for part in _batches(len(problems)):
        found[part] = single(training_set(problems, part, day, train), cost)[:, 0]
    return found


def votes(margin: Floats, weight: Floats) -> tuple[Flags, Floats]:
    """The weighted majority of experts (page by expert), and their weighted mean margin.

    Experts that abstain do not count; where all abstain the mean is NaN.

    >>> votes(np.array([[1.0, -1.0, -2.0], [np.nan] * 3]), np.array([[1.0, 0.7, 0.7], [1.0] * 3]))
    (array([False, False]), array([-0.45833333,         nan]))
    """
    counts = np.where(np.isfinite(margin), weight, 0.0)
    total = counts.sum(axis=1)
    side = np.where(np.isfinite(margin), margin, 0.0)
    ballot = (counts * np.where(side > 0, 1.0, -1.0)).sum(axis=1)
    # Margins are clipped so that one very certain expert cannot outweigh all the others.
    sure = (counts * np.clip(side, -2.0, 2.0)).sum(axis=1)
    return ballot > 0, np.divide(sure, total, out=np.full(len(total), np.nan), where=total > 0)


def relational_union(per_expert: list[Problems], day: int, train: int) -> Iterator[tuple[slice, TrainingSet]]:
    """Relational union (R §5.3.2): one machine per target, with the features of all its experts.

    `per_expert` has one entry per expert rank, each with one problem per target. The first is the target as its own
    expert and decides which days count.
    """
    for part in _batches(len(per_expert[0])):
        first = training_set(per_expert[0], part, day, train)
        inner = first.inner.copy()
        for problems in per_expert[1:]:
            inner += training_set(problems, part, day, train).inner
        yield part, TrainingSet(inner / len(per_expert), first.label, first.usable, first.answerable)


def single(examples: TrainingSet, cost: float) -> Floats:
    """Margins of a single machine per problem, problem by query."""
    kernel, asked = _kernels(examples)
    side = solve(kernel, examples.label, examples.usable * np.float64(cost)).margins(asked)
    return np.where(examples.answerable[:, None], side, np.nan)


def bagging(examples: TrainingSet, cost: float, rng: np.random.Generator, size: int = ENSEMBLE) -> Floats:
    """Majority vote of machines trained on bootstrap samples of the examples (R §5.3.3), problem by query."""
    kernel, asked = _kernels(examples)
    examples_used = np.maximum(examples.usable.sum(axis=1, keepdims=True), 1)
    ballot = np.zeros(asked.shape[:2])
    for _ in range(size):
        bootstrap = rng.multinomial(examples_used[:, 0], examples.usable / examples_used)
        ballot += np.sign(solve(kernel, examples.label, bootstrap * np.float64(cost)).margins(asked))
    return np.where(examples.answerable[:, None], ballot / size, np.nan)


def boosting(examples: TrainingSet, cost: float, size: int = ENSEMBLE) -> Floats:
    """AdaBoost (R §5.3.3): each machine gives more weight to the examples that the machines before it got wrong.

    The margins are problem by query.
    """
    kernel, asked = _kernels(examples)
    examples_used = np.maximum(examples.usable.sum(axis=1, keepdims=True), 1)
    sign = np.where(examples.label, 1.0, -1.0)
    weight = examples.usable / examples_used
    total, alpha_sum = np.zeros(asked.shape[:2]), np.zeros(len(examples_used))
    running = np.ones(len(examples_used), np.bool_)
    for _ in range(size):
        trained = solve(kernel, examples.label, cost * weight * examples_used)
        vote = np.where(trained.margins(kernel) > 0, 1, -1)
        error = np.clip((weight * (vote != sign)).sum(axis=1), 1e-3, 1.0)
        alpha = np.where(running & (error < 0.5), 0.5 * np.log((1 - np.minimum(error, 0.5)) / error), 0.0)
        # The first machine decides even if its training error is 50 % or more.
        alpha = np.where((alpha_sum == 0) & (alpha == 0), 1e-3, alpha) * running
        total += alpha[:, None] * np.sign(trained.margins(asked))
        alpha_sum += alpha
        running &= (error < 0.5) & (error > 1e-3)
        weight = weight * np.exp(-alpha[:, None] * sign * vote)
        weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    side = np.divide(total, alpha_sum[:, None], out=np.zeros(total.shape), where=alpha_sum[:, None] > 0)
    return np.where(examples.answerable[:, None], side, np.nan)


def _kernels(examples: TrainingSet) -> tuple[Floats, Floats]:
    """The kernel between examples, and of queries with examples."""
    kernel, count = polynomial(examples.inner, 1.0), examples.label.shape[1]
    return kernel[:, :count], kernel[:, count:]


def select_cost(problems: Problems, day: int, train: int) -> float:
    """The cost C with the highest accuracy in 3-fold cross-validation on the training days.

    R calibrates all parameters on the training data without saying how. Here one value is chosen for all pages.
    """
    fold = np.arange(train) * FOLDS // train
    return best_cost((training_set(problems, part, day, train) for part in _batches(len(problems))), fold)


def best_cost(parts: Iterable[TrainingSet], fold: Ints) -> float:
    """The cost C with the highest accuracy in cross-validation; `fold` is the fold of each example, from 0 to 2."""
    right = np.zeros(len(_COST_GRID))
    for examples in parts:
        kernel = _kernels(examples)[0]
        for number, cost in enumerate(_COST_GRID):
            for out in range(FOLDS):
                side = solve(kernel, examples.label, cost * (examples.usable & (fold != out))).margins(kernel)
                right[number] += ((side > 0) == examples.label)[examples.usable & (fold == out)].sum()
    return _COST_GRID[int(right.argmax())]


def _batches(problems: int) -> Iterator[slice]:
    for start in range(0, problems, _BATCH):
        yield slice(start, min(start + _BATCH, problems))
