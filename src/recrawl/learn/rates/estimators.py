"""How often a page changes, from what visits saw: the estimators of the literature, over columns.

Changes are taken to come as a Poisson process of rate λ. A visit says only whether there was any since the one before,
so counting changed visits counts too few; each estimator mends that for one kind of observation:

    naive           nothing is mended
    bias_reduced    visits at equal intervals
    irregular       visits at any intervals: the likeliest rate
    moment          visits at any intervals: the rate at which as many changed visits are expected as were seen
    averaged        visits at exponential intervals: no more than counting
    last_modified   the server tells when the last change was

All give changes per unit of the time that goes in. `estimators` names them and keeps all of them finite; `posteriors`
says how sure one can be, and lets pages learn from their neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.learn.rates.censored import balanced

Floats = NDArray[np.float64]

_STEPS = 80
"""Halvings of a bracket on a scale of logarithms; more than a double has bits for."""


def naive(changed: ArrayLike, watched: ArrayLike) -> Floats:
    """X/T: changed visits over the time from first to last. Never over the rate of visits, however fast the page is.

    >>> naive([0, 5, 10], 10.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(np.asarray(changed, np.float64) / np.asarray(watched, np.float64))


def bias_reduced(changed: ArrayLike, visits: ArrayLike, interval: ArrayLike) -> Floats:
    """-ln((n - X + 0.5) / (n + 0.5)) / I: X of n visits, I apart, found a change. Finite even when all did.

    >>> bias_reduced([0, 5, 10], 10, 1.0).round(3).tolist()
    [0.0, 0.647, 3.045]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    return np.asarray(np.log((n + 0.5) / (n - x + 0.5)) / np.asarray(interval, np.float64))


def last_modified(changed: ArrayLike, visits: ArrayLike, exposure: ArrayLike) -> Floats:
    """X'/T with X' = (X - 1) - X / (n·ln(1 - X/n)), where the time of the last change is known at every visit.

    T adds up, over the n visits, the time for which nothing had happened: since the last change where the page had
    changed (X of them), since the visit before where not. X/T alone would be too high on average.

    >>> last_modified([0, 1, 4], 4, 10.0).round(4).tolist()
    [0.0, 0.0869, 0.3]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    some, all_ = x > 0, x >= n
    log = np.log1p(-np.where(some & ~all_, x / np.maximum(n, 1.0), 0.5))
    # At the ends the formula has limits: none changed, X' is 0; all changed, the second term is.
    mended = np.where(all_, x - 1.0, x - 1.0 - x / (np.maximum(n, 1.0) * log))
    return np.asarray(np.where(some, mended, 0.0) / np.asarray(exposure, np.float64))


def averaged(changed: ArrayLike, visits: ArrayLike, interval: ArrayLike) -> Floats:
    """X / (n + 1 - X) over the mean interval: what the share of changed visits tends to, turned round.

    It rests on intervals that are drawn from an exponential distribution; at equal ones it comes out too high.

    >>> averaged([0, 5, 10], 10, 1.0).round(3).tolist()
    [0.0, 0.833, 10.0]
    """
    x, n = np.asarray(changed, np.float64), np.asarray(visits, np.float64)
    return np.asarray(x / (n + 1.0 - x) / np.asarray(interval, np.float64))


def irregular(
    page: NDArray[np.integer],
    gap: Floats,
    changed: NDArray[np.bool_],
    pages: int,
    *,
    smooth: float = 0.0,
    times: Floats | None = None,
) -> Floats:
    """The likeliest rate of every page: Σ_changed t / (e^(λt) - 1) = Σ_unchanged t. One row per visit, in any order.

    Without smoothing a page with no changed visit has rate 0 and one with no unchanged visit inf; a page without rows
    has nan. `smooth` adds to each page one changed and one unchanged visit that long after the one before, which keeps
    every rate between the two. `times` says how often a row was seen, where that is not once.

    >>> rows = np.array([0, 0, 1, 1])
    >>> irregular(rows, np.ones(4), np.array([True, False, True, True]), 3).round(4).tolist()
    [0.6931, inf, nan]
    """
    owner, length, found = page.astype(np.int64), gap, changed
    many = np.ones(len(gap)) if times is None else times
    if smooth > 0:
        owner = np.concatenate((owner, np.repeat(np.arange(pages), 2)))
        length = np.concatenate((gap, np.full(2 * pages, smooth)))
        found = np.concatenate((changed, np.tile([True, False], pages)))
        many = np.concatenate((many, np.ones(2 * pages)))
    quiet = np.bincount(owner[~found], (many * length)[~found], pages).astype(np.float64)
    some = np.bincount(owner[found], many[found], pages) > 0
    rate, _ = balanced(owner[found], length[found], many[found], np.zeros(pages), quiet)
    return np.where(some & (quiet > 0), rate, np.where(some, np.inf, np.where(quiet > 0, 0.0, np.nan)))


def moment(page: NDArray[np.integer], gap: Floats, expected: Floats, times: Floats | None = None) -> Floats:
    """The rate of every page at which Σ (1 - e^(-λt)) over its visits is what is `expected`, one number a page.

    With as many as were seen it is the moment estimator; that has no solution where all visits saw a change, so
    `estimators` asks for X·n/(n + 1/2), which at equal intervals makes it the bias-reduced one. 0 for nothing expected,
    inf for as many as there were visits or more, nan for a page without visits.

    >>> moment(np.array([0, 0, 1, 2]), np.array([1.0, 1.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0])).round(4).tolist()
    [0.6931, 0.0, inf, nan]
    """
    pages = len(expected)
    owner = page.astype(np.int64)
    many = np.ones(len(gap)) if times is None else times
    visits, days = np.bincount(owner, many, pages), np.bincount(owner, many * gap, pages)
    open_ = (expected > 0) & (expected < visits)
    rate = np.where(visits > 0, np.where(expected >= visits, np.inf, 0.0), np.nan)
    rows = open_[owner]
    place = np.cumsum(open_) - 1
    owner, gap, many, wanted = place[owner[rows]], gap[rows], many[rows], expected[open_]
    shortest = np.full(len(wanted), np.inf)
    np.minimum.at(shortest, owner, gap)
    # 1 - e^-x <= x, and every gap is at least as long as the shortest.
    low = np.log(wanted / days[open_])
    high = np.log(-np.log1p(-wanted / visits[open_]) / shortest)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        short = np.bincount(owner, many * -np.expm1(-np.exp(middle)[owner] * gap), len(wanted)) < wanted
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    rate[open_] = np.exp((low + high) / 2)
    return rate
