"""Picking the first few of many: what a policy does that gives every page a rank and visits the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def least(place: NDArray[np.float64], count: int, tie: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Positions of the `count` least places, least first, without sorting all of them.

    `tie` decides among equal places, the lower first; where that does not, the position does.

    >>> least(np.array([3.0, 1.0, 2.0, 1.0]), 3).tolist()
    [1, 3, 2]
    >>> least(np.array([3.0, 1.0, 2.0, 1.0]), 3, tie=np.array([0, 9, 0, 8])).tolist()
    [3, 1, 2]
    """
    if 0 < count < len(place):
        candidates = np.flatnonzero(place <= np.partition(place, count - 1)[count - 1])
    else:
        candidates = np.arange(len(place))
    keys = (place[candidates],) if tie is None else (tie[candidates], place[candidates])
    return candidates[np.lexsort(keys)][:count]


def rank_within(group: NDArray[Any]) -> NDArray[np.int32]:
    """One per entry: how many entries of the same group stand before it.

    >>> rank_within(np.array([7, 3, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    rank = np.empty(len(group), np.int32)
    rank[order] = np.arange(len(group)) - np.repeat(begins, np.diff(np.append(begins, len(group))))
    return rank
