"""The shortest way from one sequence to another, with a bound on the work.

Myers' greedy algorithm finds the fewest insertions and deletions in time that grows with their square, so
it is cut off at a number of edits. In front of it, equal ends are taken off, and lines that occur once on
both sides are used as fixed points: between them the pieces are small. What is still too different is
reported as replaced as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

Match = tuple[int, int, int]
"""Where a run of equal items starts in the old sequence, where in the new, and its length."""


def matches(old: Sequence[str], new: Sequence[str], most_edits: int = 100) -> list[Match]:
    """Runs of equal items, in order, that do not overlap.

    >>> matches("abcxd", "abyd")
    [(0, 0, 2), (4, 3, 1)]
    """
    found: list[Match] = []
    for a, a_end, b, b_end in _pieces(old, new):
        head = _common(old[a:a_end], new[b:b_end])
        tail = _common(old[a + head : a_end][::-1], new[b + head : b_end][::-1])
        _append(found, a, b, head)
        for x, y, n in _myers(old[a + head : a_end - tail], new[b + head : b_end - tail], most_edits):
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
    """How many items at the start are the same."""
    for n, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return n
    return min(len(old), len(new))


def _pieces(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Both sequences cut at the fixed points: items that occur once in each, as many as keep their order."""
    often_old, often_new = Counter(old), Counter(new)
    place = {item: j for j, item in enumerate(new) if often_new[item] == 1 and often_old[item] == 1}
    pairs = [(i, place[item]) for i, item in enumerate(old) if item in place]
    points = _longest_rising(pairs)
    starts = [(0, 0), *points]
    ends = [*points, (len(old), len(new))]
    return [(a, a_end, b, b_end) for (a, b), (a_end, b_end) in zip(starts, ends, strict=True)]


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest selection of pairs whose second numbers rise as their first do (patience sorting)."""
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


def _myers(old: Sequence[str], new: Sequence[str], most_edits: int) -> list[Match]:
    """The runs kept by the shortest edit script; none when it needs more edits than allowed."""
    n, m = len(old), len(new)
    if n == 0 or m == 0:
        return []
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(most_edits, n + m) + 1):
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
    """The equal runs along the path that reached the end."""
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
