"""Boosted trees as plain arrays, stored in a policy's memory and read back by any process without unpickling.

scikit-learn grows them as one table of nodes per tree. Here the tables are concatenated, and a row descends all trees
at once. It takes the same branches and adds in the same order as scikit-learn, so both give bit-identical scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Float32s, Floats, Int32s, Ints

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
