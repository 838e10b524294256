"""Machines that go on learning: each new day is looked at once, and nothing is fitted anew (spec L5; R §9.2).

The kernel of R's machines, (<x, y> + 1)³, has few dimensions when features are few: products of at most three of them.
Here these are written out, so that a machine is one row of weights, and thousands of machines one matrix. An example
that lies on the wrong side of its margin, or within it, moves the weights just as far as is needed, and never further
than `_FURTHEST_STEP` allows (the passive-aggressive way of Crammer et al. 2006, with the same hinge loss as a support
vector machine). Features are brought to variance 1 by running means, as of the day.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats

_FURTHEST_STEP = 0.03
_FURTHEST = 5.0
"""Standard deviations beyond which a feature counts no more."""
_VARIES = 1e-6


class Polynomial:
    """The kernel (<x, y> + 1)^degree, written out.

    >>> both = Polynomial(2)(np.array([[0.5, 1.0], [2.0, -1.0]]))
    >>> round(float(both[0] @ both[1]), 4), (0.5 * 2.0 - 1.0 + 1.0) ** 3
    (1.0, 1.0)
    """

    def __init__(self, features: int, degree: int = 3) -> None:
        terms = list(combinations_with_replacement(range(features + 1), degree))
        ways = [factorial(degree) / prod(map(factorial, Counter(term).values())) for term in terms]
        self._terms = np.array(terms).T
        self._scale = np.sqrt(np.array(ways)).astype(np.float32)

    def __len__(self) -> int:
        """How many dimensions it has."""
        return len(self._scale)

    def __call__(self, x: NDArray[np.floating]) -> Float32s:
        """Example by dimension."""
        with_one = np.concatenate((np.ones((len(x), 1), np.float32), x.astype(np.float32)), axis=1)
        found: Float32s = np.broadcast_to(self._scale, (len(x), len(self))).copy()
        for place in self._terms:
            found *= with_one[:, place]
        return found


class Online:
    """Machines, one a row, that are told one example each at a time: `look`, then `decide`, and later `learn`."""

    def __init__(self, problems: int, features: int, together: int = 0) -> None:
        """The last `together` features count as one: their variances are summed."""
        self._together = together
        self._alone = features - together
        self._map = Polynomial(features)
        self._mean = np.zeros((problems, features))
        self._spread = np.zeros((problems, features))
        self._looks = np.zeros(problems, np.int64)
        self.weight: Float32s = np.zeros((problems, len(self._map)), np.float32)
        self.examples = np.zeros(problems, np.int64)
        """One per machine: how many it has learned from."""

    def look(self, x: NDArray[np.floating], there: Flags) -> Float32s:
        """The features of a day, machine by feature, as the machines see them; where nothing is there, only a 1."""
        self._looks += there
        step = (x - self._mean) * there[:, None]
        self._mean += step / np.maximum(self._looks, 1)[:, None]
        self._spread += step * (x - self._mean)
        variance = self._spread / np.maximum(self._looks, 1)[:, None]
        if self._together:
            variance[:, self._alone :] = variance[:, self._alone :].sum(axis=1, keepdims=True)
        spread = np.sqrt(np.maximum(variance, 0.0))
        usable = there[:, None] & (spread > _VARIES * np.maximum(np.abs(self._mean), _VARIES))
        scaled = np.divide(x - self._mean, spread, out=np.zeros(x.shape), where=usable)
        return self._map(np.clip(scaled, -_FURTHEST, _FURTHEST) / np.sqrt(self._alone + bool(self._together)))

    def decide(self, seen: Float32s) -> Floats:
        """One per machine: over 0 for yes, given what it sees."""
        return np.asarray(np.einsum("bd,bd->b", self.weight, seen), np.float64)

    def learn(self, seen: Float32s, yes: Flags, use: Flags) -> None:
        """What came of what was seen; only the machines in `use` learn."""
        sign = np.where(yes, 1.0, -1.0)
        wrong = np.maximum(0.0, 1.0 - sign * self.decide(seen)) * use
        long = np.einsum("bd,bd->b", seen, seen)  # at least 1: the map has a constant
        step = np.minimum(wrong / long, _FURTHEST_STEP) * sign
        self.weight += step.astype(np.float32)[:, None] * seen
        self.examples += use
