"""The expected freshness of a repository, from each page's history and the time since its last visit.

Changes are modelled as a Poisson process whose rate has a Gamma distribution: the page's own visits, with the mean rate
of its site as the prior. So the probability of no change within a time t is (b / (b + t)) ** a, which allows for the
uncertainty of rates estimated from few visits, unlike e^(-rate t).

Pages of one site often change together, so a sum over pages has a higher variance than for independent pages. `spread`
measures by how much, from the difference between found and expected updates per site in a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import DAY, Flags, Floats
from recrawl.learn.chunks import chunks

_AnyInts = NDArray[np.integer]

_PRIOR_WEIGHT = 0.5
"""The weight of the site's mean rate, in changes."""


@dataclass(frozen=True, slots=True)
class RateModel:
    """The Gamma distribution of each page's rate: mean a / b, in changes per second."""

    a: Floats
    b: Floats

    def unchanged(self, gap: Floats) -> Floats:
        """Return the probability of no change within a time.

        >>> RateModel(np.array([1.0]), np.array([3.0])).unchanged(np.array([1.0])).tolist()
        [0.75]
        """
        return np.asarray((self.b / (self.b + np.maximum(gap, 0.0))) ** self.a)


def estimated_changes(visits: _AnyInts, changes: _AnyInts) -> Floats:
    """Return the estimated number of changes, from visits that show only whether there was any (Cho, Garcia-Molina).

    >>> estimated_changes(np.array([1, 11, 11]), np.array([0, 0, 10])).round(2).tolist()
    [0.0, 0.0, 30.45]
    """
    compared = np.maximum(np.asarray(visits, np.float64) - 1.0, 0.0)
    seen = np.clip(np.asarray(changes, np.float64), 0.0, compared)
    return np.asarray(compared * np.log((compared + 0.5) / (compared - seen + 0.5)))


def site_rates(site: _AnyInts, visits: _AnyInts, changes: _AnyInts, watched: Floats, sites: int) -> Floats:
    """Return the mean rate of each site; `watched` is the time from a page's first visit to its last."""
    count, time = np.zeros(sites), np.zeros(sites)
    for rows in chunks(len(site)):
        count += np.bincount(site[rows], estimated_changes(visits[rows], changes[rows]), sites)
        time += np.bincount(site[rows], np.maximum(watched[rows], 0.0), sites)
    overall = (count.sum() + _PRIOR_WEIGHT) / (time.sum() + 30 * DAY)
    return np.asarray((count + _PRIOR_WEIGHT) / (time + _PRIOR_WEIGHT / overall))


def page_rates(visits: _AnyInts, changes: _AnyInts, watched: Floats, prior: Floats) -> RateModel:
    """Return the rate distribution of each page; `prior` is the mean rate of its site."""
    count = estimated_changes(visits, changes)
    return RateModel(count + _PRIOR_WEIGHT, np.maximum(watched, 0.0) + _PRIOR_WEIGHT / prior)


def fit_rates(site: _AnyInts, visits: _AnyInts, changes: _AnyInts, watched: Floats, sites: int) -> RateModel:
    """Return the rate distribution of each page, with the mean rate of its site among these pages as the prior."""
    return page_rates(visits, changes, watched, site_rates(site, visits, changes, watched, sites)[site])


def spread(site: _AnyInts, expected: Floats, found: Flags, sites: int) -> float:
    """Return the variance of the numbers found per site over that of independent pages; at least 1.

    >>> together = spread(np.repeat([0, 1], 50), np.full(100, 0.5), np.repeat([True, False], 50), 2)
    >>> together, spread(np.zeros(4, int), np.full(4, 0.5), np.array([True, False, True, False]), 1)
    (50.0, 1.0)
    """
    independent = float((expected * (1.0 - expected)).sum())
    error = np.bincount(site, found - expected, sites)
    return max(1.0, float((error * error).sum()) / independent) if independent > 0 else 1.0


def share_deviation(variance: float, pages: int, spread: float = 1.0) -> float:
    """Return the standard deviation of a share of pages, from the sum of p (1 - p) over them.

    >>> share_deviation(100 * 0.5 * 0.5, 100)
    0.05
    """
    return float(np.sqrt(variance * spread)) / max(pages, 1)
