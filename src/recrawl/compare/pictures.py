"""Where two screenshots differ: boxes around what changed, in each of them.

Rows of pixels are aligned first, as lines of a text are: a paragraph that was inserted moves everything below it, which
has not changed. Rows that occur once in both pictures are the anchors (patience diff), so the time is that of sorting.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
"""Height, width, three colours."""
Mask = NDArray[np.bool_]
_GAP = 12
"""Pixels between two changes that share a box."""


class Box(NamedTuple):
    """A part of a picture, in pixels; `right` and `bottom` are outside."""

    left: int
    top: int
    right: int
    bottom: int


class ChangedRegions(NamedTuple):
    """What changed, in the picture before and in the picture after."""

    before: list[Box]
    after: list[Box]


def changed_regions(before: Pixels, after: Pixels) -> ChangedRegions:
    """Boxes around everything that differs between two pictures."""
    width = max(before.shape[1], after.shape[1])
    old, new = _widened(before, width), _widened(after, width)
    regions = ChangedRegions([], [])
    for old_rows, new_rows in _gaps(_keys(old), _keys(new)):
        left, right = old[old_rows], new[new_rows]
        if len(left) == len(right):
            mask = np.any(left != right, axis=2)
            masks = (mask, mask)
        else:
            masks = (_drawn(left), _drawn(right))
        regions.before.extend(_boxes(masks[0], old_rows.start))
        regions.after.extend(_boxes(masks[1], new_rows.start))
    return regions


def _widened(picture: Pixels, width: int) -> Pixels:
    missing = width - picture.shape[1]
    return np.pad(picture, ((0, 0), (0, missing), (0, 0)), constant_values=255) if missing else picture


def _keys(picture: Pixels) -> list[bytes]:
    """The rows of a picture as values that can be compared and counted."""
    return [row.tobytes() for row in picture]


def _gaps(old: list[bytes], new: list[bytes]) -> Iterator[tuple[slice, slice]]:
    """The stretches of rows between those that are the same in both."""
    ends = (len(old), len(new))
    anchors = [(-1, -1), *_anchors(old, new), ends]
    for (above_old, above_new), (below_old, below_new) in pairwise(anchors):
        first_old, first_new, last_old, last_new = above_old + 1, above_new + 1, below_old, below_new
        while first_old < last_old and first_new < last_new and old[first_old] == new[first_new]:
            first_old, first_new = first_old + 1, first_new + 1
        while first_old < last_old and first_new < last_new and old[last_old - 1] == new[last_new - 1]:
            last_old, last_new = last_old - 1, last_new - 1
        if first_old < last_old or first_new < last_new:
            yield slice(first_old, last_old), slice(first_new, last_new)


def _anchors(old: list[bytes], new: list[bytes]) -> list[tuple[int, int]]:
    """The longest increasing sequence of rows that occur once in both."""
    counts_old, counts_new = Counter(old), Counter(new)
    places = {key: place for place, key in enumerate(new) if counts_new[key] == 1}
    pairs = [(place, places[key]) for place, key in enumerate(old) if counts_old[key] == 1 and key in places]
    tails: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(tails, place)
        before.append(last[at - 1] if at else -1)
        tails[at : at + 1], last[at : at + 1] = [place], [number]
    chain, number = [], last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _drawn(part: Pixels) -> Mask:
    """Pixels that differ from the first one of their row: what stands on the background."""
    mask: Mask = np.any(part != part[:, :1], axis=2)
    return mask


def _boxes(mask: Mask, top: int) -> list[Box]:
    """Boxes around the marked pixels: one for each stretch of rows and columns."""
    found = []
    for first, last in _runs(np.any(mask, axis=1)):
        for left, right in _runs(np.any(mask[first:last], axis=0)):
            rows = np.flatnonzero(mask[first:last, left:right].any(axis=1))
            found.append(Box(left, top + first + int(rows[0]), right, top + first + int(rows[-1]) + 1))
    return found


def _runs(marks: Mask) -> list[tuple[int, int]]:
    """Stretches of marked places; small gaps are part of them."""
    places = np.flatnonzero(marks)
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) > _GAP)
    starts, ends = places[np.r_[0, breaks + 1]], places[np.r_[breaks, len(places) - 1]] + 1
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]
