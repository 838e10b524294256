"""Selection of the pages with the highest value, without sorting all pages."""

from __future__ import annotations

import numpy as np

from recrawl.choose.top_k import rank_within
from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.learn.chunks import chunks, where
from recrawl.learn.shocks.model import Groups

CLOSED = np.iinfo(np.int32).max
"""The rank of a page that is not to be visited."""
_EVERY = 16
"""One page in this many is sampled to estimate a lower bound for the highest values."""
_SORTED_AT_ONCE = 1 << 20
"""Pages ranked at once, so that temporary memory does not grow with the repository."""
_LEVELS = 1000
"""Resolution of probabilities in `level_counts`."""


def group_ranks(probability: Float32s, groups: Groups, size: Floats, open_: Flags) -> Int32s:
    """Return, per page, the number of open pages of its group with a higher probability; `CLOSED` if not open."""
    of = groups.of
    rank = np.full(len(of), CLOSED, np.int32)
    part_of_group = (np.cumsum(size) // _SORTED_AT_ONCE).astype(np.int16)
    part = part_of_group[of]
    part[~open_] = -1
    for number in range(int(part_of_group.max(initial=-1)) + 1):
        pages = np.flatnonzero(part == number).astype(np.int32)
        pages = pages[np.argsort(-probability[pages], kind="stable")]
        rank[pages] = rank_within(of[pages])
    return rank


def level_counts(probability: Float32s, open_: Flags) -> Floats:
    """Return the number of open pages by probability, to 1/1000."""
    levels = np.zeros(_LEVELS + 1)
    for pages in where(open_):
        levels += np.bincount((probability[pages] * _LEVELS).astype(np.int64), minlength=len(levels))
    return levels


def level_at(levels: Floats, rank: int) -> float:
    """Return, from `level_counts`, the probability of the page at a rank by probability; 0 if there are fewer pages.

    >>> counts = level_counts(np.array([0.2, 0.6, 1.0, 0.8], np.float32), np.array([True, True, False, True]))
    >>> level_at(counts, 2)
    0.6
    """
    above = np.cumsum(levels[::-1])
    return max(0, _LEVELS - int(np.searchsorted(above, rank))) / _LEVELS


def highest(value: Float32s, count: int) -> Ints:
    """Return the pages with the highest values, highest first; of equal values at the end, some that lie apart.

    A sample of one page in 16 gives a bound that about four times `count` pages exceed. If at least `count` pages
    exceed it, only those are searched, which is fast. If too few exceed it because many pages equal it, it is the value
    of the last page.

    >>> highest(np.array([1, 2, 1, 1, 1, 3], np.float32), 4).tolist()
    [5, 1, 0, 4]
    """
    sample = value[::_EVERY]
    rank = 4 + 4 * count // _EVERY
    if rank < len(sample) // 4:
        bound = np.partition(sample, len(sample) - rank)[len(sample) - rank]
        above = np.flatnonzero(value > bound)
        if len(above) >= count:
            return above[highest_of(value[above], count)]
        if np.count_nonzero(value >= bound) >= count:  # many pages have the value of the last one
            return _down_to(value, bound, above, count)
    return highest_of(value, count)


def highest_of(value: Float32s, count: int) -> Ints:
    """Return the positions of the highest values, as `highest`, by partition."""
    if count >= len(value):
        return np.argsort(-value, kind="stable")
    last = np.partition(value, len(value) - count)[len(value) - count]
    return _down_to(value, last, np.flatnonzero(value > last), count)


def _down_to(value: Float32s, last: np.float32, more: Ints, count: int) -> Ints:
    """Return the positions `more` of the values above `last`, highest first, then some of those that equal it."""
    equal, left = int(np.count_nonzero(value == last)), count - len(more)
    wanted = np.linspace(0, equal - 1, left).astype(np.int64) if left < equal else np.arange(equal)
    found, before = [more[np.argsort(-value[more], kind="stable")]], 0
    for chunk in chunks(len(value)):  # positions of all equal values may take much memory
        here = np.flatnonzero(value[chunk] == last)
        low, high = np.searchsorted(wanted, (before, before + len(here)))
        found.append(chunk.start + here[wanted[low:high] - before])
        before += len(here)
    return np.concatenate(found)
