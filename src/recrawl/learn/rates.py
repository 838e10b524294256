"""How often a page changes, from what visits saw: the estimators of Cho and Garcia-Molina (2003), over columns.

Changes are taken to come as a Poisson process of rate λ. A visit says only whether there was any since the one before,
so counting changed visits counts too few; each estimator mends that for one kind of observation:

    bias_reduced    visits at equal intervals
    irregular       visits at any intervals
    last_modified   the server tells when the last change was

All give changes per unit of the time that goes in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_STEPS = 60
"""Halvings of a bracket; more than a double has bits for."""


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


def irregular(
    page: NDArray[np.integer],
    gap: Floats,
    changed: NDArray[np.bool_],
    pages: int,
    *,
    smooth: float = 0.0,
) -> Floats:
    """The likeliest rate of every page: Σ_changed t / (e^(λt) - 1) = Σ_unchanged t. One row per visit, in any order.

    Without smoothing a page with no changed visit has rate 0 and one with no unchanged visit inf; a page without rows
    has nan. `smooth` adds to each page one changed and one unchanged visit that long after the one before, which keeps
    every rate between the two.

    >>> rows = np.array([0, 0, 1, 1])
    >>> irregular(rows, np.ones(4), np.array([True, False, True, True]), 3).round(4).tolist()
    [0.6931, inf, nan]
    """
    owner, length, found = page, gap, changed
    if smooth > 0:
        owner = np.concatenate((page, np.repeat(np.arange(pages), 2)))
        length = np.concatenate((gap, np.full(2 * pages, smooth)))
        found = np.concatenate((changed, np.tile([True, False], pages)))
    quiet = np.bincount(owner[~found], weights=length[~found], minlength=pages).astype(np.float64)
    changes = np.bincount(owner[found], minlength=pages)
    rate = np.where(changes > 0, np.inf, np.where(quiet > 0, 0.0, np.nan))
    solvable = (changes > 0) & (quiet > 0)
    rows = found & solvable[owner]
    place = np.cumsum(solvable) - 1
    rate[solvable] = _balanced(place[owner[rows]], length[rows], quiet[solvable], changes[solvable])
    return rate


def _balanced(owner: NDArray[np.int64], length: Floats, quiet: Floats, changes: NDArray[np.int64]) -> Floats:
    """The λ at which both sides are equal, by bisection; the left side falls as λ grows.

    1/λ - t ≤ t/(e^(λt) - 1) ≤ 1/λ, so the rate lies between X/(all the time) and X/(the time of unchanged visits).
    """
    busy = np.bincount(owner, weights=length, minlength=len(quiet))
    low, high = changes / (quiet + busy), changes / quiet
    for _ in range(_STEPS):
        middle = (low + high) / 2
        x = np.clip(middle[owner] * length, 1e-12, 700.0)  # e^700 is nearly the largest double
        left = np.bincount(owner, weights=x / np.expm1(x), minlength=len(quiet)) / middle
        low, high = np.where(left > quiet, middle, low), np.where(left > quiet, high, middle)
    return np.asarray((low + high) / 2)
