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

from recrawl.columns import Float32s, Floats, Int32s, Ints

_AT_ONCE = 50_000
"""Rows times trees."""


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Nodes of all trees; a leaf leads to itself."""

    root: Int32s
    """One per tree: its first node."""
    feature: Int32s
    threshold: Floats
    left: Int32s
    """Where values up to the threshold go."""
    right: Int32s
    missing: Int32s
    """Where a value that is not a number goes."""
    value: Floats
    """Of a leaf: what the tree adds."""
    start: Floats
    """One value: what all pages begin with."""
    depth: Int32s
    """One per tree: steps from its root to its deepest leaf."""

    @classmethod
    def none(cls, start: float) -> Self:
        """No tree at all: everything has the same score."""
        whole, real = np.zeros(0, np.int32), np.zeros(0)
        return cls(whole, whole, real, whole, whole, whole, real, np.array([start]), whole)

    @classmethod
    def grown(cls, model: Any, columns: Ints) -> Self:
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

    def scores(self, features: Float32s) -> Floats:
        """Log-odds of every row."""
        score = np.empty(len(features))
        for part in self._parts(features):
            score[part] = self._stages(features[part])[:, -1]
        return score

    def stages(self, features: Float32s) -> Floats:
        """Row by tree: the score after so many trees; the first column is after none."""
        score = np.empty((len(features), len(self) + 1))
        for part in self._parts(features):
            score[part] = self._stages(features[part])
        return score

    def _parts(self, features: Float32s) -> list[slice]:
        """Rows that go down together: so many that what they need stays in the cache."""
        many = max(1, _AT_ONCE // max(1, len(self)))
        return [slice(begin, begin + many) for begin in range(0, len(features), many)]

    def _stages(self, features: Float32s) -> Floats:
        """All rows go down all trees at once; a sum from the left to the right is the one that scikit-learn makes."""
        width = features.shape[1]
        flat = np.ascontiguousarray(features).reshape(-1)
        rows = (np.arange(len(features), dtype=np.int64) * width)[:, None]
        gap = np.isnan(flat).any()
        node = np.broadcast_to(self.root, (len(features), len(self)))
        for _ in range(int(self.depth.max(initial=0))):
            value = flat[rows + self.feature[node]]
            step = np.where(value <= self.threshold[node], self.left[node], self.right[node])
            node = np.where(np.isnan(value), self.missing[node], step) if gap else step
        score = np.empty((len(features), len(self) + 1))
        score[:, 0], score[:, 1:] = self.start[0], self.value[node]
        return np.cumsum(score, axis=1)

    # -- as arrays ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it holds, by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def restored(cls, kept: Mapping[str, NDArray[Any]]) -> Self:
        """From what `arrays` gave."""
        return cls(**{name: kept[name] for name in cls.__slots__})
