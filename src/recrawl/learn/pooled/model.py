"""The `pooled` model: one set of gradient-boosted trees for all pages, over the columns of `features` and others.

    model = fit(features, labels, when, baseline, rng)
    model.probability(features)

A page's own history is short, but pages are similar in how their past predicts their future, and that is learned from
all of them together. In most rows the page's own rate (`baseline`) is nearly certain, so only a weighted sample of
those is used. The number of trees is chosen on held-out periods of time. There the scores are also calibrated together
with the page's own rate: where the trees found little, the own rate gets more weight, and with few rows it is all.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints
from recrawl.extras import sklearn, threadpoolctl

# --------------------------------------------------------------------------------------------------------------------
# Boosted trees as plain arrays, stored in a policy's memory and read back by any process without unpickling.
#
# scikit-learn grows them as one table of nodes per tree. Here the tables are concatenated, and a row descends all trees
# at once. It takes the same branches and adds in the same order as scikit-learn, so both give bit-identical scores.


_BATCH = 50_000
"""Rows by trees processed at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The nodes of all trees; a leaf points to itself."""

    root: Int32s
    """One per tree: its first node."""
    feature: Int32s
    threshold: Floats
    left: Int32s
    """The next node for values up to the threshold."""
    right: Int32s
    missing: Int32s
    """The next node for NaN."""
    value: Floats
    """Of a leaf: what the tree adds to the score."""
    start: Floats
    """One value: the initial score."""
    depth: Int32s
    """One per tree: steps from the root to the deepest leaf."""

    @classmethod
    def none(cls, start: float) -> Self:
        """No trees: every row gets the same score."""
        ints, floats = np.zeros(0, np.int32), np.zeros(0)
        return cls(ints, ints, floats, ints, ints, ints, floats, np.array([start]), ints)

    @classmethod
    def from_sklearn(cls, model: Any, columns: Ints) -> Self:
        """The trees of a fitted binary HistGradientBoostingClassifier; `columns` are the columns it was fitted on."""
        tables = [stage[0].nodes for stage in model._predictors]
        start = float(np.ravel(model._baseline_prediction)[0])
        if not tables:
            return cls.none(start)
        root = np.cumsum([0, *(len(table) for table in tables[:-1])]).astype(np.int32)
        nodes = np.concatenate(tables)
        shift = np.repeat(root, [len(table) for table in tables])
        itself = np.arange(len(nodes), dtype=np.int32)
        leaf = nodes["is_leaf"].astype(bool)
        left = np.where(leaf, itself, nodes["left"] + shift).astype(np.int32)
        right = np.where(leaf, itself, nodes["right"] + shift).astype(np.int32)
        return cls(
            root=root,
            feature=np.where(leaf, columns[0], columns[nodes["feature_idx"]]).astype(np.int32),
            threshold=np.where(leaf, 0.0, nodes["num_threshold"]),
            left=left,
            right=right,
            missing=np.where(nodes["missing_go_to_left"].astype(bool), left, right).astype(np.int32),
            value=nodes["value"].astype(np.float64),
            start=np.array([start]),
            depth=np.array([table["depth"].max() for table in tables], np.int32),
        )

    def __len__(self) -> int:
        return len(self.root)

    def first(self, count: int) -> Trees:
        """The first `count` trees only."""
        if count >= len(self):
            return self
        end = int(self.root[count])
        per_node = ("feature", "threshold", "left", "right", "missing", "value")
        nodes = {name: getattr(self, name)[:end] for name in per_node}
        return Trees(root=self.root[:count], depth=self.depth[:count], start=self.start, **nodes)

    def scores(self, features: Float32s) -> Floats:
        """The log-odds of every row."""
        score = np.empty(len(features))
        for part in self._parts(features):
            score[part] = self._stages(features[part])[:, -1]
        return score

    def stages(self, features: Float32s) -> Floats:
        """Row by tree: the score after each number of trees; the first column is after none."""
        score = np.empty((len(features), len(self) + 1))
        for part in self._parts(features):
            score[part] = self._stages(features[part])
        return score

    def _parts(self, features: Float32s) -> list[slice]:
        """Batches of rows small enough for the processor's cache."""
        count = max(1, _BATCH // max(1, len(self)))
        return [slice(begin, begin + count) for begin in range(0, len(features), count)]

    def _stages(self, features: Float32s) -> Floats:
        """Descend all trees with all rows at once; the cumulative sum adds in scikit-learn's order."""
        width = features.shape[1]
        flat = np.ascontiguousarray(features).reshape(-1)
        rows = (np.arange(len(features), dtype=np.int64) * width)[:, None]
        has_nan = np.isnan(flat).any()
        node = np.broadcast_to(self.root, (len(features), len(self)))
        for _ in range(int(self.depth.max(initial=0))):
            value = flat[rows + self.feature[node]]
            step = np.where(value <= self.threshold[node], self.left[node], self.right[node])
            node = np.where(np.isnan(value), self.missing[node], step) if has_nan else step
        score = np.empty((len(features), len(self) + 1))
        score[:, 0], score[:, 1:] = self.start[0], self.value[node]
        return np.cumsum(score, axis=1)

    # -- storage --------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Trees from the result of `arrays`."""
        return cls(**{name: arrays[name] for name in cls.__slots__})


# --------------------------------------------------------------------------------------------------------------------


MAX_TREES = 15
_LEARNING_RATE = 0.45
MAX_ROWS = 1_000_000
"""Rows beyond this number are not used."""
_MIN_ROWS = 2_000
"""Sampling takes at least about this many rows, if there are as many."""
_MAX_LEAVES = 8
_MIN_LEAF_ROWS = 40
_L2 = 30.0
_MAX_DEPTH = 6
_BINS = 31
_BIN_SAMPLE = 5_000
"""Rows from which the bin edges are computed."""
_PERIODS, _EVERY = 20, 5
_MIN_SHARE = 0.03
"""Sampling share of rows whose outcome is nearly certain; rows with even odds are all used."""
_MIN_MINORITY = 100
"""With fewer rows of the rarer class there are no trees, only the page's own rate."""
_RIDGE = 4.0
"""Strength, in rows, of the prior that calibration leaves the scores unchanged."""


@dataclass(frozen=True, slots=True, eq=False)
class PooledModel:
    """A fitted model, made of arrays that can be stored and restored."""

    trees: Trees
    mix: Floats
    """Weights of the tree score and of the own rate's log-odds, and a constant; their sum is the log-odds."""
    baseline: int
    """The column of the page's own rate."""

    def probability(self, features: Float32s) -> Floats:
        """The change probability of each row; never NaN, 0 or 1."""
        own = log_odds(features[:, self.baseline].astype(np.float64))
        score = self.trees.scores(features) if self.mix[0] else np.zeros(len(features))
        return sigmoid(self.mix[0] * score + self.mix[1] * own + self.mix[2])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by name."""
        return {"mix": self.mix, "baseline": np.array(self.baseline)} | self.trees.arrays()

    @classmethod
    def restored(cls, clipped: Mapping[str, NDArray[Any]]) -> Self:
        """A model from the result of `arrays`."""
        return cls(Trees.restored(clipped), clipped["mix"], int(clipped["baseline"]))


def fit(features: Float32s, labels: Flags, when: Floats, baseline: int, rng: np.random.Generator) -> PooledModel:
    """Fit a model; `when` orders the rows in time. With few rows, or one class only, it predicts the page's own rate.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.random((3000, 2), np.float32)
    >>> model = fit(rows, rows[:, 1] > 0.5, np.arange(3000.0), 0, rng)
    >>> model.probability(np.array([[0.5, 0.1], [0.5, 0.9]], np.float32)).round(1).tolist()
    [0.0, 1.0]
    """
    seed = int(rng.integers(2**31))
    own_rate = PooledModel(Trees.none(0.0), np.array([0.0, 1.0, 0.0]), baseline)
    if _minority(labels) < _MIN_MINORITY:
        return own_rate
    rows, counts = _informative_rows(features[:, baseline], rng)
    features, labels = features[rows], labels[rows]
    held_out = _held_out(when[rows])
    if not min(_minority(labels[held_out]), _minority(labels[~held_out])):
        return own_rate
    with single_thread():
        trees = _grow(features[~held_out], labels[~held_out], counts[~held_out], seed)
        stages = trees.stages(features[held_out])
        best = int(np.argmin(_log_losses(stages, labels[held_out], counts[held_out])))
        own = log_odds(features[held_out, baseline].astype(np.float64))
        mix = calibrated(np.column_stack((stages[:, best], own)), labels[held_out], counts[held_out])
    return PooledModel(trees.first(best), mix, baseline)


def single_thread() -> AbstractContextManager[Any]:
    """Limit numeric libraries to one thread: on small matrices several threads cost more than they gain."""
    held_out: AbstractContextManager[Any] = _thread_pools().limit(limits=1)
    return held_out


@cache
def _thread_pools() -> Any:
    """The thread pools of the libraries used for fitting; loaded only when a model is fitted."""
    _ = sklearn.ensemble.HistGradientBoostingClassifier  # loads it, and with it the thread pools
    return threadpoolctl.ThreadpoolController()


def _informative_rows(rate: Float32s, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """A sample of rows to learn from, and their weights: the less certain a row's outcome, the likelier it is taken.

    >>> rows, counts = _informative_rows(np.repeat(np.array([0.5, 1.0], np.float32), 10_000), np.random.default_rng(1))
    >>> int((rows < 10_000).sum()), counts[[0, -1]].round(1).tolist()
    (10000, [1.0, 33.3])
    """
    probability = np.clip(np.nan_to_num(rate.astype(np.float64), nan=0.5), 0.0, 1.0)
    share = np.maximum(4.0 * probability * (1.0 - probability), _MIN_SHARE)
    expected = share.sum()
    share = np.minimum(share * np.clip(1.0, _MIN_ROWS / expected, MAX_ROWS / expected), 1.0)
    rows = np.flatnonzero(rng.random(len(share)) < share)
    return rows, 1.0 / share[rows]


def _held_out(when: Floats) -> Flags:
    """Rows held out: every fifth period of time. The newest rows alone would let a single unusual event decide."""
    rank = np.argsort(np.argsort(when, kind="stable"), kind="stable")
    held_out: Flags = (rank * _PERIODS // max(1, len(when))) % _EVERY == _EVERY // 2
    return held_out


def _minority(labels: Flags) -> int:
    """The number of rows of the rarer class."""
    ones = int(labels.sum())
    return min(ones, len(labels) - ones)


def _grow(features: Float32s, labels: Flags, counts: Floats, seed: int) -> Trees:
    """Trees from scikit-learn on already binned values, since its own binning of weighted rows is slow.

    Columns without two different values are left out, since it cannot bin them.
    """
    edges = _bin_edges(features)
    binned = np.empty(features.shape[::-1], np.float32)
    for bins, limits, column in zip(binned, edges, np.ascontiguousarray(features.T), strict=True):
        bins[:] = np.searchsorted(limits, column)
    binned = binned.T
    binned[np.isnan(features)] = np.nan
    columns = np.flatnonzero(np.fmin.reduce(binned, axis=0) < np.fmax.reduce(binned, axis=0))
    if not len(columns):
        return Trees.none(float(log_odds(np.array([np.average(labels, weights=counts)]))[0]))
    model = sklearn.ensemble.HistGradientBoostingClassifier(
        max_iter=MAX_TREES,
        learning_rate=_LEARNING_RATE,
        max_leaf_nodes=_MAX_LEAVES,
        max_depth=_MAX_DEPTH,
        min_samples_leaf=_MIN_LEAF_ROWS,
        l2_regularization=_L2,
        max_bins=_BINS,
        early_stopping=False,
        random_state=seed,
    )
    model.fit(binned[:, columns], labels, sample_weight=counts)
    trees = Trees.from_sklearn(model, columns)
    last = np.minimum(trees.threshold, _BINS - 1).astype(np.int64)
    return replace(trees, threshold=edges[trees.feature, last].astype(np.float64))


def _bin_edges(features: Float32s) -> Float32s:
    """Column by bin: the highest value in the bin. Bins hold about equally many rows; the last has no upper edge.

    >>> _bin_edges(np.arange(310, dtype=np.float32)[:, None])[0, [0, 1, -1]].tolist()
    [9.0, 19.0, inf]
    """
    rows = np.sort(features[:: max(1, len(features) // _BIN_SAMPLE)].T, axis=1)  # NaN sorts last
    known = np.count_nonzero(~np.isnan(rows), axis=1)
    rank = known[:, None] * np.arange(1, _BINS) // _BINS - 1
    edges = np.full((len(rows), _BINS), np.inf, np.float32)
    edges[:, :-1] = np.where(known[:, None] > 0, np.take_along_axis(rows, np.maximum(rank, 0), axis=1), np.inf)
    return edges


def _log_losses(stages: Floats, labels: Flags, counts: Floats) -> Floats:
    """The mean log-loss of each column of scores."""
    return np.asarray(counts @ np.logaddexp(0.0, np.where(labels[:, None], -stages, stages)) / counts.sum())


def calibrated(scores: Floats, labels: Flags, counts: Floats) -> Floats:
    """Weights of the score columns and a constant that maximise the likelihood (Platt's method with two inputs).

    A ridge prior at (1, 0, ..., 0) keeps the result close to the scores when rows are few.
    """
    design = np.column_stack((scores, np.ones(len(scores))))
    prior = np.zeros(design.shape[1])
    prior[0] = 1.0
    weights = prior.copy()
    for _ in range(25):
        probability = sigmoid(design @ weights)
        gradient = design.T @ (counts * (probability - labels)) + _RIDGE * (weights - prior)
        hessian = (design * (counts * probability * (1.0 - probability))[:, None]).T @ design + _RIDGE * np.eye(
            len(weights)
        )
        step = np.linalg.solve(hessian, gradient)
        weights -= np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    return weights


def log_odds(probability: Floats) -> Floats:
    """The log-odds of a probability; NaN counts as 0.5, and probabilities are clipped to 0.001 .. 0.999."""
    clipped = np.clip(np.nan_to_num(probability, nan=0.5), 1e-3, 1.0 - 1e-3)
    return np.asarray(np.log(clipped / (1.0 - clipped)))


def sigmoid(score: Floats) -> Floats:
    """The probability of log-odds."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * np.clip(score, -30.0, 30.0))))
