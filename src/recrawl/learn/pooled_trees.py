"""Boosted trees as plain arrays: kept in a policy's memory, read again by any process, without unpickling anything.

scikit-learn grows them; what it makes is one table of nodes a tree. Here they stand one after another, and a page
walks down all of them. The walk takes the same branches and adds up in the same order as scikit-learn's own does, so
that both say the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Nodes of all trees; a leaf leads to itself."""

    root: NDArray[np.int32]
    """One per tree: its first node."""
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    """Where values up to the threshold go."""
    right: NDArray[np.int32]
    missing: NDArray[np.int32]
    """Where a value that is not a number goes."""
    value: NDArray[np.float64]
    """Of a leaf: what the tree adds."""
    start: NDArray[np.float64]
    """One value: what all pages begin with."""
    depth: NDArray[np.int32]
    """One per tree: steps from its root to its deepest leaf."""

    @classmethod
    def none(cls, start: float) -> Self:
        """No tree at all: everything has the same score."""
        whole, real = np.zeros(0, np.int32), np.zeros(0)
        return cls(whole, whole, real, whole, whole, whole, real, np.array([start]), whole)

    @classmethod
    def grown(cls, model: Any, columns: NDArray[np.int64]) -> Self:
        """Those of a fitted HistGradientBoostingClassifier of two classes; `columns` it was shown."""
        tables = [stage[0].nodes for stage in model._predictors]
        start = float(np.ravel(model._baseline_prediction)[0])
        if not tables:
            return cls.none(start)
        root = np.cumsum([0, *(len(table) for table in tables[:-1])]).astype(np.int32)
        nodes = np.concatenate(tables)
        shift = np.repeat(root, [len(table) for table in tables])
        here = np.arange(len(nodes), dtype=np.int32)
        leaf = nodes["is_leaf"].astype(bool)
        left = np.where(leaf, here, nodes["left"] + shift).astype(np.int32)
        right = np.where(leaf, here, nodes["right"] + shift).astype(np.int32)
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

    def first(self, many: int) -> Trees:
        """Only the first so many of them."""
        if many >= len(self):
            return self
        end = int(self.root[many])
        per_node = ("feature", "threshold", "left", "right", "missing", "value")
        cut = {name: getattr(self, name)[:end] for name in per_node}
        return Trees(root=self.root[:many], depth=self.depth[:many], start=self.start, **cut)

    def scores(self, features: Floats) -> NDArray[np.float64]:
        """Log-odds of every row."""
        score = np.full(len(features), self.start[0])
        for leaf in self._leaves(features):
            score += self.value[leaf]
        return score

    def stages(self, features: Floats) -> NDArray[np.float64]:
        """Row by tree: the score after so many trees; the first column is after none."""
        steps = [np.full(len(features), self.start[0]), *(self.value[leaf] for leaf in self._leaves(features))]
        return np.cumsum(np.column_stack(steps), axis=1)

    def _leaves(self, features: Floats) -> Any:
        """For each tree, the leaf that every row comes to."""
        width = features.shape[1]
        flat = np.ascontiguousarray(features).reshape(-1)
        rows = np.arange(len(features), dtype=np.int64) * width
        gap = np.isnan(flat).any()
        for root, depth in zip(self.root, self.depth, strict=True):
            node = np.full(len(features), root, np.int32)
            for _ in range(int(depth)):
                value = flat[rows + self.feature[node]]
                step = np.where(value <= self.threshold[node], self.left[node], self.right[node])
                node = np.where(np.isnan(value), self.missing[node], step) if gap else step
            yield node

    # -- as arrays ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it holds, by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def restored(cls, kept: Mapping[str, NDArray[Any]]) -> Self:
        """From what `arrays` gave."""
        return cls(**{name: kept[name] for name in cls.__slots__})
