"""`pooled`: one model for all pages, gradient-boosted trees over the columns of `pooled_features` and any further ones.

    model = fit(features, labels, when, baseline, rng)
    model.probability(features)

A page's own history is short; but pages are alike in how the past foretells the future, and that is learned from all
of them together. Most rows tell next to nothing, since the page's own rate (`baseline`) already knew what would come:
of them a few are taken, each counting for those that are not. How many trees there are is decided on stretches of time
that the trees did not grow from; there too the scores are calibrated, together with the page's own rate: where the
trees found little, more of that rate is left, and where rows are few there is nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Ints
from recrawl.learn.pooled.trees import Trees

MOST_TREES = 15
_LEARNING_RATE = 0.45
MOST_ROWS = 1_000_000
"""More rows than this are not learned from."""
_LEAST_ROWS = 2_000
"""At least about so many are taken, if there are as many."""
_LEAVES = 8
_SMALLEST = 40
_SHRINK = 30.0
_DEEPEST = 6
_BINS = 31
_BINNED = 5_000
"""Rows that decide where bins end."""
_STRETCHES, _EVERY = 20, 5
_CERTAIN = 0.03
"""The share that is taken of rows whose outcome is as good as certain; of those with even chances all are."""
_RARE = 100
"""With fewer rows of the rarer kind there are no trees: the page's own rate is all."""
_RIDGE = 4.0
"""How strongly calibration is held to "leave the scores as they are", in rows."""


@dataclass(frozen=True, slots=True, eq=False)
class PooledModel:
    """A fitted model. Its arrays can be kept and read again."""

    trees: Trees
    mix: Floats
    """What the log-odds are made of: so much of the score, so much of the own rate's log-odds, a constant."""
    baseline: int
    """The column of the page's own rate."""

    def probability(self, features: Float32s) -> Floats:
        """How likely each row's page has changed; always a number, never 0 or 1."""
        own = log_odds(features[:, self.baseline].astype(np.float64))
        score = self.trees.scores(features) if self.mix[0] else np.zeros(len(features))
        return sigmoid(self.mix[0] * score + self.mix[1] * own + self.mix[2])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it holds, by name."""
        return {"mix": self.mix, "baseline": np.array(self.baseline)} | self.trees.arrays()

    @classmethod
    def restored(cls, kept: Mapping[str, NDArray[Any]]) -> Self:
        """From what `arrays` gave."""
        return cls(Trees.restored(kept), kept["mix"], int(kept["baseline"]))


def fit(features: Float32s, labels: Flags, when: Floats, baseline: int, rng: np.random.Generator) -> PooledModel:
    """Learn from rows; `when` orders them in time. Rows of one kind only, or few, leave the page's own rate.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.random((3000, 2), np.float32)
    >>> model = fit(rows, rows[:, 1] > 0.5, np.arange(3000.0), 0, rng)
    >>> model.probability(np.array([[0.5, 0.1], [0.5, 0.9]], np.float32)).round(1).tolist()
    [0.0, 1.0]
    """
    seed = int(rng.integers(2**31))
    alone = PooledModel(Trees.none(0.0), np.array([0.0, 1.0, 0.0]), baseline)
    if _rarer(labels) < _RARE:
        return alone
    some, counts = _telling(features[:, baseline], rng)
    features, labels = features[some], labels[some]
    held = _held(when[some])
    if not min(_rarer(labels[held]), _rarer(labels[~held])):
        return alone
    with one_thread():
        trees = _grown(features[~held], labels[~held], counts[~held], seed)
        stages = trees.stages(features[held])
        many = int(np.argmin(_losses(stages, labels[held], counts[held])))
        own = log_odds(features[held, baseline].astype(np.float64))
        mix = calibrated(np.column_stack((stages[:, many], own)), labels[held], counts[held])
    return PooledModel(trees.first(many), mix, baseline)


def one_thread() -> AbstractContextManager[Any]:
    """While it lasts, one thread computes: several wait for each other more than they help where matrices are small."""
    held: AbstractContextManager[Any] = _pools().limit(limits=1)
    return held


@cache
def _pools() -> Any:
    """The threads of the libraries that fit. These are slow to load, and needed only where a model is fitted."""
    import sklearn.ensemble  # noqa: F401  # lazy: loads slowly, and brings the thread pools
    from threadpoolctl import ThreadpoolController  # lazy: used with scikit-learn alone

    return ThreadpoolController()


def _telling(rate: Float32s, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Rows to learn from, and for how many each of them counts: the less certain the outcome was, the more are taken.

    >>> rows, counts = _telling(np.repeat(np.array([0.5, 1.0], np.float32), 10_000), np.random.default_rng(1))
    >>> int((rows < 10_000).sum()), counts[[0, -1]].round(1).tolist()
    (10000, [1.0, 33.3])
    """
    chance = np.clip(np.nan_to_num(rate.astype(np.float64), nan=0.5), 0.0, 1.0)
    share = np.maximum(4.0 * chance * (1.0 - chance), _CERTAIN)
    expected = share.sum()
    share = np.minimum(share * np.clip(1.0, _LEAST_ROWS / expected, MOST_ROWS / expected), 1.0)
    rows = np.flatnonzero(rng.random(len(share)) < share)
    return rows, 1.0 / share[rows]


def _held(when: Floats) -> Flags:
    """Rows to judge by: every fifth stretch of time. Not the newest rows alone: one upheaval would decide it all."""
    rank = np.argsort(np.argsort(when, kind="stable"), kind="stable")
    held: Flags = (rank * _STRETCHES // max(1, len(when))) % _EVERY == _EVERY // 2
    return held


def _rarer(labels: Flags) -> int:
    """How many rows are of the rarer kind."""
    ones = int(labels.sum())
    return min(ones, len(labels) - ones)


def _grown(features: Float32s, labels: Flags, counts: Floats, seed: int) -> Trees:
    """Trees from scikit-learn, which is shown the numbers of bins: to bin rows that count differently takes it long.

    Columns without two different values are kept from it, for it cannot bin them.
    """
    edges = _edges(features)
    codes = np.empty(features.shape[::-1], np.float32)
    for code, limits, column in zip(codes, edges, np.ascontiguousarray(features.T), strict=True):
        code[:] = np.searchsorted(limits, column)
    codes = codes.T
    codes[np.isnan(features)] = np.nan
    columns = np.flatnonzero(np.fmin.reduce(codes, axis=0) < np.fmax.reduce(codes, axis=0))
    if not len(columns):
        return Trees.none(float(log_odds(np.array([np.average(labels, weights=counts)]))[0]))
    from sklearn import ensemble  # lazy: loads slowly

    model = ensemble.HistGradientBoostingClassifier(
        max_iter=MOST_TREES,
        learning_rate=_LEARNING_RATE,
        max_leaf_nodes=_LEAVES,
        max_depth=_DEEPEST,
        min_samples_leaf=_SMALLEST,
        l2_regularization=_SHRINK,
        max_bins=_BINS,
        early_stopping=False,
        random_state=seed,
    )
    model.fit(codes[:, columns], labels, sample_weight=counts)
    trees = Trees.grown(model, columns)
    last = np.minimum(trees.threshold, _BINS - 1).astype(np.int64)
    return replace(trees, threshold=edges[trees.feature, last].astype(np.float64))


def _edges(features: Float32s) -> Float32s:
    """Column by bin: the highest value that is in it. About as many rows are in each; the last has no end.

    >>> _edges(np.arange(310, dtype=np.float32)[:, None])[0, [0, 1, -1]].tolist()
    [9.0, 19.0, inf]
    """
    some = np.sort(features[:: max(1, len(features) // _BINNED)].T, axis=1)  # what is not a number comes last
    known = np.count_nonzero(~np.isnan(some), axis=1)
    rank = known[:, None] * np.arange(1, _BINS) // _BINS - 1
    edges = np.full((len(some), _BINS), np.inf, np.float32)
    edges[:, :-1] = np.where(known[:, None] > 0, np.take_along_axis(some, np.maximum(rank, 0), axis=1), np.inf)
    return edges


def _losses(stages: Floats, labels: Flags, counts: Floats) -> Floats:
    """The mean log-loss of each column of scores."""
    return np.asarray(counts @ np.logaddexp(0.0, np.where(labels[:, None], -stages, stages)) / counts.sum())


def calibrated(scores: Floats, labels: Flags, counts: Floats) -> Floats:
    """Weights of the columns of scores, and a constant, that make the likeliest log-odds (Platt's way, two inputs).

    Held to (1, 0, ..., 0): few rows change little.
    """
    design = np.column_stack((scores, np.ones(len(scores))))
    first = np.zeros(design.shape[1])
    first[0] = 1.0
    weights = first.copy()
    for _ in range(25):
        chance = sigmoid(design @ weights)
        slope = design.T @ (counts * (chance - labels)) + _RIDGE * (weights - first)
        bend = (design * (counts * chance * (1.0 - chance))[:, None]).T @ design + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights -= np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    return weights


def log_odds(chance: Floats) -> Floats:
    """Of a probability; what is not a number counts as one half, and nothing is certain."""
    kept = np.clip(np.nan_to_num(chance, nan=0.5), 1e-3, 1.0 - 1e-3)
    return np.asarray(np.log(kept / (1.0 - kept)))


def sigmoid(score: Floats) -> Floats:
    """The probability of log-odds."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * np.clip(score, -30.0, 30.0))))
