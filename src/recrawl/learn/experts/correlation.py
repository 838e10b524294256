"""How alike series run, one perhaps some days behind the other (spec L4, L5; R §6.3, §9.2).

The correlation of a with b at lag d is Σ (a[i] - mean a)(b[i - d] - mean b) / (N·sd a·sd b): b leads by d. On series
of mean 0 and length 1 that is a product of matrices, so all pairs cost one call of BLAS for each lag. Long series are
first cut into frames and each frame replaced by its mean. `Running` keeps correlations up to date from the newest
values alone, and is exactly what one would compute from all values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Float32s, Floats, Int32s, Ints

_AT_ONCE = 1 << 24
"""Numbers that are worked on at once."""
_FLAT = 1e-9


def unit(series: NDArray[np.floating]) -> Float32s:
    """Every series (the last axis) with mean 0 and length 1; a constant one becomes 0 and correlates with nothing.

    >>> unit(np.array([[1.0, 3.0], [2.0, 2.0]])).round(3).tolist()
    [[-0.7070000171661377, 0.7070000171661377], [0.0, 0.0]]
    """
    centred = series - series.mean(axis=-1, keepdims=True)
    length = np.sqrt((centred * centred).sum(axis=-1, keepdims=True))
    scale = np.abs(series).max(axis=-1, keepdims=True, initial=0.0)
    flat = length <= _FLAT * np.maximum(scale, 1.0)
    scaled: Float32s = np.divide(centred, length, out=np.zeros(series.shape), where=~flat).astype(np.float32)
    return scaled


def reduced(series: Float32s, frames: int) -> Float32s:
    """Series cut into frames along the last axis, each frame its mean (R §9.2); short ones are left as they are.

    >>> reduced(np.array([[1.0, 3.0, 5.0, 5.0]], np.float32), 2).tolist()
    [[2.0, 5.0]]
    """
    days = series.shape[-1]
    if days <= frames:
        return series
    edges = np.linspace(0, days, frames + 1).astype(np.int64)
    means: Float32s = (np.add.reduceat(series, edges[:-1], axis=-1) / np.diff(edges)).astype(np.float32)
    return means


def lagged(left: Float32s, right: Float32s, a: Ints, b: Ints, lags: int) -> Float32s:
    """Pair by lag: the correlations of `left[a]` with `right[b]`, both made by `unit`, at lags 0 to `lags`."""
    days = left.shape[1]
    found = np.zeros((len(a), lags + 1), np.float32)
    step = max(1, _AT_ONCE // max(days, 1))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        here, there = left[a[part]], right[b[part]]
        for lag in range(min(lags, days - 1) + 1):
            found[part, lag] = np.einsum("pd,pd->p", here[:, lag:], there[:, : days - lag])
    return found


def nearest(left: Float32s, right: Float32s, k: int, lags: int) -> Int32s:
    """Page by k: the pages whose series correlate best with each page's, at the lag that suits the pair.

    A page has one series or several that are compared in parallel (page by channel by day); `left` holds the pages
    that look for others, `right` the same pages as they are found. One product of matrices for each lag and chunk.
    """
    left, right = (x.reshape(len(x), -1, x.shape[-1]) for x in (left, right))
    pages, _, days = left.shape
    k = min(k, pages - 1)
    best = np.zeros((pages, max(k, 0)), np.int32)
    if k < 1:
        return best
    rows = max(1, _AT_ONCE // pages)
    shifted = [right[:, :, : days - lag].reshape(pages, -1).T for lag in range(min(lags, days - 1) + 1)]
    for start in range(0, pages, rows):
        part = slice(start, min(start + rows, pages))
        alike: Float32s | None = None
        for lag, other in enumerate(shifted):
            product = left[part, :, lag:].reshape(part.stop - start, -1) @ other
            alike = product if alike is None else np.maximum(alike, product, out=alike)
        assert alike is not None
        alike[np.arange(part.stop - start), np.arange(start, part.stop)] = -np.inf
        top = np.argpartition(alike, pages - k, axis=1)[:, pages - k :]
        order = np.argsort(-np.take_along_axis(alike, top, axis=1), axis=1, kind="stable")
        best[part] = np.take_along_axis(top, order, axis=1)
    return best


class Running:
    """Correlations of given pairs of series at all lags, kept up to date day by day without the old days (spec L5).

    >>> running = Running(2, np.array([0]), np.array([1]), lags=1)
    >>> for values in ([0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]):
    ...     running.add(np.array(values))
    >>> running.correlations().round(3).tolist()
    [[-0.577, 0.722]]
    """

    def __init__(self, series: int, a: Ints, b: Ints, lags: int) -> None:
        self.a, self.b, self.lags = a, b, lags
        self.days = 0
        self._first = np.zeros((series, lags))  # the first values of each series, as many as there are lags
        self._last = np.zeros((series, lags + 1))  # the newest first
        self._sum = np.zeros(series)
        self._square = np.zeros(series)
        self._product = np.zeros((len(a), lags + 1))

    def add(self, values: NDArray[np.floating]) -> None:
        """The newest value of every series."""
        if self.days < self.lags:
            self._first[:, self.days] = values
        self._last = np.concatenate((np.asarray(values, np.float64)[:, None], self._last[:, :-1]), axis=1)
        self._sum += values
        self._square += np.asarray(values, np.float64) ** 2
        self._product += values[self.a][:, None] * self._last[self.b]
        self.days += 1

    def correlations(self) -> Floats:
        """Pair by lag: the same as `lagged` gives for all days so far; 0 for a constant series."""
        n = self.days
        if not n:
            return np.zeros((len(self.a), self.lags + 1))
        mean = self._sum / n
        spread = np.sqrt(np.maximum(self._square / n - mean**2, 0.0))
        spread[spread <= _FLAT * np.maximum(np.abs(mean), 1.0) * np.sqrt(n)] = 0.0
        # Of a the first `lag` days have no partner, of b the last.
        without_first = self._sum[:, None] - np.pad(np.cumsum(self._first, axis=1), ((0, 0), (1, 0)))
        without_last = self._sum[:, None] - np.pad(np.cumsum(self._last[:, :-1], axis=1), ((0, 0), (1, 0)))
        pairs = np.maximum(n - np.arange(self.lags + 1), 0)
        mean_a, mean_b = mean[self.a][:, None], mean[self.b][:, None]
        covered = (
            self._product - mean_b * without_first[self.a] - mean_a * without_last[self.b] + pairs * mean_a * mean_b
        )
        scale = n * (spread[self.a] * spread[self.b])[:, None]
        covered = np.where(pairs > 0, covered, 0.0)
        found: Floats = np.divide(covered, scale, out=np.zeros(covered.shape), where=scale > 0)
        return found
