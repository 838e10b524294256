"""What predicts that a page changes: R's features as arrays over pages and days (spec L2; R §4.2.1, §4.2.2).

On day t, with the window l and the interval s (R's sigma), a page A has (numbers are R's):

    1   the share of days with a change in the window
    2   the distribution of its words; kept as inner products between days, which is all that a machine needs of it
    3   ||A(t) - A(t-i)||, i = 1..l           4   ||A(t-i) - A(t-i-s)||, i = 1..l
    5   whether it changed on each of the last l days

and as the target of another page B, whose own 1-5 are the same:

    6   cos(A(t-i), B(t-i)), i = 0..l-1
    7   cos(B(t) - B(t-i), A(t)), and cos(δB, δA) of the change of each of the last l days, i = 1..l

A(t) is the counts of words. R calls the change from t-1 to t that of t-1; so "change(A(t-1))" is the newest one
known on day t. For 5 of page B R prints the indices t-s-1 .. t-l, which makes no sense for l = s = 1; its text says
"exactly analogous", so they are those of A. A page that is not seen on day t has no features then (spec L1); for
earlier days in the window that it was not seen on, what was known of it then counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.learn.experts.word_dynamics import held

_AT_ONCE = 1 << 17
"""Pairs of texts that are multiplied at a time."""
_PAGES = 200


@dataclass(frozen=True, slots=True)
class Shape:
    """R's parameters: the window l and the prediction interval, in days."""

    window: int = 1
    interval: int = 1


@dataclass(frozen=True, eq=False)
class Diary:
    """What was seen of pages, as far as features need it: page by day."""

    bags: sparse.csr_array
    text: Int32s
    """The row of `bags`, -1 where the page was not seen."""
    changed: Flags
    labelled: Flags

    @cached_property
    def known(self) -> Int32s:
        """Page by day: the text that was seen last."""
        return held(self.text)

    @cached_property
    def square(self) -> Floats:
        """Of each text the sum of its squared counts."""
        return row_sums(self.bags, 2)


@dataclass(frozen=True, slots=True, eq=False)
class OwnFeatures:
    """Features of pages by themselves."""

    numbers: Float32s
    """Page by day by feature: kinds 1 and 5, then 3 and 4."""
    flat: int
    """How many of them are of the 1D setting: those of kinds 1 and 5."""
    there: Flags
    """Page by day: it has features."""
    words: Float32s
    """Page by day by day: the inner product of the distributions of words, kind 2."""


def own(diary: Diary, shape: Shape = Shape()) -> OwnFeatures:
    """Kinds 1 to 5 for all pages and days."""
    return OwnFeatures(*own_numbers(diary, shape), _word_products(diary.bags, diary.known))


def own_numbers(diary: Diary, shape: Shape = Shape()) -> tuple[Float32s, int, Flags]:
    """All but the distribution of words: the numbers, how many are of the 1D setting, where there are any."""
    text, square = diary.known, diary.square
    days = text.shape[1]
    change = _held_flags(diary.changed, diary.labelled)
    recent = np.stack([_back(change, i, 0.0) for i in range(shape.window)], axis=2)
    before = [_back(text, i, -1) for i in range(1, shape.window + 1)]
    earlier = [_back(text, i + shape.interval, -1) for i in range(1, shape.window + 1)]
    moves = [_distance(diary.bags, square, text, old) for old in before]
    moves += [_distance(diary.bags, square, new, old) for new, old in zip(before, earlier, strict=True)]
    numbers = np.concatenate((recent.mean(axis=2, keepdims=True), recent, np.stack(moves, axis=2)), axis=2)
    there: Flags = (diary.text >= 0) & (text >= 0) & (before[-1] >= 0)
    return numbers.astype(np.float32).reshape(len(text), days, -1), 1 + shape.window, there


def pairs(diary: Diary, a: Ints, b: Ints, shape: Shape = Shape()) -> Float32s:
    """Pair by day by feature: kinds 6 and 7 of targets `a` and experts `b`."""
    text, square = diary.known, diary.square
    mine, theirs = text[a], text[b]
    products: dict[int, Floats] = {}

    def dots(i: int, j: int) -> Floats:
        """The inner product of A(t-i) and B(t-j): all with the same difference are one, moved by days."""
        if i - j not in products:
            products[i - j] = _dots(diary.bags, _back(mine, max(i - j, 0), -1), _back(theirs, max(j - i, 0), -1))
        return _back(products[i - j], min(i, j), 0.0)

    def moved(i: int, j: int) -> Floats:
        """||X(t-i) - X(t-j)|| of all pages."""
        return _distance(diary.bags, square, _back(text, i, -1), _back(text, j, -1))

    size = np.sqrt(_take(square, text))
    window = range(1, shape.window + 1)
    columns = [_ratio(dots(i, i), _back(size[a] * size[b], i, 0.0)) for i in range(shape.window)]
    columns += [_ratio(dots(0, 0) - dots(0, i), moved(0, i)[b] * size[a]) for i in window]
    for i in window:
        step = moved(i - 1, i)
        both = dots(i - 1, i - 1) - dots(i - 1, i) - dots(i, i - 1) + dots(i, i)
        columns.append(_ratio(both, step[a] * step[b]))
    return np.stack(columns, axis=2)


def _held_flags(changed: Flags, labelled: Flags) -> Float32s:
    """Whether the page had changed at its last look, as a number; 0 before there was one."""
    latest = np.maximum.accumulate(np.where(labelled, np.arange(changed.shape[1]), -1), axis=1)
    flags = np.take_along_axis(changed, np.maximum(latest, 0), axis=1) & (latest >= 0)
    return flags.astype(np.float32)


def _back(values: NDArray[Any], days: int, otherwise: float) -> NDArray[Any]:
    """The values of some days before."""
    if not days:
        return values
    moved = np.full(values.shape, otherwise, values.dtype)
    moved[:, days:] = values[:, : max(values.shape[1] - days, 0)]
    return moved


def row_sums(bags: sparse.csr_array, power: int = 1) -> Floats:
    """Of each text the sum of its counts to a power, some texts at a time: counts are kept in few bits, and many.

    >>> row_sums(sparse.csr_array(np.array([[1, 2], [0, 0], [3, 0]])), 2).tolist()
    [5.0, 0.0, 9.0]
    """
    sums = np.zeros(bags.shape[0])
    for start in range(0, bags.shape[0], _AT_ONCE):
        ends = bags.indptr[start : start + _AT_ONCE + 1].astype(np.int64)
        data = bags.data[ends[0] : ends[-1]].astype(np.float64) ** power
        some = np.flatnonzero(np.diff(ends))
        if len(some):
            sums[start + some] = np.add.reduceat(data, ends[:-1][some] - ends[0])
    return sums


def _take(values: Floats, text: Int32s) -> Floats:
    """A value of each text; 0 for none."""
    if not len(values):
        return np.zeros(text.shape)
    return np.where(text >= 0, values[np.maximum(text, 0)], 0.0)


def _dots(bags: sparse.csr_array, a: Int32s, b: Int32s) -> Floats:
    """The inner product of texts, place by place; 0 where one is missing.

    Along the days (the second axis) pairs mostly stay as they were, and are then computed once.
    """
    both = (a >= 0) & (b >= 0)
    new = np.ones(a.shape, np.bool_)
    new[:, 1:] = (a[:, 1:] != a[:, :-1]) | (b[:, 1:] != b[:, :-1])
    found = np.zeros(int(new.sum()))
    left, right, some = a[new], b[new], np.flatnonzero(both[new])
    for start in range(0, len(some), _AT_ONCE):
        part = some[start : start + _AT_ONCE]
        product = bags[left[part]].astype(np.float32).multiply(bags[right[part]].astype(np.float32))
        found[part] = np.asarray(product.sum(axis=1)).ravel()
    dots: Floats = found[np.cumsum(new).reshape(a.shape) - 1]
    return dots


def _distance(bags: sparse.csr_array, square: Floats, a: Int32s, b: Int32s) -> Floats:
    """||a - b||, place by place; 0 where one is missing."""
    same = (a == b) | (a < 0) | (b < 0)
    dots = _dots(bags, np.where(same, -1, a).astype(np.int32), np.where(same, -1, b).astype(np.int32))
    return np.where(same, 0.0, np.sqrt(np.maximum(_take(square, a) + _take(square, b) - 2 * dots, 0.0)))


def _ratio(above: Floats, below: Floats) -> Float32s:
    """A cosine; that with nothing is 0."""
    return np.divide(above, below, out=np.zeros(above.shape), where=below > 1e-9).astype(np.float32)


def _word_products(bags: sparse.csr_array, text: Int32s) -> Float32s:
    """Page by day by day: Σ p(w, t)·p(w, t') over the distributions of words of the page's texts."""
    pages, days = text.shape
    products = np.zeros((pages, days, days), np.float32)
    lengths = row_sums(bags)
    for start in range(0, pages, _PAGES):
        part = text[start : start + _PAGES]
        there = part >= 0
        owner = np.broadcast_to(np.arange(len(part))[:, None], part.shape)
        keys, number = np.unique(owner[there] * np.int64(max(bags.shape[0], 1)) + part[there], return_inverse=True)
        rows = keys % max(bags.shape[0], 1)
        chosen = bags[rows].astype(np.float32)
        scale = np.divide(1.0, lengths[rows], out=np.zeros(len(rows)), where=lengths[rows] > 0)
        # Each page's words get columns of their own: one product for all pages, without any between pages.
        of = np.repeat(np.arange(len(rows)), np.diff(chosen.indptr))
        columns = (keys // max(bags.shape[0], 1))[of] * np.int64(bags.shape[1]) + chosen.indices
        names, column = np.unique(columns, return_inverse=True)
        apart = sparse.csr_array((chosen.data * scale[of], column, chosen.indptr), shape=(len(rows), len(names)))
        _spread(products[start : start + _PAGES], apart, part, there, number)
    return products


def _spread(products: Float32s, apart: sparse.csr_array, text: Int32s, there: Flags, number: Ints) -> None:
    """From products of versions to products of days, page by page in order."""
    version = np.full(text.shape, -1, np.int64)
    version[there] = number
    table = (apart @ apart.T).tocsr()
    for page in range(len(text)):
        mine = version[page]
        if (mine < 0).all():
            continue
        low, high = int(mine[mine >= 0].min()), int(mine.max()) + 1
        block = table[low:high, low:high].toarray()
        seen = np.flatnonzero(mine >= 0)
        products[page][np.ix_(seen, seen)] = block[np.ix_(mine[seen] - low, mine[seen] - low)]
