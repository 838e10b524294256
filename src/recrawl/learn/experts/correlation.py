"""Cross-correlation of many series at several lags (spec L4, L5; R §6.3, §9.2).

The correlation of a with b at lag d is Σ (a[i] - mean a)(b[i - d] - mean b) / (N·sd a·sd b): b leads by d days. For
series of mean 0 and norm 1 this is a matrix product, so all pairs cost one BLAS call per lag. Long series are first
shortened to the means of equal frames. `RunningCorrelation` updates correlations from the newest values alone and gives
the same result as a computation from all values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Float32s, Floats, Int32s, Ints

_BATCH = 1 << 24
"""Numbers held in memory at a time."""
_CONSTANT = 1e-9
"""Relative norm below which a centred series counts as constant."""


def normalized(series: NDArray[np.floating]) -> Float32s:
    """Every series (last axis) with mean 0 and norm 1; a constant series becomes 0 and correlates with nothing.

    >>> normalized(np.array([[1.0, 3.0], [2.0, 2.0]])).round(3).tolist()
    [[-0.7070000171661377, 0.7070000171661377], [0.0, 0.0]]
    """
    centred = series - series.mean(axis=-1, keepdims=True)
    length = np.sqrt((centred * centred).sum(axis=-1, keepdims=True))
    scale = np.abs(series).max(axis=-1, keepdims=True, initial=0.0)
    constant = length <= _CONSTANT * np.maximum(scale, 1.0)
    scaled: Float32s = np.divide(centred, length, out=np.zeros(series.shape), where=~constant).astype(np.float32)
    return scaled


def frame_means(series: Float32s, frames: int) -> Float32s:
    """Series shortened to the means of equal frames along the last axis (R §9.2); shorter ones stay as they are.

    >>> frame_means(np.array([[1.0, 3.0, 5.0, 5.0]], np.float32), 2).tolist()
    [[2.0, 5.0]]
    """
    days = series.shape[-1]
    if days <= frames:
        return series
    edges = np.linspace(0, days, frames + 1).astype(np.int64)
    means: Float32s = (np.add.reduceat(series, edges[:-1], axis=-1) / np.diff(edges)).astype(np.float32)
    return means


def lagged_correlations(left: Float32s, right: Float32s, a: Ints, b: Ints, lags: int) -> Float32s:
    """Pair by lag: correlations of `left[a]` with `right[b]`, both made by `normalized`, at lags 0 to `lags`."""
    days = left.shape[1]
    found = np.zeros((len(a), lags + 1), np.float32)
    step = max(1, _BATCH // max(days, 1))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        here, there = left[a[part]], right[b[part]]
        for lag in range(min(lags, days - 1) + 1):
            found[part, lag] = np.einsum("pd,pd->p", here[:, lag:], there[:, : days - lag])
    return found


def top_correlated(left: Float32s, right: Float32s, k: int, lags: int) -> Int32s:
    """Page by k: the pages whose series correlate best with each page's, at the best lag of each pair.

    A page has one series, or several channels compared in parallel (page by channel by day). `left` holds the pages
    that look for others, `right` the same pages as candidates. Costs one matrix product per lag and batch.
    """
    left, right = (x.reshape(len(x), -1, x.shape[-1]) for x in (left, right))
    pages, _, days = left.shape
    k = min(k, pages - 1)
    chosen = np.zeros((pages, max(k, 0)), np.int32)
    if k < 1:
        return chosen
    rows = max(1, _BATCH // pages)
    shifted = [right[:, :, : days - lag].reshape(pages, -1).T for lag in range(min(lags, days - 1) + 1)]
    for start in range(0, pages, rows):
        part = slice(start, min(start + rows, pages))
        best_lag: Float32s | None = None
        for lag, other in enumerate(shifted):
            product = left[part, :, lag:].reshape(part.stop - start, -1) @ other
            best_lag = product if best_lag is None else np.maximum(best_lag, product, out=best_lag)
        assert best_lag is not None
        best_lag[np.arange(part.stop - start), np.arange(start, part.stop)] = -np.inf
        top = np.argpartition(best_lag, pages - k, axis=1)[:, pages - k :]
        order = np.argsort(-np.take_along_axis(best_lag, top, axis=1), axis=1, kind="stable")
        chosen[part] = np.take_along_axis(top, order, axis=1)
    return chosen


class RunningCorrelation:
    """Correlations of given pairs of series at all lags, updated day by day without the old days (spec L5).

    >>> tracker = RunningCorrelation(2, np.array([0]), np.array([1]), lags=1)
    >>> for values in ([0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]):
    ...     tracker.add(np.array(values))
    >>> tracker.correlations().round(3).tolist()
    [[-0.577, 0.722]]
    """

    def __init__(self, series: int, a: Ints, b: Ints, lags: int) -> None:
        self.a, self.b, self.lags = a, b, lags
        self.days = 0
        self._first = np.zeros((series, lags))  # the first `lags` values of each series
        self._last = np.zeros((series, lags + 1))  # the newest first
        self._sum = np.zeros(series)
        self._square = np.zeros(series)
        self._product = np.zeros((len(a), lags + 1))

    def add(self, values: NDArray[np.floating]) -> None:
        """Add the newest value of every series."""
        if self.days < self.lags:
            self._first[:, self.days] = values
        self._last = np.concatenate((np.asarray(values, np.float64)[:, None], self._last[:, :-1]), axis=1)
        self._sum += values
        self._square += np.asarray(values, np.float64) ** 2
        self._product += values[self.a][:, None] * self._last[self.b]
        self.days += 1

    def correlations(self) -> Floats:
        """Pair by lag: the same as `lagged_correlations` of all days so far; 0 for a constant series."""
        n = self.days
        if not n:
            return np.zeros((len(self.a), self.lags + 1))
        mean = self._sum / n
        spread = np.sqrt(np.maximum(self._square / n - mean**2, 0.0))
        spread[spread <= _CONSTANT * np.maximum(np.abs(mean), 1.0) * np.sqrt(n)] = 0.0
        # At a lag, the first `lag` days of a and the last `lag` days of b have no partner.
        without_first = self._sum[:, None] - np.pad(np.cumsum(self._first, axis=1), ((0, 0), (1, 0)))
        without_last = self._sum[:, None] - np.pad(np.cumsum(self._last[:, :-1], axis=1), ((0, 0), (1, 0)))
        pairs = np.maximum(n - np.arange(self.lags + 1), 0)
        mean_a, mean_b = mean[self.a][:, None], mean[self.b][:, None]
        covariance = (
            self._product - mean_b * without_first[self.a] - mean_a * without_last[self.b] + pairs * mean_a * mean_b
        )
        scale = n * (spread[self.a] * spread[self.b])[:, None]
        covariance = np.where(pairs > 0, covariance, 0.0)
        found: Floats = np.divide(covariance, scale, out=np.zeros(covariance.shape), where=scale > 0)
        return found
