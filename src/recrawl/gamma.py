"""The incomplete gamma function and its inverse, on arrays.

The chi-squared test, the intervals of change rates and the policy `ncis` need them. scipy has the same functions, but
with 140 MB it is too heavy for the base install. The tests compare both.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.columns import Floats

_ENOUGH = 1e-15
"""A term below this share of the sum hardly changes it."""
_TINY = 1e-300
_MAX_TERMS = 10_000
_MAX_STEPS = 30
_LOWEST = -700.0
"""Logarithms below this are 0 as a number."""
_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


def lower_share(a: Floats | float, x: Floats | float) -> Floats:
    """Return P(a, x): the probability that a gamma variable of shape `a` and rate 1 is at most `x`.

    >>> lower_share(1.0, np.array([0.0, 1.0, 50.0])).round(4).tolist()
    [0.0, 0.6321, 1.0]
    """
    return _shares(a, x)[0]


def upper_share(a: Floats | float, x: Floats | float) -> Floats:
    """Return 1 - P(a, x), exact where it is small. With a = d/2 and x = X²/2 it is the p-value of X² at d degrees.

    >>> upper_share(np.array([0.5, 5.0]), np.array([3.841, 18.307]) / 2).round(4).tolist()
    [0.05, 0.05]
    """
    return _shares(a, x)[1]


def quantile(a: Floats | float, share: Floats | float) -> Floats:
    """Return the x with P(a, x) = share, for shares between 0 and 1.

    >>> quantile(1.0, 0.5).round(4).tolist()
    0.6931
    """

    shape, wanted = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(share, np.float64))
    log_x = _start(shape, wanted)
    for _ in range(_MAX_STEPS):
        x = np.exp(log_x)
        below = lower_share(shape, x)
        slope = np.exp(shape * log_x - x - _logs(shape))
        step = np.where(log_x < _LOWEST, 0.0, np.clip((wanted - below) / np.maximum(slope, _TINY), -1.0, 1.0))
        log_x = log_x + step
        if not np.any(np.abs(step) > 1e-10):
            break
    return np.asarray(np.exp(log_x))


def _start(shape: Floats, share: Floats) -> Floats:
    """Return log x near the quantile: by Wilson and Hilferty for large shapes, else by the first term of the series."""
    from statistics import NormalDist  # lazy: loads ten modules, and few commands need quantiles

    normal = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])(share)
    cube = 1 - 1 / (9 * shape) + normal / (3 * np.sqrt(shape))
    first = (np.log(share) + _logs(shape + 1)) / shape
    return np.where((shape >= 1) & (cube > 0.1), np.log(shape) + 3 * np.log(np.maximum(cube, 0.1)), first)


def _logs(a: Floats) -> Floats:
    """Return log Γ(a)."""
    return np.asarray(_log_gamma(a), np.float64)


def _shares(a: Floats | float, x: Floats | float) -> tuple[Floats, Floats]:
    """Return the shares below and above x: by the series where x is small, else by the continued fraction."""
    shape, at = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    flat_a, flat_x = shape.ravel(), at.ravel()
    lower = np.zeros(len(flat_a))
    upper = np.ones(len(flat_a))
    with np.errstate(divide="ignore"):
        scale = np.exp(flat_a * np.log(flat_x) - flat_x - _logs(flat_a))
    low = np.flatnonzero((flat_x > 0) & (flat_x < flat_a + 1))
    high = np.flatnonzero(flat_x >= flat_a + 1)
    lower[low] = scale[low] * _series(flat_a[low], flat_x[low])
    upper[low] = 1 - lower[low]
    upper[high] = scale[high] * _fraction(flat_a[high], flat_x[high])
    lower[high] = 1 - upper[high]
    return lower.reshape(shape.shape), upper.reshape(shape.shape)


def _series(a: Floats, x: Floats) -> Floats:
    """Return 1/a + x/(a(a+1)) + x²/(a(a+1)(a+2)) + ..."""
    total = np.zeros(len(a))
    term, rows = 1 / a, np.arange(len(a))
    for n in range(1, _MAX_TERMS):
        total[rows] += term
        term = term * x[rows] / (a[rows] + n)
        more = term > _ENOUGH * total[rows]
        rows, term = rows[more], term[more]
        if not len(rows):
            break
    return total


def _fraction(a: Floats, x: Floats) -> Floats:
    """Return 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...))), by the method of Lentz."""
    rows = np.arange(len(a))
    b = x + 1 - a
    c, d = np.full(len(a), 1 / _TINY), 1 / b
    total = d.copy()
    for n in range(1, _MAX_TERMS):
        factor = -n * (n - a[rows])
        b = b + 2
        d = 1 / _nonzero(factor * d + b)
        c = _nonzero(b + factor / c)
        total[rows] *= d * c
        more = np.abs(d * c - 1) > _ENOUGH
        rows, b, c, d = rows[more], b[more], c[more], d[more]
        if not len(rows):
            break
    return total


def _nonzero(values: Floats) -> Floats:
    return np.where(np.abs(values) < _TINY, _TINY, values)
