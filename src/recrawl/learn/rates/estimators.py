"""The estimators of change rates in the literature, over columns.

Changes are modelled as a Poisson process of rate λ. A visit shows only whether there was a change since the previous
visit, so the number of changed visits underestimates the changes; each estimator corrects this for one kind of
observation:

    naive           no correction
    bias_reduced    visits at equal intervals
    irregular       visits at any intervals: maximum likelihood
    moment          visits at any intervals: the expected number of changed visits equals the observed one
    averaged        visits at exponentially distributed intervals: a ratio of counts
    last_modified   the server reports the time of the last change

All return changes per unit of the input time. `comparison` selects them by name and keeps all rates finite;
`posteriors` adds uncertainty and shares information between pages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.columns import Flags, Floats
from recrawl.learn.rates.censored import solve_rates

_BISECTIONS = 80
"""More than the bits of a double."""


def naive(changed: ArrayLike, watched: ArrayLike) -> Floats:
    """Return X/T: changed visits over the time from the first visit to the last; at most the rate of visits.

    >>> naive([0, 5, 10], 10.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(np.asarray(changed, np.float64) / np.asarray(watched, np.float64))


def bias_reduced(changed: ArrayLike, visits: ArrayLike, interval: ArrayLike) -> Floats:
    """Return -ln((n - X + 0.5) / (n + 0.5)) / I, if X of n visits, I apart, found a change; finite even if all did.

    >>> bias_reduced([0, 5, 10], 10, 1.0).round(3).tolist()
    [0.0, 0.647, 3.045]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    return np.asarray(np.log((n + 0.5) / (n - x + 0.5)) / np.asarray(interval, np.float64))


def last_modified(changed: ArrayLike, visits: ArrayLike, exposure: ArrayLike) -> Floats:
    """Return X'/T with X' = (X - 1) - X / (n·ln(1 - X/n)), if every visit reports the time of the last change.

    T sums, over the n visits, the time without a change: since the last change if the page had changed (X visits),
    since the previous visit if not. X/T alone would be too high on average.

    >>> last_modified([0, 1, 4], 4, 10.0).round(4).tolist()
    [0.0, 0.0869, 0.3]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    some, all_ = x > 0, x >= n
    log = np.log1p(-np.where(some & ~all_, x / np.maximum(n, 1.0), 0.5))
    # The limits of the formula: if none changed, X' is 0; if all changed, the second term is 0.
    corrected = np.where(all_, x - 1.0, x - 1.0 - x / (np.maximum(n, 1.0) * log))
    return np.asarray(np.where(some, corrected, 0.0) / np.asarray(exposure, np.float64))


def averaged(changed: ArrayLike, visits: ArrayLike, interval: ArrayLike) -> Floats:
    """Return X / (n + 1 - X) over the mean interval.

    It assumes exponentially distributed intervals; at equal intervals it is too high.

    >>> averaged([0, 5, 10], 10, 1.0).round(3).tolist()
    [0.0, 0.833, 10.0]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    return np.asarray(x / (n + 1.0 - x) / np.asarray(interval, np.float64))


def irregular(
    page: NDArray[np.integer],
    gap: Floats,
    changed: Flags,
    pages: int,
    *,
    smooth: float = 0.0,
    times: Floats | None = None,
) -> Floats:
    """Return the maximum likelihood rates: Σ_changed t / (e^(λt) - 1) = Σ_unchanged t. One row per visit, any order.

    Without smoothing, a page with no changed visit has rate 0, a page with no unchanged visit inf, and a page without
    rows NaN. `smooth` adds a changed and an unchanged visit with this gap to each page, which keeps every rate finite
    and above 0. `times` is the number of times a row was seen, 1 by default.

    >>> rows = np.array([0, 0, 1, 1])
    >>> irregular(rows, np.ones(4), np.array([True, False, True, True]), 3).round(4).tolist()
    [0.6931, inf, nan]
    """
    owner, length, found = page.astype(np.int64), gap, changed
    count = np.ones(len(gap)) if times is None else times
    if smooth > 0:
        owner = np.concatenate((owner, np.repeat(np.arange(pages), 2)))
        length = np.concatenate((gap, np.full(2 * pages, smooth)))
        found = np.concatenate((changed, np.tile([True, False], pages)))
        count = np.concatenate((count, np.ones(2 * pages)))
    quiet = np.bincount(owner[~found], (count * length)[~found], pages).astype(np.float64)
    some = np.bincount(owner[found], count[found], pages) > 0
    rate, _ = solve_rates(owner[found], length[found], count[found], np.zeros(pages), quiet)
    return np.where(some & (quiet > 0), rate, np.where(some, np.inf, np.where(quiet > 0, 0.0, np.nan)))


def moment(page: NDArray[np.integer], gap: Floats, expected: Floats, times: Floats | None = None) -> Floats:
    """Return the rate of every page at which Σ (1 - e^(-λt)) over its visits equals `expected`.

    With the observed number X of changed visits it is the moment estimator; that has no solution if all visits found a
    change, so `comparison` uses X·n/(n + 1/2), which equals the bias-reduced estimator at equal intervals. The rate is
    0 for an expectation of 0, inf for the number of visits or more, NaN for a page without visits.

    >>> moment(np.array([0, 0, 1, 2]), np.array([1.0, 1.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0])).round(4).tolist()
    [0.6931, 0.0, inf, nan]
    """
    pages = len(expected)
    owner = page.astype(np.int64)
    count = np.ones(len(gap)) if times is None else times
    visits, days = np.bincount(owner, count, pages), np.bincount(owner, count * gap, pages)
    open_ = (expected > 0) & (expected < visits)
    rate = np.where(visits > 0, np.where(expected >= visits, np.inf, 0.0), np.nan)
    rows = open_[owner]
    place = np.cumsum(open_) - 1
    owner, gap, count, target = place[owner[rows]], gap[rows], count[rows], expected[open_]
    shortest = np.full(len(target), np.inf)
    np.minimum.at(shortest, owner, gap)
    # Bounds of the solution: 1 - e^-x <= x, and every gap is at least the shortest.
    low = np.log(target / days[open_])
    high = np.log(-np.log1p(-target / visits[open_]) / shortest)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = np.bincount(owner, count * -np.expm1(-np.exp(middle)[owner] * gap), len(target)) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    rate[open_] = np.exp((low + high) / 2)
    return rate
