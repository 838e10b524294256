"""The probability φ that a sampled page leads to its neighbours: T's download probability (T §5, spec S5).

The change rate λ of a page is the share of its counted visits that found a change. The first download is not counted,
since it has nothing to compare with; failed visits are not counted either.
"""

from __future__ import annotations

import numpy as np

from recrawl.columns import Flags, Floats, Ints


def rate(found: Flags, weights: Floats | None = None) -> float:
    """Return λ of one page from its counted visits, oldest first: eq. 6, or eq. 8 with weights that sum to 1.

    Eq. 8 is printed with a division by n, although the weights already sum to 1; equal weights would then not reduce it
    to eq. 6, as T says they do. So there is no division here (spec S5).

    >>> rate(np.array([False, True, True, False]))
    0.5
    >>> rate(np.array([False, True, True, False]), np.array([0.1, 0.2, 0.3, 0.4]))
    0.5
    """
    if not len(found):
        return 0.0
    return float(found.mean() if weights is None else (weights * found).sum())


def rates(found: Floats, counted: Floats) -> Floats:
    """Return λ of pages by eq. 6 (HA), if `found` of `counted` visits found a change; 0 without a counted visit.

    >>> rates(np.array([1.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [0.25, 0.0]
    """
    return np.clip(found / np.maximum(counted, 1.0), 0.0, 1.0)


def recent_rates(weighted: Floats, counted: Floats) -> Floats:
    """Return λ of pages by eq. 8 (WHA) with the weights i / (1 + ... + n) of T §6.2: later changes count more.

    `weighted` is the sum of the numbers i, from 1 to n, of the counted visits that found a change.

    >>> recent_rates(np.array([1.0, 4.0]), np.array([4.0, 4.0])).tolist()
    [0.1, 0.4]
    """
    return np.clip(weighted / np.maximum(counted * (counted + 1) / 2, 1.0), 0.0, 1.0)


def in_one_cycle(rate_per_cycle: Floats) -> Floats:
    """Return φ = 1 - e^-λ: the probability of a change within one cycle for a Poisson process (eq. 5)."""
    return -np.expm1(-rate_per_cycle)


def by_popularity(scale: Ints) -> Floats:
    """Return φ = 1/11, 2/11, ..., 11/11 for a PageRank of 0, 1, ..., 10 (PRA).

    >>> by_popularity(np.array([0, 10])).round(3).tolist()
    [0.091, 1.0]
    """
    return (scale + 1) / 11.0
