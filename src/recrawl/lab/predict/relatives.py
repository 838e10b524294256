"""Pages that move before others do: relatives by their changes alone, for the `pooled` predictor.

A page's *surprise* on a day is what came beyond its own rate on such a weekday: else all that keep the same weekly
rhythm would be relatives of each other. Page A is a relative of B at a lag if A's surprises foretell B's. Among many
pages some correlate by chance; only what exceeds that counts, so most pages have no relative at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from recrawl.columns import Float32s, Floats, Ints

LAGS = (1, 2)
RELATIVES = tuple(f"relatives.{what}{lag}" for lag in LAGS for what in ("day", "weight"))
"""The columns that relatives make."""
CANDIDATES = 4096
"""Pages among which relatives are looked for, drawn by chance where there are more."""
_MOST = 10
_AT_ONCE = 1024
_LEAST_DAYS = 14


@dataclass(slots=True)
class Relatives:
    """Who moved a day, or two, before whom, more than chance would make it; by lag."""

    weights: list[sparse.csr_array] = field(default_factory=list)
    """One per lag; none while there are too few days."""
    totals: list[Floats] = field(default_factory=list)
    """One per lag: how much weight each page's relatives have."""

    @classmethod
    def found(cls, surprise: Float32s, rng: np.random.Generator) -> Relatives:
        """From page by day: what came beyond what was usual, 0 where nothing is known."""
        pages, days = surprise.shape
        some = np.arange(pages) if pages <= CANDIDATES else np.sort(rng.choice(pages, CANDIDATES, replace=False))
        lags = LAGS if days >= _LEAST_DAYS else ()
        weights = [_related(surprise[:, lag:], surprise[some, : days - lag], some) for lag in lags]
        return cls(weights, [np.asarray(weight.sum(axis=1)).ravel() for weight in weights])

    def columns(self, surprises: list[Float32s]) -> Floats:
        """Page by column: what the relatives did, by lag: the weighted mean surprise, and how much weight it has.

        Surprises are those of the last days, the newest first.
        """
        found = []
        for weight, total, surprise in zip(self.weights, self.totals, surprises, strict=True):
            found += [np.where(total > 0, (weight @ surprise) / np.maximum(total, 1e-9), np.nan), total]
        return np.column_stack(found)


def _related(target: Float32s, source: Float32s, pages: Ints) -> sparse.csr_array:
    """Row by page: correlations, the highest few, as far as they exceed what the best of so many does by chance."""
    left, right = _unit(target), _unit(source)
    limit = np.sqrt(2.0 * np.log(max(2, len(source))) / target.shape[1]) + 0.05
    found: list[tuple[Ints, Ints, Float32s]] = []
    for begin in range(0, len(left), _AT_ONCE):
        likeness = left[begin : begin + _AT_ONCE] @ right.T
        row, column = np.nonzero(likeness > limit)
        found.append((row + begin, pages[column], likeness[row, column]))
    row, other, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    row, other, weight = _highest(*(column[row != other] for column in (row, other, weight)))
    return sparse.csr_array((weight, (row, other)), shape=(len(left), len(left)))


def _highest(row: Ints, other: Ints, weight: Float32s) -> tuple[Ints, Ints, Float32s]:
    """Of each row, which stand together, the few of the highest weight."""
    order = np.lexsort((-weight, row))
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = order[rank < _MOST]
    return row[kept], other[kept], weight[kept]


def _unit(series: Float32s) -> Float32s:
    centred = series - series.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return np.asarray(centred / np.maximum(length, 1e-6), np.float32)
