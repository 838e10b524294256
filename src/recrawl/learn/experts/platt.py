"""Platt calibration: a logistic curve from scores to probabilities (R §8.3, spec L7), fitted by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recrawl.columns import Flags, Floats

_ITERATIONS = 30
_RIDGE = 1e-6
_MAX_LOGIT = 30.0


@dataclass(frozen=True, slots=True)
class PlattCurve:
    """P(yes | score) = 1 / (1 + exp(-(slope·score + shift)))."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, score: Floats) -> Floats:
        """The probabilities of scores; NaN stays NaN."""
        probability: Floats = 1.0 / (1.0 + np.exp(-np.clip(self.slope * score + self.shift, -_MAX_LOGIT, _MAX_LOGIT)))
        return probability


def fit(score: Floats, label: Flags) -> PlattCurve:
    """The curve that fits the outcomes best, with Platt's smoothed targets so that it never becomes a step.

    >>> curve = fit(np.array([-2.0, -1.0, 1.0, 2.0] * 50), np.array([False, False, True, True] * 50))
    >>> curve(np.array([-1.0, 0.0, 1.0])).round(2).tolist()
    [0.03, 0.5, 0.97]
    """
    finite = np.isfinite(score)
    score, label = score[finite], label[finite]
    positive, negative = int(label.sum()), int((~label).sum())
    if not positive + negative:
        return PlattCurve()
    target = np.where(label, (positive + 1) / (positive + 2), 1 / (negative + 2))
    columns = np.stack((score, np.ones(len(score))))
    theta = np.array([0.0, np.log((positive + 1) / (negative + 1))])
    for _ in range(_ITERATIONS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(theta @ columns, -_MAX_LOGIT, _MAX_LOGIT)))
        gradient = columns @ (target - probability) - _RIDGE * theta
        hessian = (columns * (probability * (1 - probability))) @ columns.T + _RIDGE * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        theta += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-6:
            break
    # A negative slope is noise: all scores get the same probability.
    return PlattCurve(float(max(theta[0], 0.0)), float(theta[1]))
