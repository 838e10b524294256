"""Gamma posteriors of pages' change rates, with nested priors.

The prior mean of a page's rate is the rate of its directory (or another group), the prior mean of the directory's rate
is the site's, and of the site's that of all pages; so a page with few visits uses what its group shows. A visit that
finds no change, or a change whose time the server reports, updates a Gamma distribution exactly. For a change of
unknown time the Gamma distribution with the same mode and the same curvature over the logarithm of the rate is used,
which equals the exact posterior where that is a Gamma distribution.

Times are in days, rates in changes per day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Floats
from recrawl.gamma import quantile
from recrawl.learn.rates.censored import censored_term, solve_rates
from recrawl.learn.rates.gaps import Gaps

FIRST_RATE = 0.02
"""The prior rate of all pages, in changes per day: one change in 50 days."""
SHAPE = 0.5
"""The weight of the group's rate against a page's own visits, in changes."""
_ROUNDS = 4
"""Rounds of updating group and page rates by each other; more rounds change the third digit."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Gamma distributions of rates with shapes `a` and rates `b`, one per page."""

    a: Floats
    b: Floats

    @property
    def rate(self) -> Floats:
        """The expected changes per day."""
        rate: Floats = self.a / self.b
        return rate

    def probability(self, days: Floats | float) -> Floats:
        """Return the probability of a change within a number of days.

        >>> Posterior(np.array([1.0, 1e9]), np.array([1.0, 1e9])).probability(1.0).round(4).tolist()
        [0.5, 0.6321]
        """
        probability: Floats = -np.expm1(-self.a * np.log1p(np.maximum(days, 0.0) / self.b))
        return probability

    def median_days(self) -> Floats:
        """Return the days within which a change has probability 1/2."""
        with np.errstate(over="ignore"):
            days: Floats = self.b * np.expm1(np.log(2.0) / self.a)
        return days

    def interval(self, share: float = 0.9) -> tuple[Floats, Floats]:
        """Return the bounds between which the rate lies with this probability, with equal tails.

        >>> low, high = Posterior(np.array([4.0]), np.array([2.0])).interval(0.9)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.683], [3.877])
        """
        low, high = (quantile(self.a, tail) / self.b for tail in ((1 - share) / 2, (1 + share) / 2))
        return np.asarray(low), np.asarray(high)


def posterior(gaps: Gaps, a: Floats | float, b: Floats | float) -> Posterior:
    """Update Gamma priors, one per page, with visits; exact if all changes have times or there are none.

    >>> seen = Gaps.of([0, 0, 1], [5.0, 3.0, 4.0], [True, False, True], pages=2, quiet=[2.0, np.nan, np.nan])
    >>> after = posterior(seen, 1.0, 10.0)
    >>> float(after.a[0]), float(after.b[0])
    (2.0, 15.0)
    >>> after.rate.round(3).tolist()
    [0.133, 0.17]
    """
    dated = gaps.changed & ~np.isnan(gaps.quiet)
    open_ = gaps.changed & ~dated
    known = gaps.sums(gaps.times * dated)
    days = gaps.sums(gaps.times * np.where(dated, gaps.quiet, gaps.gap * ~open_))
    rate, curvature = solve_rates(gaps.page[open_], gaps.gap[open_], gaps.times[open_], a + known, b + days)
    return Posterior(curvature, curvature / rate)


def nested(
    gaps: Gaps, levels: Sequence[NDArray[np.integer]] = (), *, shape: float = SHAPE, first: float = FIRST_RATE
) -> Posterior:
    """Return the posteriors of all pages; `levels` are columns of group numbers, coarse first: sites, directories.

    A page without a visit has the prior of its group.

    >>> site = np.array([0, 0, 0, 1])
    >>> seen = Gaps.of([0, 1, 3], [1.0, 1.0, 30.0], [True, True, False], pages=4)
    >>> nested(seen, [site]).rate.round(3).tolist()
    [0.34, 0.34, 0.127, 0.009]
    """
    prior = np.full(gaps.pages, first)
    dated = gaps.changed & ~np.isnan(gaps.quiet)
    days = gaps.sums(gaps.times * np.where(dated, gaps.quiet, gaps.gap))
    result = posterior(gaps, shape, shape / prior)
    for _ in range(_ROUNDS):
        u = result.rate[gaps.page] * gaps.gap
        events = gaps.sums(gaps.times * np.where(dated, 1.0, gaps.changed * (u + censored_term(u))))
        prior = np.full(gaps.pages, (events.sum() + 1.0) / (days.sum() + 1.0 / first))
        for group in levels:
            changes, watched = (np.bincount(group, column) if gaps.pages else column for column in (events, days))
            prior = (changes[group] + 1.0) / (watched[group] + 1.0 / prior)
        result = posterior(gaps, shape, shape / prior)
    return result
