"""The estimators of change rates by name: all take the same visits, and all rates are finite.

A page without a comparison has no rate (NaN); every other rate is finite and not negative, also if all visits found a
change or none did. With `gamma`, pages of a site share information (see `posteriors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Floats
from recrawl.learn.rates.censored import solve_rates
from recrawl.learn.rates.estimators import averaged, bias_reduced, irregular, last_modified, moment, naive
from recrawl.learn.rates.gaps import Gaps
from recrawl.learn.rates.posteriors import nested

SMOOTH = 0.5
"""Days of the two pseudo-visits that smooth the likelihood: one that found a change, one that did not."""


def _naive(gaps: Gaps) -> Floats:
    return naive(gaps.changes, gaps.watched)


def _regular(gaps: Gaps) -> Floats:
    return bias_reduced(gaps.changes, gaps.visits, gaps.watched / gaps.visits)


def _averaged(gaps: Gaps) -> Floats:
    return averaged(gaps.changes, gaps.visits, gaps.watched / gaps.visits)


def _irregular(gaps: Gaps) -> Floats:
    rate = irregular(gaps.page, gaps.gap, gaps.changed, gaps.pages, smooth=SMOOTH, times=gaps.times)
    return np.where(gaps.visits > 0, rate, np.nan)


def _moment(gaps: Gaps) -> Floats:
    visits = gaps.visits
    return moment(gaps.page, gaps.gap, gaps.changes * visits / (visits + 0.5), gaps.times)


def _modified(gaps: Gaps) -> Floats:
    """Use Cho's estimator if the times of all changes are known, the smoothed maximum likelihood otherwise."""
    dated = gaps.changed & ~np.isnan(gaps.quiet)
    open_ = gaps.changed & ~dated
    days = gaps.sums(gaps.times * np.where(dated, gaps.quiet, gaps.gap * ~open_))
    known, all_pages = gaps.sums(gaps.times * dated), np.arange(gaps.pages)
    rate, _ = solve_rates(
        np.concatenate((gaps.page[open_], all_pages)),
        np.concatenate((gaps.gap[open_], np.full(gaps.pages, SMOOTH))),
        np.concatenate((gaps.times[open_], np.ones(gaps.pages))),
        known,
        days + SMOOTH,
    )
    whole = (gaps.sums(gaps.times * open_) == 0) & (gaps.visits > 0)
    return np.where(whole, last_modified(gaps.changes, gaps.visits, days), np.where(gaps.visits > 0, rate, np.nan))


ESTIMATORS: dict[str, tuple[Callable[[Gaps], Floats], str]] = {
    "naive": (_naive, "changed visits over time; too low for pages that change faster than they are visited"),
    "regular": (_regular, "Cho and Garcia-Molina's bias-reduced estimator, for evenly spaced visits"),
    "irregular": (_irregular, "maximum likelihood for visits at any intervals, smoothed by two half-day visits"),
    "moment": (_moment, "the rate at which the expected number of changed visits is the observed one (Upadhyay)"),
    "averaged": (_averaged, "a count for visits at random intervals (Avrachenkov); too high at even intervals"),
    "modified": (_modified, "uses the times of changes that a trusted server reports (Cho and Garcia-Molina)"),
    "gamma": (lambda gaps: nested(gaps).rate, "nested Gamma posteriors: all pages, site, directory, page"),
}
"""Name to function and description."""


def estimate(name: str, gaps: Gaps, levels: Sequence[NDArray[np.integer]] = ()) -> Floats:
    """Return the rates of all pages by one estimator, in changes per day; NaN for a page without a comparison.

    >>> seen = Gaps.of(np.repeat([0, 1, 2], 4), np.ones(12), [0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1], pages=4)
    >>> for name in ("naive", "regular", "irregular", "moment", "gamma"):
    ...     print(name, estimate(name, seen).round(2).tolist())
    naive [0.0, 0.5, 1.0, nan]
    regular [0.0, 0.59, 2.2, nan]
    irregular [0.21, 0.83, 2.62, nan]
    moment [0.0, 0.59, 2.2, nan]
    gamma [0.07, 0.4, 0.91, nan]
    """
    if name == "gamma":
        rates = nested(gaps, levels).rate
    else:
        with np.errstate(divide="ignore", invalid="ignore"):  # pages without a comparison
            rates = ESTIMATORS[name][0](gaps)
    return np.where(gaps.visits > 0, rates, np.nan)
