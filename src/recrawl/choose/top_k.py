"""Picking the first few of many: what a policy does that gives every page a rank and visits the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def top_k(place: NDArray[Any], count: int, tie: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Positions of the `count` least places, least first, without sorting all of them.

    `tie` decides among equal places, the lower first; where that does not, the position does.

    >>> top_k(np.array([3.0, 1.0, 2.0, 1.0]), 3).tolist()
    [1, 3, 2]
    >>> top_k(np.array([3.0, 1.0, 2.0, 1.0]), 3, tie=np.array([0, 9, 0, 8])).tolist()
    [3, 1, 2]
    """
    if 0 < count < len(place):
        last = np.partition(place, count - 1)[count - 1]
        candidates = np.flatnonzero(place <= last)
        if tie is None and len(candidates) > 2 * count:  # so many stand level that sorting them would take long
            level = place[candidates] == last
            candidates = np.concatenate((candidates[~level], candidates[level][:count]))
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
    sorted_ = group[order]
    place = np.arange(len(group), dtype=np.int32)
    begins = place.copy()
    begins[1:][sorted_[1:] == sorted_[:-1]] = 0
    rank = np.empty(len(group), np.int32)
    rank[order] = place - np.maximum.accumulate(begins)
    return rank
