"""From scores to probabilities: Platt's logistic curve (R §8.3, spec L7), fitted by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import Flags, Floats

_ROUNDS = 30
_RIDGE = 1e-6
_STEEPEST = 30.0


@dataclass(frozen=True, slots=True)
class PlattCurve:
    """P(yes | score) = 1 / (1 + exp(-(slope·score + shift)))."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, score: Floats) -> Floats:
        """The probabilities of scores; not a number stays so."""
        chance: Floats = 1.0 / (1.0 + np.exp(-np.clip(self.slope * score + self.shift, -_STEEPEST, _STEEPEST)))
        return chance


def fit(score: Floats, yes: Flags) -> PlattCurve:
    """The curve through outcomes. Targets are drawn in as Platt does, so that it never becomes a step.

    >>> curve = fit(np.array([-2.0, -1.0, 1.0, 2.0] * 50), np.array([False, False, True, True] * 50))
    >>> curve(np.array([-1.0, 0.0, 1.0])).round(2).tolist()
    [0.03, 0.5, 0.97]
    """
    known = np.isfinite(score)
    score, yes = score[known], yes[known]
    positive, negative = int(yes.sum()), int((~yes).sum())
    if not positive + negative:
        return PlattCurve()
    goal = np.where(yes, (positive + 1) / (positive + 2), 1 / (negative + 2))
    columns = np.stack((score, np.ones(len(score))))
    theta = np.array([0.0, np.log((positive + 1) / (negative + 1))])
    for _ in range(_ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(theta @ columns, -_STEEPEST, _STEEPEST)))
        slope = columns @ (goal - chance) - _RIDGE * theta
        bend = (columns * (chance * (1 - chance))) @ columns.T + _RIDGE * np.eye(2)
        step = np.linalg.solve(bend, slope)
        theta += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-6:
            break
    # A score that speaks against itself is noise: then all get the same chance.
    return PlattCurve(float(max(theta[0], 0.0)), float(theta[1]))
