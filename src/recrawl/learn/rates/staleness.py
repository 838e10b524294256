"""How fresh a repository is likely to be, without looking: what each page's past says about the time since its visit.

Changes come as a Poisson process whose rate is not known but has a Gamma distribution: what the page's own visits say,
on top of a little that all pages of its site say. So the chance that nothing has happened for a time t is
(b / (b + t)) ** a, which is not so sure of itself as e^(-rate t) would be for pages that were seen but a few times.

Pages of one site often change together, and then a sum over pages is less certain than if they did not. How much less
is measured: by how far the updates that a cycle found on each site were from what was expected there (`spread`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

_WEIGHT = 0.5
"""Changes that the site's mean counts for, beside a page's own."""
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Belief:
    """The Gamma distribution of each page's rate: mean a / b, in changes a second."""

    a: Floats
    b: Floats

    def still(self, gap: Floats) -> Floats:
        """The chance that nothing happens in a time.

        >>> Belief(np.array([1.0]), np.array([3.0])).still(np.array([1.0])).tolist()
        [0.75]
        """
        return np.asarray((self.b / (self.b + np.maximum(gap, 0.0))) ** self.a)


def counted(visits: Ints, changes: Ints) -> Floats:
    """Changes that there must have been, where visits only say whether there were any (Cho and Garcia-Molina).

    >>> counted(np.array([1, 11, 11]), np.array([0, 0, 10])).round(2).tolist()
    [0.0, 0.0, 30.45]
    """
    compared = np.maximum(np.asarray(visits, np.float64) - 1.0, 0.0)
    seen = np.clip(np.asarray(changes, np.float64), 0.0, compared)
    return np.asarray(compared * np.log((compared + 0.5) / (compared - seen + 0.5)))


def believe(site: Ints, visits: Ints, changes: Ints, watched: Floats, sites: int) -> tuple[Belief, Floats]:
    """What is believed of each page's rate, and the mean rate of each site.

    `watched` is the time from a page's first visit to its last.
    """
    happened = counted(visits, changes)
    time = np.maximum(watched, 0.0)
    overall = (happened.sum() + _WEIGHT) / (time.sum() + 30 * _DAY)
    rate = (np.bincount(site, happened, sites) + _WEIGHT) / (np.bincount(site, time, sites) + _WEIGHT / overall)
    return Belief(happened + _WEIGHT, time + _WEIGHT / rate[site]), rate


def spread(site: Ints, expected: Floats, found: NDArray[np.bool_], sites: int) -> float:
    """How many times wider than by chance the numbers found on the sites lie around those expected; at least 1.

    >>> together = spread(np.repeat([0, 1], 50), np.full(100, 0.5), np.repeat([True, False], 50), 2)
    >>> together, spread(np.zeros(4, int), np.full(4, 0.5), np.array([True, False, True, False]), 1)
    (50.0, 1.0)
    """
    chance = float((expected * (1.0 - expected)).sum())
    off = np.bincount(site, found - expected, sites)
    return max(1.0, float((off * off).sum()) / chance) if chance > 0 else 1.0


def mean_and_deviation(chances: Floats, wider: float = 1.0) -> tuple[float | None, float | None]:
    """The share of pages for which it is so, and its standard deviation; None without pages."""
    if not len(chances):
        return None, None
    variance = float((chances * (1.0 - chances)).sum()) * wider
    return float(chances.mean()), float(np.sqrt(variance) / len(chances))
