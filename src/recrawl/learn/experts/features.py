"""R's features for predicting a page's changes, as arrays over pages and days (spec L2; R §4.2.1, §4.2.2).

On day t, with the window l and the interval s (R's sigma), a page A has these features (numbered as in R):

    1   the share of days with a change in the window
    2   the distribution of its words, kept as inner products between days, which is all that a kernel needs
    3   ||A(t) - A(t-i)||, i = 1..l           4   ||A(t-i) - A(t-i-s)||, i = 1..l
    5   whether it changed on each of the last l days

and, together with an expert page B, which has the same features 1 to 5:

    6   cos(A(t-i), B(t-i)), i = 0..l-1
    7   cos(B(t) - B(t-i), A(t)), and cos(δB, δA) of the change of each of the last l days, i = 1..l

A(t) is the vector of word counts. R attributes the change from t-1 to t to day t-1, so "change(A(t-1))" is the newest
change known on day t. For feature 5 of page B, R prints the indices t-s-1 .. t-l, which are empty for l = s = 1; since
its text says "exactly analogous", this code uses the indices of A. A page that is not observed on day t has no features
for that day (spec L1); for earlier unobserved days in the window, its last known content counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.extras import sparse
from recrawl.learn.experts.word_dynamics import carry_forward

_BATCH = 1 << 17
"""Pairs of texts multiplied at a time."""
_PAGES = 200
"""Pages whose word products are computed at a time."""


@dataclass(frozen=True, slots=True)
class FeatureWindow:
    """R's parameters: the window l and the prediction interval, in days."""

    window: int = 1
    interval: int = 1


@dataclass(frozen=True, eq=False)
class Observations:
    """Texts and change labels of pages (page by day), as the features need them."""

    bags: sparse.csr_array
    text: Int32s
    """The row of `bags`; -1 where the page was not observed."""
    changed: Flags
    labelled: Flags

    @cached_property
    def known(self) -> Int32s:
        """Page by day: the last text observed up to that day."""
        return carry_forward(self.text)

    @cached_property
    def square(self) -> Floats:
        """One per text: the sum of its squared counts."""
        return row_sums(self.bags, 2)


@dataclass(frozen=True, slots=True, eq=False)
class OwnFeatures:
    """Features that depend on one page only."""

    values: Float32s
    """Page by day by feature: kinds 1 and 5, then 3 and 4."""
    history_columns: int
    """The number of leading columns that setting 1D uses: kinds 1 and 5."""
    present: Flags
    """Page by day: the page has features."""
    words: Float32s
    """Page by day by day: inner products of the word distributions, kind 2."""


def own_features(observations: Observations, shape: FeatureWindow = FeatureWindow()) -> OwnFeatures:
    """Kinds 1 to 5 for all pages and days."""
    return OwnFeatures(*numeric_features(observations, shape), _word_products(observations.bags, observations.known))


def numeric_features(observations: Observations, shape: FeatureWindow = FeatureWindow()) -> tuple[Float32s, int, Flags]:
    """Kinds 1, 3, 4 and 5: the values, the number of columns for setting 1D, and where there are features."""
    text, square = observations.known, observations.square
    days = text.shape[1]
    change = _last_flags(observations.changed, observations.labelled)
    recent = np.stack([_shifted(change, i, 0.0) for i in range(shape.window)], axis=2)
    before = [_shifted(text, i, -1) for i in range(1, shape.window + 1)]
    earlier = [_shifted(text, i + shape.interval, -1) for i in range(1, shape.window + 1)]
    moves = [_distance(observations.bags, square, text, old) for old in before]
    moves += [_distance(observations.bags, square, new, old) for new, old in zip(before, earlier, strict=True)]
    values = np.concatenate((recent.mean(axis=2, keepdims=True), recent, np.stack(moves, axis=2)), axis=2)
    present: Flags = (observations.text >= 0) & (text >= 0) & (before[-1] >= 0)
    return values.astype(np.float32).reshape(len(text), days, -1), 1 + shape.window, present


def pair_features(observations: Observations, a: Ints, b: Ints, shape: FeatureWindow = FeatureWindow()) -> Float32s:
    """Pair by day by feature: kinds 6 and 7 of targets `a` and experts `b`."""
    text, square = observations.known, observations.square
    mine, theirs = text[a], text[b]
    products: dict[int, Floats] = {}

    def dots(i: int, j: int) -> Floats:
        """The inner product of A(t-i) and B(t-j); pairs with the same i - j share one array, shifted by days."""
        if i - j not in products:
            products[i - j] = _dots(
                observations.bags, _shifted(mine, max(i - j, 0), -1), _shifted(theirs, max(j - i, 0), -1)
            )
        return _shifted(products[i - j], min(i, j), 0.0)

    def step_length(i: int, j: int) -> Floats:
        """||X(t-i) - X(t-j)|| for all pages."""
        return _distance(observations.bags, square, _shifted(text, i, -1), _shifted(text, j, -1))

    size = np.sqrt(_per_text(square, text))
    window = range(1, shape.window + 1)
    columns = [_cosine(dots(i, i), _shifted(size[a] * size[b], i, 0.0)) for i in range(shape.window)]
    columns += [_cosine(dots(0, 0) - dots(0, i), step_length(0, i)[b] * size[a]) for i in window]
    for i in window:
        step = step_length(i - 1, i)
        present_pair = dots(i - 1, i - 1) - dots(i - 1, i) - dots(i, i - 1) + dots(i, i)
        columns.append(_cosine(present_pair, step[a] * step[b]))
    return np.stack(columns, axis=2)


def _last_flags(changed: Flags, labelled: Flags) -> Float32s:
    """Page by day: the last label known by that day, as a number; 0 before the first."""
    latest = np.maximum.accumulate(np.where(labelled, np.arange(changed.shape[1]), -1), axis=1)
    flags = np.take_along_axis(changed, np.maximum(latest, 0), axis=1) & (latest >= 0)
    return flags.astype(np.float32)


def _shifted(values: NDArray[Any], days: int, fill: float) -> NDArray[Any]:
    """The values of `days` days earlier."""
    if not days:
        return values
    step_length = np.full(values.shape, fill, values.dtype)
    step_length[:, days:] = values[:, : max(values.shape[1] - days, 0)]
    return step_length


def row_sums(bags: sparse.csr_array, power: int = 1) -> Floats:
    """One per text: the sum of its counts to a power, in batches since counts are stored in few bits.

    >>> row_sums(sparse.csr_array(np.array([[1, 2], [0, 0], [3, 0]])), 2).tolist()
    [5.0, 0.0, 9.0]
    """
    sums = np.zeros(bags.shape[0])
    for start in range(0, bags.shape[0], _BATCH):
        ends = bags.indptr[start : start + _BATCH + 1].astype(np.int64)
        data = bags.data[ends[0] : ends[-1]].astype(np.float64) ** power
        nonempty = np.flatnonzero(np.diff(ends))
        if len(nonempty):
            sums[start + nonempty] = np.add.reduceat(data, ends[:-1][nonempty] - ends[0])
    return sums


def rows_of_counts(bags: sparse.csr_array, rows: Int32s) -> sparse.csr_array:
    """Rows of a matrix as float32; an empty row for -1."""
    row = np.maximum(rows, 0)
    lengths = np.where(rows >= 0, bags.indptr[row + 1] - bags.indptr[row], 0).astype(np.int64)
    start = np.concatenate(([0], np.cumsum(lengths)))
    place = np.repeat(bags.indptr[row].astype(np.int64) - start[:-1], lengths) + np.arange(start[-1])
    data = bags.data[place].astype(np.float32)
    return sparse.csr_array((data, bags.indices[place], start), shape=(len(rows), bags.shape[1]))


def _per_text(values: Floats, text: Int32s) -> Floats:
    """The value of each text; 0 for no text."""
    if not len(values):
        return np.zeros(text.shape)
    return np.where(text >= 0, values[np.maximum(text, 0)], 0.0)


def _dots(bags: sparse.csr_array, a: Int32s, b: Int32s) -> Floats:
    """Inner products of texts, elementwise; 0 where one is missing.

    Along the days (axis 1) most pairs repeat; each run of equal pairs is computed once.
    """
    present_pair = (a >= 0) & (b >= 0)
    new = np.ones(a.shape, np.bool_)
    new[:, 1:] = (a[:, 1:] != a[:, :-1]) | (b[:, 1:] != b[:, :-1])
    found = np.zeros(int(new.sum()))
    left, right, nonempty = a[new], b[new], np.flatnonzero(present_pair[new])
    for start in range(0, len(nonempty), _BATCH):
        part = nonempty[start : start + _BATCH]
        product = bags[left[part]].astype(np.float32).multiply(bags[right[part]].astype(np.float32))
        found[part] = np.asarray(product.sum(axis=1)).ravel()
    dots: Floats = found[np.cumsum(new).reshape(a.shape) - 1]
    return dots


def _distance(bags: sparse.csr_array, square: Floats, a: Int32s, b: Int32s) -> Floats:
    """||a - b||, elementwise; 0 where one is missing."""
    same = (a == b) | (a < 0) | (b < 0)
    dots = _dots(bags, np.where(same, -1, a).astype(np.int32), np.where(same, -1, b).astype(np.int32))
    return np.where(same, 0.0, np.sqrt(np.maximum(_per_text(square, a) + _per_text(square, b) - 2 * dots, 0.0)))


def _cosine(above: Floats, below: Floats) -> Float32s:
    """The quotient; 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros(above.shape), where=below > 1e-9).astype(np.float32)


def _word_products(bags: sparse.csr_array, text: Int32s) -> Float32s:
    """Page by day by day: Σ p(w, t)·p(w, t') over the word distributions of the page's texts."""
    pages, days = text.shape
    products = np.zeros((pages, days, days), np.float32)
    lengths = row_sums(bags)
    for start in range(0, pages, _PAGES):
        part = text[start : start + _PAGES]
        present = part >= 0
        owner = np.broadcast_to(np.arange(len(part))[:, None], part.shape)
        keys, number = np.unique(owner[present] * np.int64(max(bags.shape[0], 1)) + part[present], return_inverse=True)
        rows = keys % max(bags.shape[0], 1)
        chosen = bags[rows].astype(np.float32)
        scale = np.divide(1.0, lengths[rows], out=np.zeros(len(rows)), where=lengths[rows] > 0)
        # Each page's words get their own columns, so one product serves all pages without products between pages.
        of = np.repeat(np.arange(len(rows)), np.diff(chosen.indptr))
        columns = (keys // max(bags.shape[0], 1))[of] * np.int64(bags.shape[1]) + chosen.indices
        names, column = np.unique(columns, return_inverse=True)
        by_page = sparse.csr_array((chosen.data * scale[of], column, chosen.indptr), shape=(len(rows), len(names)))
        _fill_days(products[start : start + _PAGES], by_page, part, present, number)
    return products


def _fill_days(products: Float32s, by_page: sparse.csr_array, text: Int32s, present: Flags, number: Ints) -> None:
    """Expand products of versions to products of days, page by page."""
    version = np.full(text.shape, -1, np.int64)
    version[present] = number
    table = (by_page @ by_page.T).tocsr()
    for page in range(len(text)):
        mine = version[page]
        if (mine < 0).all():
            continue
        low, high = int(mine[mine >= 0].min()), int(mine.max()) + 1
        block = table[low:high, low:high].toarray()
        seen = np.flatnonzero(mine >= 0)
        products[page][np.ix_(seen, seen)] = block[np.ix_(mine[seen] - low, mine[seen] - low)]
