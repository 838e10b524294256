"""Dynamic time warping of many pairs of series at once (spec L4; R fig. 5).

    dtw(i, j) = |a[i] - b[j]| + min(dtw(i-1, j), dtw(i, j-1), dtw(i-1, j-1))

The table of a pair has to be filled cell by cell, but a cell can be filled for all pairs together: so Python makes as
many steps as a table has cells, whatever the number of pairs. Libraries for this are made for single pairs or for all
pairs of a set; candidates are neither.
"""

from __future__ import annotations

import numpy as np

from recrawl.columns import Float32s


def warped(a: Float32s, b: Float32s, band: int | None = None) -> Float32s:
    """The distance of each pair of rows; `band` is the most days by which the two may run apart, None for any.

    >>> warped(np.array([[0, 1, 0, 0]], np.float32), np.array([[0, 0, 1, 0]], np.float32)).tolist()
    [0.0]
    >>> warped(np.array([[0, 1, 0, 0]], np.float32), np.array([[0, 0, 1, 0]], np.float32), band=0).tolist()
    [2.0]
    """
    pairs, days = a.shape
    if not days:
        return np.zeros(pairs, np.float32)
    band = days if band is None else band
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    far = np.full(pairs, np.inf, np.float32)
    above = [far] * (days + 1)
    above[0] = np.zeros(pairs, np.float32)
    for i in range(days):
        here = [far] * (days + 1)
        for j in range(max(0, i - band), min(days, i + band + 1)):
            before = np.minimum(np.minimum(above[j + 1], here[j]), above[j])
            here[j + 1] = np.abs(left[i] - right[j]) + before
        above = here
    return above[days]


def likeness(a: Float32s, b: Float32s, band: int | None = None) -> Float32s:
    """From 0 to 1: 1 for pairs that warping makes equal; series of mean 0 and variance 1 are expected."""
    near: Float32s = 1.0 / (1.0 + warped(a, b, band) / max(a.shape[1], 1))
    return near.astype(np.float32)
