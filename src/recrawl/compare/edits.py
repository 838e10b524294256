"""The shortest edit script from one sequence to another, with a bound on the work.

Myers' greedy algorithm finds the fewest insertions and deletions in time quadratic in their number, so it stops at a
maximum number of edits. Before that, equal ends are removed, and items that occur once on both sides become fixed
points, between which the pieces are small. A piece that needs more edits is reported as replaced as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

Match = tuple[int, int, int]
"""A run of equal items: its start in the old sequence, its start in the new one, and its length."""


def matches(old: Sequence[str], new: Sequence[str], max_edits: int = 100) -> list[Match]:
    """Return runs of equal items, in order and without overlap.

    >>> matches("abcxd", "abyd")
    [(0, 0, 2), (4, 3, 1)]
    """
    found: list[Match] = []
    for a, a_end, b, b_end in _pieces(old, new):
        head = _common(old[a:a_end], new[b:b_end])
        tail = _common(old[a + head : a_end][::-1], new[b + head : b_end][::-1])
        _append(found, a, b, head)
        for x, y, n in _myers(old[a + head : a_end - tail], new[b + head : b_end - tail], max_edits):
            _append(found, a + head + x, b + head + y, n)
        _append(found, a_end - tail, b_end - tail, tail)
    return found


def _append(found: list[Match], a: int, b: int, n: int) -> None:
    if n == 0:
        return
    if found and found[-1][0] + found[-1][2] == a and found[-1][1] + found[-1][2] == b:
        a, b, n = found[-1][0], found[-1][1], found[-1][2] + n
        found.pop()
    found.append((a, b, n))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the number of equal items at the start."""
    for n, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return n
    return min(len(old), len(new))


def _pieces(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Cut both sequences at the fixed points: the longest ordered selection of items that occur once in each."""
    old_counts, new_counts = Counter(old), Counter(new)
    place = {item: j for j, item in enumerate(new) if new_counts[item] == 1 and old_counts[item] == 1}
    pairs = [(i, place[item]) for i, item in enumerate(old) if item in place]
    points = _longest_increasing(pairs)
    starts = [(0, 0), *points]
    ends = [*points, (len(old), len(new))]
    return [(a, a_end, b, b_end) for (a, b), (a_end, b_end) in zip(starts, ends, strict=True)]


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest selection of pairs in which both numbers increase (patience sorting)."""
    tops: list[int] = []
    top_at: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        tops[pile : pile + 1] = [j]
        top_at[pile : pile + 1] = [at]
        before.append(top_at[pile - 1] if pile else -1)
    chosen = []
    at = top_at[-1] if top_at else -1
    while at >= 0:
        chosen.append(pairs[at])
        at = before[at]
    return chosen[::-1]


def _myers(old: Sequence[str], new: Sequence[str], max_edits: int) -> list[Match]:
    """Return the equal runs of the shortest edit script; none if it needs more than `max_edits`."""
    n, m = len(old), len(new)
    if n == 0 or m == 0:
        return []
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(max_edits, n + m) + 1):
        history.append(dict(furthest))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            while x < n and x - k < m and old[x] == new[x - k]:
                x += 1
            furthest[k] = x
            if x >= n and x - k >= m:
                return _trace(history, n, m)
    return []


def _trace(history: list[dict[int, int]], x: int, y: int) -> list[Match]:
    """Return the equal runs along the path that reached the end."""
    runs: list[Match] = []
    for edits in range(len(history) - 1, -1, -1):
        furthest, k = history[edits], x - y
        down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
        before_k = k + 1 if down else k - 1
        before_x = furthest[before_k] if edits else 0
        start = (before_x if down else before_x + 1) if edits else 0
        if x > start:
            runs.append((start, start - k, x - start))
        x, y = before_x, before_x - before_k
    return runs[::-1]
