"""The equal ends of two versions: most changes are in one place, and only what lies between needs a comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

_Items = TypeVar("_Items", str, list[int])


def common_ends(old: _Items, new: _Items) -> tuple[int, int]:
    """Return the number of equal items at the start, and of further ones at the end.

    >>> common_ends("an old page", "an older page")
    (6, 5)
    >>> common_ends("aa", "aaa")
    (2, 0)
    """
    a, b = len(old), len(new)
    start = _longest(min(a, b), lambda low, high: old[low:high] == new[low:high])
    end = _longest(min(a, b) - start, lambda low, high: old[a - high : a - low] == new[b - high : b - low])
    return start, end


class SplitTexts(NamedTuple):
    """Two texts, split between words."""

    common: str
    """The text of both ends, which the versions share."""
    old: str
    new: str


def split_texts(old: str, new: str) -> SplitTexts:
    """Split two texts at spaces into their common ends and what lies between.

    >>> split_texts("an old page here", "an older page here")
    SplitTexts(common='an  page here', old='old', new='older')
    """
    start, end = common_ends(old, new)
    start = old.rfind(" ", 0, start) + 1
    first = old.find(" ", len(old) - end)
    end = len(old) - first if first >= 0 else 0
    return SplitTexts(old[:start] + old[len(old) - end :], old[start : len(old) - end], new[start : len(new) - end])


def _longest(most: int, equal: Callable[[int, int], bool]) -> int:
    """Return the greatest number, up to `most`, at which everything below is equal: by bisection, compared in C."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low
