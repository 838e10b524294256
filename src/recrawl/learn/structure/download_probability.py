"""With what chance a sampled page leads to its neighbours: the download probability φ of T §5 (spec S5).

Each rule is a function of columns, so that policies, tests and explanations share it. The change rate λ of a page is
the share of its counted visits that found it changed; its first download is not counted, for there was nothing to
compare with. Visits in which it was not the page's turn, or which failed, do not count either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]


def rate(found: NDArray[np.bool_], weights: Column | None = None) -> float:
    """λ of one page from its counted visits, oldest first: eq. 6 without weights, eq. 8 with weights that sum to 1.

    Eq. 8 is printed with a division by n, although the weights sum to 1 already; equal weights would then not reduce
    it to eq. 6, as T says they do. So there is no division here (spec S5).

    >>> rate(np.array([False, True, True, False]))
    0.5
    >>> rate(np.array([False, True, True, False]), np.array([0.1, 0.2, 0.3, 0.4]))
    0.5
    """
    if not len(found):
        return 0.0
    return float(found.mean() if weights is None else (weights * found).sum())


def rates(found: Column, counted: Column) -> Column:
    """λ of many pages by eq. 6 (HA): of `counted` visits `found` found a change. Without a counted visit it is 0.

    >>> rates(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    return np.clip(found / np.maximum(counted, 1.0), 0.0, 1.0)


def recent_rates(weighted: Column, counted: Column) -> Column:
    """λ of many pages by eq. 8 (WHA) with the weights i / (1 + ... + n) of T §6.2: late changes count for more.

    `weighted` is the sum of the numbers i of those counted visits, 1 to n, that found a change.

    >>> recent_rates(np.array([1.0, 4.0]), np.array([4.0, 4.0])).tolist()
    [0.1, 0.4]
    """
    return np.clip(weighted / np.maximum(counted * (counted + 1) / 2, 1.0), 0.0, 1.0)


def in_one_cycle(rate_per_cycle: Column) -> Column:
    """φ = 1 - e^-λ: the chance of a change within one cycle, if changes come as a Poisson process (eq. 5)."""
    return -np.expm1(-rate_per_cycle)


def by_popularity(scale: NDArray[np.int64]) -> Column:
    """φ = 1/11, 2/11, ..., 11/11 for a PageRank of 0, 1, ..., 10 (PRA).

    >>> by_popularity(np.array([0, 10])).round(3).tolist()
    [0.091, 1.0]
    """
    return (scale + 1) / 11.0
