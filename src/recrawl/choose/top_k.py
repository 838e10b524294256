"""Selection of the k best pages, and ranks within groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Int32s, Ints


def top_k(key: NDArray[Any], count: int, tie: NDArray[Any] | None = None) -> Ints:
    """Return the positions of the `count` smallest keys, smallest first, without sorting all of them.

    The lower `tie` comes first among equal keys, then the lower position.

    >>> top_k(np.array([3.0, 1.0, 2.0, 1.0]), 3).tolist()
    [1, 3, 2]
    >>> top_k(np.array([3.0, 1.0, 2.0, 1.0]), 3, tie=np.array([0, 9, 0, 8])).tolist()
    [3, 1, 2]
    """
    if 0 < count < len(key):
        last = np.partition(key, count - 1)[count - 1]
        candidates = np.flatnonzero(key <= last)
        if tie is None and len(candidates) > 2 * count:  # too many equal keys to sort
            equal = key[candidates] == last
            candidates = np.concatenate((candidates[~equal], candidates[equal][:count]))
    else:
        candidates = np.arange(len(key))
    keys = (key[candidates],) if tie is None else (tie[candidates], key[candidates])
    return candidates[np.lexsort(keys)][:count]


def rank_within(group: NDArray[Any]) -> Int32s:
    """Return, for each entry, the number of earlier entries of the same group.

    >>> rank_within(np.array([7, 3, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(group, kind="stable")
    sorted_ = group[order]
    ranks = np.arange(len(group), dtype=np.int32)
    ranks[1:][sorted_[1:] == sorted_[:-1]] = 0  # left are the positions where a group begins
    np.maximum.accumulate(ranks, out=ranks)
    np.subtract(np.arange(len(group), dtype=np.int32), ranks, out=ranks)
    rank = np.empty(len(group), np.int32)
    rank[order] = ranks
    return rank
