"""Classifiers updated with one example per day instead of being retrained (spec L5; R §9.2).

With few features, the kernel of R's machines, (<x, y> + 1)³, has few dimensions: products of at most three features.
They are computed explicitly, so a classifier is one row of weights and thousands of classifiers are one matrix. An
example inside the margin, or on its wrong side, moves the weights as far as needed but at most by `_MAX_STEP` (the
passive-aggressive update of Crammer et al. 2006, with the hinge loss of a support vector machine). Running means and
variances scale the features to variance 1.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats

_MAX_STEP = 0.03
_CLIP = 5.0
"""Scaled features are clipped at this many standard deviations."""
_MIN_SPREAD = 1e-6


class PolynomialMap:
    """The explicit feature map of the kernel (<x, y> + 1)^degree.

    >>> both = PolynomialMap(2)(np.array([[0.5, 1.0], [2.0, -1.0]]))
    >>> round(float(both[0] @ both[1]), 4), (0.5 * 2.0 - 1.0 + 1.0) ** 3
    (1.0, 1.0)
    """

    def __init__(self, features: int, degree: int = 3) -> None:
        terms = list(combinations_with_replacement(range(features + 1), degree))
        ways = [factorial(degree) / prod(map(factorial, Counter(term).values())) for term in terms]
        self._terms = np.array(terms).T
        self._scale = np.sqrt(np.array(ways)).astype(np.float32)

    def __len__(self) -> int:
        """The number of dimensions."""
        return len(self._scale)

    def __call__(self, x: NDArray[np.floating]) -> Float32s:
        """Example by dimension."""
        with_one = np.concatenate((np.ones((len(x), 1), np.float32), x.astype(np.float32)), axis=1)
        found: Float32s = np.broadcast_to(self._scale, (len(x), len(self))).copy()
        for place in self._terms:
            found *= with_one[:, place]
        return found


class OnlineClassifiers:
    """Classifiers, one per row, that take one example each at a time: `scale`, then `margin`, later `update`."""

    def __init__(self, problems: int, features: int, grouped: int = 0) -> None:
        """The last `grouped` features count as one feature: their variances are summed."""
        self._grouped = grouped
        self._single = features - grouped
        self._map = PolynomialMap(features)
        self._mean = np.zeros((problems, features))
        self._spread = np.zeros((problems, features))
        self._observed = np.zeros(problems, np.int64)
        self.weight: Float32s = np.zeros((problems, len(self._map)), np.float32)
        self.examples = np.zeros(problems, np.int64)
        """One per classifier: examples it was updated with."""

    def scale(self, x: NDArray[np.floating], present: Flags) -> Float32s:
        """Map a day's features (classifier by feature) to kernel space; where not `present`, only the constant."""
        self._observed += present
        step = (x - self._mean) * present[:, None]
        self._mean += step / np.maximum(self._observed, 1)[:, None]
        self._spread += step * (x - self._mean)
        variance = self._spread / np.maximum(self._observed, 1)[:, None]
        if self._grouped:
            variance[:, self._single :] = variance[:, self._single :].sum(axis=1, keepdims=True)
        spread = np.sqrt(np.maximum(variance, 0.0))
        usable = present[:, None] & (spread > _MIN_SPREAD * np.maximum(np.abs(self._mean), _MIN_SPREAD))
        scaled = np.divide(x - self._mean, spread, out=np.zeros(x.shape), where=usable)
        return self._map(np.clip(scaled, -_CLIP, _CLIP) / np.sqrt(self._single + bool(self._grouped)))

    def margin(self, mapped: Float32s) -> Floats:
        """One per classifier: above 0 for yes."""
        return np.asarray(np.einsum("bd,bd->b", self.weight, mapped), np.float64)

    def update(self, mapped: Float32s, label: Flags, usable: Flags) -> None:
        """Learn the labels of mapped examples; only classifiers in `usable` are updated."""
        sign = np.where(label, 1.0, -1.0)
        loss = np.maximum(0.0, 1.0 - sign * self.margin(mapped)) * usable
        norm = np.einsum("bd,bd->b", mapped, mapped)  # at least 1, since the map has a constant
        step = np.minimum(loss / norm, _MAX_STEP) * sign
        self.weight += step.astype(np.float32)[:, None] * mapped
        self.examples += usable
