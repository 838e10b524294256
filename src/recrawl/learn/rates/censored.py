"""The likelihood equation of change rates from interval-censored observations, solved for all pages at once.

A visit that finds a page changed after t days shows that there was a change within t days, but not when or how many.
Such visits enter the likelihood equation of a rate λ as h(λt) with h(u) = u / (e^u - 1); the rest is two numbers:

    a + Σ h(λ t)  =  b · λ          a: changes with known times, b: days known to be without a change

A Gamma prior adds its shape to a and its rate to b. The left side is decreasing and convex, the right side increasing,
so there is one solution, and Newton's method approaches it from below without overshooting.
"""

from __future__ import annotations

import numpy as np

from recrawl.columns import Floats, Ints

_MAX_STEPS = 800
"""Usually five or six suffice. In extreme cases λt grows by one per step, up to 700, where doubles overflow."""
_TOLERANCE = 1e-13


def censored_term(u: Floats) -> Floats:
    """Return h(u) = u / (e^u - 1): 1 at 0, decreasing to 0.

    >>> censored_term(np.array([0.0, 1.0, 1e4])).round(4).tolist()
    [1.0, 0.582, 0.0]
    """
    safe = np.clip(u, 1e-12, 700.0)  # e^700 is nearly the largest double
    h: Floats = safe / np.expm1(safe)
    return h


def solve_rates(page: Ints, gap: Floats, times: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rate of every page, and the curvature of the log-likelihood over log λ, in changes.

    Rows are visits that found a change, each counted `times` times; `a` and `b` have one value per page. A page needs
    b > 0, and a > 0 or a row; otherwise its rate is NaN.

    >>> rate, curvature = solve_rates(np.array([0]), np.ones(1), np.ones(1), np.zeros(2), np.array([1.0, 0.0]))
    >>> rate.round(4).tolist(), curvature.round(4).tolist()
    ([0.6931, nan], [0.9609, nan])
    """
    pages = len(a)
    found = np.bincount(page, times, pages)
    days = np.bincount(page, times * gap, pages)
    rate, curvature = np.full(pages, np.nan), np.full(pages, np.nan)
    open_ = np.flatnonzero((b > 0) & (a + found > 0))
    rate[open_] = (a + found)[open_] / (b + days)[open_]
    curvature[open_] = a[open_]
    place = np.full(pages, -1)
    place[open_] = np.arange(len(open_))
    rows = place[page] >= 0
    owner, gap, times = place[page[rows]], gap[rows], times[rows]
    for _ in range(_MAX_STEPS):
        if not len(open_):
            break
        u = rate[open_][owner] * gap
        h = censored_term(u)
        excess = a[open_] + np.bincount(owner, times * h, len(open_)) - b[open_] * rate[open_]
        curvature[open_] = np.bincount(owner, times * h * (h + u - 1), len(open_)) + b[open_] * rate[open_]
        step = excess / curvature[open_]
        rate[open_] *= 1 + np.maximum(step, 0.0)
        moving = step > _TOLERANCE
        if not moving.all():
            place = np.cumsum(moving) - 1
            rows = moving[owner]
            owner, gap, times = place[owner[rows]], gap[rows], times[rows]
            open_ = open_[moving]
    return rate, curvature
