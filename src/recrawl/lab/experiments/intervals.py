"""Means over seeds with 95 % intervals, and what they allow to say.

Two measurements are compared seed by seed: both come from the same generated world, or the same run. With one seed
there is no interval, and the values decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from recrawl.extras import scipy

MARGIN = 0.02
"""Relative differences below this decide nothing."""


class Interval(NamedTuple):
    """A mean over seeds, and its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        half = (self.high - self.low) / 2
        return f"{self.mean:.3f}" + (f" ± {half:.3f}" if half else "")


def interval(values: Sequence[float]) -> Interval:
    """The mean of the values of the seeds with its interval.

    >>> str(interval([1.0, 2.0, 3.0])), str(interval([0.5]))
    ('2.000 ± 2.484', '0.500')
    """
    mean = fmean(values)
    half = 0.0
    if len(values) > 1 and max(values) > min(values):
        half = float(scipy.stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def above(first: Sequence[float], second: Sequence[float]) -> bool | None:
    """Whether `first` is greater: the interval of the differences excludes 0. None if it does not, or within 2 %.

    >>> above([1.1], [1.0]), above([1.0], [1.1]), above([1.01], [1.0]), above([1.0, 3.0], [1.5, 2.0])
    (True, False, None, None)
    """
    difference = interval([one - other for one, other in zip(first, second, strict=True)])
    if abs(difference.mean) < MARGIN * max(abs(fmean(first)), abs(fmean(second))):
        return None
    return True if difference.low > 0 else False if difference.high < 0 else None


def reaches(values: Sequence[float], least: float) -> bool | None:
    """Whether the mean is at least this: None where its interval contains the threshold.

    >>> reaches([2.0], 1.9), reaches([1.0, 3.0], 1.9), reaches([1.0, 1.1], 1.9)
    (True, None, False)
    """
    found = interval(values)
    return True if found.low >= least else False if found.high < least else None


def within(values: Sequence[float], low: float, high: float) -> bool | None:
    """Whether the mean lies in a range: None where its interval contains an end of the range.

    >>> within([1.0], 0.9, 1.1), within([1.0, 1.3], 0.9, 1.1), within([2.0], 0.9, 1.1)
    (True, None, False)
    """
    found = interval(values)
    if low <= found.low and found.high <= high:
        return True
    return False if found.high < low or found.low > high else None


def both(*verdicts: bool | None) -> bool | None:
    """Whether all hold: False if one fails, else None if one is open.

    >>> both(True, None), both(None, False), both(True, True)
    (None, False, True)
    """
    return False if False in verdicts else None if None in verdicts else True
