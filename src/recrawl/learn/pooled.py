"""`pooled`: one model for all pages, gradient-boosted trees over the columns of `pooled_features` and any further ones.

    model = fit(features, labels, when, baseline, rng)
    model.probability(features)

A page's own history is short; but pages are alike in how the past foretells the future, and that is learned from all
of them together. How many trees there are is decided on stretches of time that a first fit does not see; there too the
scores are calibrated, together with the page's own rate (`baseline`): where the trees found little, more of that rate
is left, and where rows are few there is nothing else. Then all rows grow the trees again.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.learn.pooled_trees import Trees

Floats = NDArray[np.float32]
Column = NDArray[np.float64]

MOST_TREES = 80
_LEARNING_RATE = 0.1
MOST_ROWS = 1_000_000
"""More rows than this are not learned from."""
_LEAVES = 12
_DEEPEST = 6
_BINS = 63
_STRETCHES, _EVERY = 20, 5
_TRIAL = 15_000
"""Rows by which the number of trees and the calibration are decided."""
_RARE = 100
"""With fewer rows of the rarer kind there are no trees: the page's own rate is all."""
_RIDGE = 4.0
"""How strongly calibration is held to "leave the scores as they are", in rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """A fitted model. Its arrays can be kept and read again."""

    trees: Trees
    mix: Column
    """What the log-odds are made of: so much of the score, so much of the own rate's log-odds, a constant."""
    baseline: int
    """The column of the page's own rate."""

    def probability(self, features: Floats) -> Column:
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


def fit(features: Floats, labels: NDArray[np.bool_], when: Column, baseline: int, rng: np.random.Generator) -> Pooled:
    """Learn from rows; `when` orders them in time. Rows of one kind only, or few, leave the page's own rate.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.random((3000, 2), np.float32)
    >>> model = fit(rows, rows[:, 1] > 0.5, np.arange(3000.0), 0, rng)
    >>> model.probability(np.array([[0.5, 0.1], [0.5, 0.9]], np.float32)).round(1).tolist()
    [0.0, 1.0]
    """
    seed = int(rng.integers(2**31))
    if len(labels) > MOST_ROWS:
        some = np.sort(rng.choice(len(labels), MOST_ROWS, replace=False))
        features, labels, when = features[some], labels[some], when[some]
    held = _held(when)
    late, early = _some(held, rng), _some(~held, rng)
    own = log_odds(features[:, baseline].astype(np.float64))
    if _rarer(labels) < _RARE or not min(_rarer(labels[late]), _rarer(labels[early])):
        return Pooled(Trees.none(0.0), np.array([0.0, 1.0, 0.0]), baseline)
    trial = _grown(features[early], labels[early], MOST_TREES, seed)
    stages = trial.stages(features[late])
    loss = _losses(stages, labels[late])
    many = int(np.argmin(loss))
    mix = calibrated(np.column_stack((stages[:, many], own[late])), labels[late])
    trees = _grown(features, labels, many, seed) if many else trial.first(0)
    return Pooled(trees, mix, baseline)


def _some(rows: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """The places of these rows, or of so many of them as a trial needs."""
    places = np.flatnonzero(rows)
    return places if len(places) <= _TRIAL else np.sort(rng.choice(places, _TRIAL, replace=False))


def _held(when: Column) -> NDArray[np.bool_]:
    """Rows to judge by: every fifth stretch of time. Not the newest rows alone: one upheaval would decide it all."""
    rank = np.argsort(np.argsort(when, kind="stable"), kind="stable")
    held: NDArray[np.bool_] = (rank * _STRETCHES // max(1, len(when))) % _EVERY == _EVERY // 2
    return held


def _rarer(labels: NDArray[np.bool_]) -> int:
    """How many rows are of the rarer kind."""
    ones = int(labels.sum())
    return min(ones, len(labels) - ones)


def _grown(features: Floats, labels: NDArray[np.bool_], trees: int, seed: int) -> Trees:
    """Trees from scikit-learn; columns without two different values are kept from it, for it cannot bin them."""
    low, high = _extremes(features)
    columns = np.flatnonzero(low < high)
    if not len(columns):
        return Trees.none(float(log_odds(np.array([labels.mean()]))[0]))
    # Both are slow to load, and needed only where a model is fitted. Several threads wait for each other more than
    # they help, most of all when others use the cores.
    ensemble = importlib.import_module("sklearn.ensemble")
    limits = importlib.import_module("threadpoolctl").threadpool_limits
    model = ensemble.HistGradientBoostingClassifier(
        max_iter=trees,
        learning_rate=_LEARNING_RATE,
        max_leaf_nodes=_LEAVES,
        max_depth=_DEEPEST,
        min_samples_leaf=40,
        l2_regularization=30.0,
        max_bins=_BINS,
        early_stopping=False,
        random_state=seed,
    )
    with limits(limits=1):
        model.fit(features[:, columns], labels)
    return Trees.grown(model, columns)


def _extremes(features: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest value of each column; a column without any has them the wrong way round."""
    gaps = np.isnan(features)
    return np.where(gaps, np.inf, features).min(axis=0), np.where(gaps, -np.inf, features).max(axis=0)


def _losses(stages: Column, labels: NDArray[np.bool_]) -> Column:
    """The mean log-loss of each column of scores."""
    return np.asarray(np.logaddexp(0.0, np.where(labels[:, None], -stages, stages)).mean(axis=0))


def calibrated(scores: Column, labels: NDArray[np.bool_]) -> Column:
    """Weights of the columns of scores, and a constant, that make the likeliest log-odds (Platt's way, two inputs).

    Held to (1, 0, ..., 0): few rows change little.
    """
    design = np.column_stack((scores, np.ones(len(scores))))
    first = np.zeros(design.shape[1])
    first[0] = 1.0
    weights = first.copy()
    for _ in range(25):
        chance = sigmoid(design @ weights)
        slope = design.T @ (chance - labels) + _RIDGE * (weights - first)
        bend = (design * (chance * (1.0 - chance))[:, None]).T @ design + _RIDGE * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        weights -= np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    return weights


def log_odds(chance: Column) -> Column:
    """Of a probability; what is not a number counts as one half, and nothing is certain."""
    kept = np.clip(np.nan_to_num(chance, nan=0.5), 1e-3, 1.0 - 1e-3)
    return np.asarray(np.log(kept / (1.0 - kept)))


def sigmoid(score: Column) -> Column:
    """The probability of log-odds."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * np.clip(score, -30.0, 30.0))))
