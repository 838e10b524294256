"""What is believed of pages' change rates after visits: Gamma distributions, whose priors pages take from their likes.

A page's rate has a Gamma prior around the rate of its directory (or whatever group it is put in), that one leans on the
site's, and the site's on that of all pages: what has been seen little of itself goes by what it belongs to. A visit
that finds no change, or a change whose time the server tells, moves a Gamma distribution to another one exactly. One
that finds a change of unknown time does not; there the Gamma is taken that has the same peak and the same curvature
there over the rate's logarithm, which is the same thing wherever the exact answer exists.

All times are in days, all rates in changes a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.learn.rates.censored import balanced, waiting
from recrawl.learn.rates.gaps import Floats, Gaps

FIRST_RATE = 0.02
"""Changes a day of a page when nothing at all has been seen: once in fifty days."""
SHAPE = 0.5
"""How much the rate of a page's group counts against the page's own visits: as much as half a change."""
_ROUNDS = 4
"""How often group and page rates are put right by each other; more changes the third digit."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Rates that are Gamma distributed with shapes `a` and rates `b`; one of each per page."""

    a: Floats
    b: Floats

    @property
    def rate(self) -> Floats:
        """The expected changes a day."""
        rate: Floats = self.a / self.b
        return rate

    def chance(self, days: Floats | float) -> Floats:
        """The chance of a change within so many days.

        >>> Posterior(np.array([1.0, 1e9]), np.array([1.0, 1e9])).chance(1.0).round(4).tolist()
        [0.5, 0.6321]
        """
        chance: Floats = -np.expm1(-self.a * np.log1p(np.maximum(days, 0.0) / self.b))
        return chance

    def even(self) -> Floats:
        """Days within which a change is as likely as not."""
        with np.errstate(over="ignore"):
            days: Floats = self.b * np.expm1(np.log(2.0) / self.a)
        return days

    def interval(self, share: float = 0.9) -> tuple[Floats, Floats]:
        """Rates between which the true one lies with this probability, as much left out below as above.

        >>> low, high = Posterior(np.array([4.0]), np.array([2.0])).interval(0.9)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.683], [3.877])
        """
        from scipy.special import gammaincinv as quantile  # lazy: loads slowly, and policies need none

        low, high = (quantile(self.a, tail) / self.b for tail in ((1 - share) / 2, (1 + share) / 2))
        return np.asarray(low), np.asarray(high)


def posterior(gaps: Gaps, a: Floats | float, b: Floats | float) -> Posterior:
    """What visits make of Gamma priors, one per page: exact where changes have times or there are none.

    >>> seen = Gaps.of([0, 0, 1], [5.0, 3.0, 4.0], [True, False, True], pages=2, quiet=[2.0, np.nan, np.nan])
    >>> after = posterior(seen, 1.0, 10.0)
    >>> float(after.a[0]), float(after.b[0])
    (2.0, 15.0)
    >>> after.rate.round(3).tolist()
    [0.133, 0.17]
    """
    told = gaps.changed & ~np.isnan(gaps.quiet)
    open_ = gaps.changed & ~told
    known = gaps.sums(gaps.times * told)
    days = gaps.sums(gaps.times * np.where(told, gaps.quiet, gaps.gap * ~open_))
    rate, worth = balanced(gaps.page[open_], gaps.gap[open_], gaps.times[open_], a + known, b + days)
    return Posterior(worth, worth / rate)


def nested(
    gaps: Gaps, levels: Sequence[NDArray[np.integer]] = (), *, shape: float = SHAPE, first: float = FIRST_RATE
) -> Posterior:
    """Posteriors of all pages. `levels` are columns of group numbers from 0 up, coarse ones first: sites, directories.

    A page without a visit has the belief that its group gives it.

    >>> site = np.array([0, 0, 0, 1])
    >>> seen = Gaps.of([0, 1, 3], [1.0, 1.0, 30.0], [True, True, False], pages=4)
    >>> nested(seen, [site]).rate.round(3).tolist()
    [0.34, 0.34, 0.127, 0.009]
    """
    prior = np.full(gaps.pages, first)
    told = gaps.changed & ~np.isnan(gaps.quiet)
    days = gaps.sums(gaps.times * np.where(told, gaps.quiet, gaps.gap))
    belief = posterior(gaps, shape, shape / prior)
    for _ in range(_ROUNDS):
        u = belief.rate[gaps.page] * gaps.gap
        events = gaps.sums(gaps.times * np.where(told, 1.0, gaps.changed * (u + waiting(u))))
        prior = np.full(gaps.pages, (events.sum() + 1.0) / (days.sum() + 1.0 / first))
        for group in levels:
            changes, watched = (np.bincount(group, column) if gaps.pages else column for column in (events, days))
            prior = (changes[group] + 1.0) / (watched[group] + 1.0 / prior)
        belief = posterior(gaps, shape, shape / prior)
    return belief
