"""The equation that most estimators of change rates come down to, solved for all pages at once.

A visit that finds a page changed after t days says that there was a change within t days, not when or how many. In the
likelihood of a rate λ such visits stand as h(λt) with h(u) = u / (e^u - 1), and everything else adds up to two numbers:

    a + Σ h(λ t)  =  b · λ          a: changes whose time is known, b: days known to have been without one

A prior that is a Gamma distribution adds its shape to a and its rate to b. The left side falls and is convex, the right
one rises, so there is one solution, and Newton's method comes to it from below without ever passing it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_STEPS = 800
"""Mostly five or six are made. Where λt has far to go it grows by one a step, and at 700 doubles end."""
_ENOUGH = 1e-13


def waiting(u: Floats) -> Floats:
    """h(u) = u / (e^u - 1): what a change within u says against a higher rate; 1 at 0, falling to 0.

    >>> waiting(np.array([0.0, 1.0, 1e4])).round(4).tolist()
    [1.0, 0.582, 0.0]
    """
    safe = np.clip(u, 1e-12, 700.0)  # e^700 is nearly the largest double
    h: Floats = safe / np.expm1(safe)
    return h


def balanced(page: NDArray[np.int64], gap: Floats, times: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rate of every page, and how many changes that is worth to know (the curvature over the rate's logarithm).

    Rows are visits that found a change, each counted so many `times`; `a` and `b` have one value per page. A page needs
    b > 0, and a > 0 or a row; else its rate is not a number.

    >>> rate, worth = balanced(np.array([0]), np.ones(1), np.ones(1), np.zeros(2), np.array([1.0, 0.0]))
    >>> rate.round(4).tolist(), worth.round(4).tolist()
    ([0.6931, nan], [0.9609, nan])
    """
    pages = len(a)
    found = np.bincount(page, times, pages)
    days = np.bincount(page, times * gap, pages)
    rate, worth = np.full(pages, np.nan), np.full(pages, np.nan)
    open_ = np.flatnonzero((b > 0) & (a + found > 0))
    rate[open_] = (a + found)[open_] / (b + days)[open_]
    worth[open_] = a[open_]
    place = np.full(pages, -1)
    place[open_] = np.arange(len(open_))
    mine = place[page] >= 0
    owner, gap, times = place[page[mine]], gap[mine], times[mine]
    for _ in range(_MOST_STEPS):
        if not len(open_):
            break
        u = rate[open_][owner] * gap
        h = waiting(u)
        over = a[open_] + np.bincount(owner, times * h, len(open_)) - b[open_] * rate[open_]
        worth[open_] = np.bincount(owner, times * h * (h + u - 1), len(open_)) + b[open_] * rate[open_]
        step = over / worth[open_]
        rate[open_] *= 1 + np.maximum(step, 0.0)
        moving = step > _ENOUGH
        if not moving.all():
            place = np.cumsum(moving) - 1
            mine = moving[owner]
            owner, gap, times = place[owner[mine]], gap[mine], times[mine]
            open_ = open_[moving]
    return rate, worth
