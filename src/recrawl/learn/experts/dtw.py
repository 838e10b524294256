"""Dynamic time warping (R fig. 5) of many pairs of series at once.

    dtw(i, j) = |a[i] - b[j]| + min(dtw(i-1, j), dtw(i, j-1), dtw(i-1, j-1))

A pair's table has to be filled cell by cell, but each cell can be filled for all pairs together, so the number of
Python steps is the number of cells whatever the number of pairs. Libraries for DTW handle single pairs or all pairs of
a set; here the pairs are a list of candidates.
"""

from __future__ import annotations

import numpy as np

from recrawl.columns import Float32s


def dtw_distance(a: Float32s, b: Float32s, band: int | None = None) -> Float32s:
    """The DTW distance of each pair of rows; `band` limits how many days the two may shift (None: no limit).

    >>> dtw_distance(np.array([[0, 1, 0, 0]], np.float32), np.array([[0, 0, 1, 0]], np.float32)).tolist()
    [0.0]
    >>> dtw_distance(np.array([[0, 1, 0, 0]], np.float32), np.array([[0, 0, 1, 0]], np.float32), band=0).tolist()
    [2.0]
    """
    pairs, days = a.shape
    if not days:
        return np.zeros(pairs, np.float32)
    band = days if band is None else band
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    infinite = np.full(pairs, np.inf, np.float32)
    above = [infinite] * (days + 1)
    above[0] = np.zeros(pairs, np.float32)
    for i in range(days):
        here = [infinite] * (days + 1)
        for j in range(max(0, i - band), min(days, i + band + 1)):
            before = np.minimum(np.minimum(above[j + 1], here[j]), above[j])
            here[j + 1] = np.abs(left[i] - right[j]) + before
        above = here
    return above[days]


def dtw_similarity(a: Float32s, b: Float32s, band: int | None = None) -> Float32s:
    """From 0 to 1, where 1 means equal after warping; expects series of mean 0 and variance 1."""
    similarity: Float32s = 1.0 / (1.0 + dtw_distance(a, b, band) / max(a.shape[1], 1))
    return similarity.astype(np.float32)
