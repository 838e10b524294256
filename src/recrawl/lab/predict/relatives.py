"""Relatives for the `pooled` predictor: pages whose changes precede those of others, found from changes alone.

A page's *surprise* on a day is its label minus its own rate on that weekday; without that, all pages with the same
weekly rhythm would be relatives. Page A is a relative of B at a lag if A's surprises predict B's. Among many pages some
correlate by chance; only correlations above that level count, so most pages have no relatives.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recrawl.columns import Float32s, Floats, Ints
from recrawl.extras import sparse

LAGS = (1, 2)
"""Days by which a relative may precede a page."""
RELATIVES = tuple(f"relatives.{what}{lag}" for lag in LAGS for what in ("day", "weight"))
"""The feature columns."""
MAX_CANDIDATES = 4096
"""Pages searched for relatives, a random sample where there are more."""
_MAX_RELATIVES = 10
_BATCH = 1024
_MIN_DAYS = 14


@dataclass(slots=True)
class Relatives:
    """By lag: which pages changed one or two days before which others, more often than by chance."""

    weights: list[sparse.csr_array] = field(default_factory=list)
    """One matrix per lag; none while there are too few days."""
    totals: list[Floats] = field(default_factory=list)
    """One per lag: the total weight of each page's relatives."""

    @classmethod
    def search(cls, surprise: Float32s, rng: np.random.Generator) -> Relatives:
        """Find relatives in surprises (page by day), 0 where unknown."""
        pages, days = surprise.shape
        candidates = (
            np.arange(pages) if pages <= MAX_CANDIDATES else np.sort(rng.choice(pages, MAX_CANDIDATES, replace=False))
        )
        lags = LAGS if days >= _MIN_DAYS else ()
        weights = [_correlated(surprise[:, lag:], surprise[candidates, : days - lag], candidates) for lag in lags]
        return cls(weights, [np.asarray(weight.sum(axis=1)).ravel() for weight in weights])

    def columns(self, surprises: list[Float32s]) -> Floats:
        """Page by column, by lag: the weighted mean surprise of the relatives, and their total weight.

        `surprises` are those of the last days, newest first.
        """
        columns = []
        for weight, total, surprise in zip(self.weights, self.totals, surprises, strict=True):
            columns += [np.where(total > 0, (weight @ surprise) / np.maximum(total, 1e-9), np.nan), total]
        return np.column_stack(columns)


def _correlated(target: Float32s, source: Float32s, pages: Ints) -> sparse.csr_array:
    """Row by page: the highest correlations, as far as they exceed the level expected by chance."""
    left, right = _unit(target), _unit(source)
    limit = np.sqrt(2.0 * np.log(max(2, len(source))) / target.shape[1]) + 0.05
    parts_found: list[tuple[Ints, Ints, Float32s]] = []
    for begin in range(0, len(left), _BATCH):
        correlation = left[begin : begin + _BATCH] @ right.T
        row, column = np.nonzero(correlation > limit)
        parts_found.append((row + begin, pages[column], correlation[row, column]))
    row, other, weight = (np.concatenate(parts) for parts in zip(*parts_found, strict=True))
    row, other, weight = _top(*(column[row != other] for column in (row, other, weight)))
    return sparse.csr_array((weight, (row, other)), shape=(len(left), len(left)))


def _top(row: Ints, other: Ints, weight: Float32s) -> tuple[Ints, Ints, Float32s]:
    """The entries of highest weight in each row; rows must be sorted."""
    order = np.lexsort((-weight, row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = order[rank < _MAX_RELATIVES]
    return row[kept], other[kept], weight[kept]


def _unit(series: Float32s) -> Float32s:
    centred = series - series.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(centred / np.maximum(length, 1e-6), np.float32)
