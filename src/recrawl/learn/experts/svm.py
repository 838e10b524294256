"""Thousands of small support vector machines solved at once (spec L3).

R trains a machine for every page, each of its experts and every day, on about 50 examples each. With a library, the
time goes into thousands of calls rather than into solving. Here the problems are stacked in one array and every step is
taken in all of them together. The method is SMO with second-order pair selection, as in LIBSVM, so the machines equal
those of scikit-learn's `SVC`; the tests compare the two.

    maximise  Σ a - ½ Σ a_i a_j y_i y_j K_ij,   0 ≤ a_i ≤ limit_i,   Σ a_i y_i = 0

An example with a limit of 0 is ignored, which is how days without a label are left out. If all labels are the same, the
machine always predicts that label.

`fit_platt_curve` calibrates margins: a logistic curve from scores to probabilities (Platt; R §8.3, spec L7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import Flags, Floats, Ints
from recrawl.extras import sklearn
from recrawl.learn.pooled.model import single_thread

_TOLERANCE = 1e-3
_MIN_CURVATURE = 1e-12
_MAX_STEPS = 20_000
_BATCH = 512
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
    parts = [slice(start, start + _BATCH) for start in range(0, len(label), _BATCH)]
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
