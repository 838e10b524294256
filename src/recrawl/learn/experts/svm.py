"""Support vector machines by the thousand: many small problems solved at once (spec L3).

R trains a machine for every page, each of its experts and every day, with some fifty examples each. What takes time
with a library is not the solving but the thousand calls. Here the problems lie one behind the other in one array
and every step is taken in all of them together. The method is the usual one (SMO with pairs of second order, as
in LIBSVM), so the machines are the same as scikit-learn's `SVC`; the tests hold them against it.

    maximise  Σ a - ½ Σ a_i a_j y_i y_j K_ij,   0 ≤ a_i ≤ cap_i,   Σ a_i y_i = 0

An example with a cap of 0 takes no part: that is how days without a label are left out. Where all labels are the same
the machine says that label always.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import Flags, Floats, Ints

_TOLERANCE = 1e-3
_LEAST_CURVE = 1e-12
_STEPS = 20_000
_AT_ONCE = 512
_LOOK = 16
"""Steps between two looks at which problems are done."""


@dataclass(frozen=True, slots=True, eq=False)
class Machines:
    """Solved problems, one per row."""

    weight: Floats
    """Problem by example: a·y."""
    bias: Floats

    def decide(self, kernel: Floats) -> Floats:
        """The side on which a new example lies, over 0 for yes; `kernel` is problem by example of the training."""
        side: Floats = np.einsum("bi,bi->b", self.weight, kernel) + self.bias
        return side


def polynomial(inner: Floats, gamma: Floats | float, degree: int = 3) -> Floats:
    """The kernel (gamma·<x, y> + 1)^degree out of inner products (spec L3: degree 3)."""
    base: Floats = inner * gamma + 1.0
    return base**degree


def solve(kernel: Floats, yes: Flags, cap: Floats) -> Machines:
    """Train a machine for each problem: kernel [B, n, n], labels [B, n], the most that an example may weigh [B, n].

    >>> x = np.array([[-1.0, 1.0, 2.0]])
    >>> machines = solve(x[:, :, None] * x[:, None, :], x > 0, np.full((1, 3), 10.0))
    >>> machines.decide(np.array([[-0.5, 0.5, 1.0]])).round(3).tolist()     # of a new x = 0.5
    [0.5]
    """
    parts = [slice(start, start + _AT_ONCE) for start in range(0, len(yes), _AT_ONCE)]
    done = [_solve(kernel[part], np.where(yes[part], 1.0, -1.0), cap[part]) for part in parts]
    weight = np.concatenate([part for part, _ in done]) if done else np.zeros(cap.shape)
    return Machines(weight, np.concatenate([part for _, part in done]) if done else np.zeros(0))


def _solve(kernel: Floats, sign: Floats, cap: Floats) -> tuple[Floats, Floats]:
    """Some problems, few enough that what is worked on stays in the processor's cache."""
    low, high = np.where(sign > 0, 0.0, -cap), np.where(sign > 0, cap, 0.0)
    weight, gradient = np.zeros(sign.shape), sign.copy()
    diagonal = np.einsum("bii->bi", kernel)
    rows = np.arange(len(sign))
    # Weight a·y, gradient y - K·weight (how far each example pulls), limits and diagonal of the problems still open.
    state = [weight.copy(), gradient.copy(), low, high, diagonal]
    for step in range(_STEPS):
        gap = _step(kernel, rows, *state)
        if step % _LOOK == 0:
            weight[rows], gradient[rows] = state[0], state[1]
            open_ = gap > _TOLERANCE
            if not open_.any():
                break
            rows, state = rows[open_], [column[open_] for column in state]
    weight[rows], gradient[rows] = state[0], state[1]
    return weight, _bias(gradient, weight, low, high, sign, cap)


def _step(
    kernel: Floats,
    rows: Ints,
    weight: Floats,
    gradient: Floats,
    low: Floats,
    high: Floats,
    diagonal: Floats,
) -> Floats:
    """Shift weight from one example to another in every problem; arrays change in place.

    The one that gains pulls up most. The one that gives is that with which the goal rises most (second order, as in
    LIBSVM). Returns how far each problem was from its optimum before.
    """
    at = np.arange(len(rows))
    up = np.where(weight < high, gradient, -np.inf)
    i = up.argmax(axis=1)
    most = up[at, i]
    row_i = kernel[rows, i]
    pull = most[:, None] - np.where(weight > low, gradient, np.inf)  # -inf for those that can give nothing
    gap = pull.max(axis=1)
    curve = np.maximum(diagonal[at, i][:, None] + diagonal - 2 * row_i, _LEAST_CURVE)
    gain = np.where(pull > 0, pull, 0.0) ** 2 / curve
    j = gain.argmax(axis=1)
    room_i, room_j = high[at, i] - weight[at, i], weight[at, j] - low[at, j]
    moved = np.minimum(np.minimum(pull[at, j] / curve[at, j], room_i), room_j)
    # A problem that is done rests. Further steps would be ever smaller, until the square of a pull is 0 and the one
    # that gives is no longer one that can.
    moved = np.where(gap > _TOLERANCE, moved, 0.0)
    # A weight that reaches its limit is set to it: one that misses it by rounding would never come to rest.
    gained = np.where(moved >= room_i, high[at, i], weight[at, i] + moved)
    given = np.where(moved >= room_j, low[at, j], weight[at, j] - moved)
    weight[at, i], weight[at, j] = np.where(moved > 0, gained, weight[at, i]), np.where(moved > 0, given, weight[at, j])
    gradient -= moved[:, None] * (row_i - kernel[rows, j])
    return np.where(np.isfinite(gap), gap, 0.0)


def _bias(gradient: Floats, weight: Floats, low: Floats, high: Floats, sign: Floats, cap: Floats) -> Floats:
    """The mean gradient of the examples between their limits; else the middle of what the others allow."""
    free = (weight > low) & (weight < high)
    count = free.sum(axis=1)
    mean = np.divide((gradient * free).sum(axis=1), count, out=np.zeros(len(count)), where=count > 0)
    most = np.where(weight < high, gradient, -np.inf).max(axis=1)
    least = np.where(weight > low, gradient, np.inf).min(axis=1)
    both = np.isfinite(most) & np.isfinite(least)
    middle = (np.where(both, most, 0.0) + np.where(both, least, 0.0)) / 2
    bias = np.where(count > 0, mean, middle)
    # One class only: nothing was moved, and its label is the answer.
    taken = cap > 0
    some, all_yes = taken.any(axis=1), ~(taken & (sign < 0)).any(axis=1)
    all_no = ~(taken & (sign > 0)).any(axis=1)
    return np.where(~some, 0.0, np.where(all_yes, 1.0, np.where(all_no, -1.0, bias)))
