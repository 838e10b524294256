"""Repeated bisection (T §4.3): starting from one group, the least uniform group is split in two until there are k.

scikit-learn does the splitting. This module never requests more groups than there are different rows, numbers only
groups that have members, and uses one thread, since on several threads the order of additions, and so now and then a
row's group, would depend on the machine. The splits are stored as plain arrays, and further rows are assigned to groups
without scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.extras import sklearn, threadpoolctl

Rows = NDArray[np.floating]

_GRID = 128
"""Rows are rounded to 1/128; smaller differences are noise or 32-bit rounding."""
_MOST_STEPS = 50
"""Maximum steps of 2-means per bisection; most need fewer, and the last steps move few rows."""
_SLICE = 8_192
"""Rows that are compared with two centres at once."""


@dataclass(frozen=True, eq=False, slots=True)
class Bisection:
    """Groups of rows, and the splits that assign further rows to groups; built by `bisect`."""

    of: NDArray[np.int32]
    """One per row that it was made from: its group. Every group has a row."""
    centroids: Rows
    """One row per group: the mean of its rows."""
    nearest: NDArray[np.int32]
    """Row g: all groups by the distance of their centroids from g's, g itself first."""
    centres: Rows
    """One pair per cut: a row goes to the side whose centre is nearer. The first cut is of all rows."""
    below: NDArray[np.int32]
    """One pair per cut, what is on its sides: another cut, or a leaf k written as -1 - k."""
    leaf: NDArray[np.int32]
    """One per leaf: its group, or -1 where no row was left."""

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.centroids)

    def assign(self, rows: Rows) -> NDArray[np.int32]:
        """Return the groups of rows, old or new, by the splits."""
        if not len(self.below) or not len(rows):
            return np.zeros(len(rows), np.int32)
        found = self.leaf[_walked(_rounded(rows.astype(self.centroids.dtype, copy=False)), self.centres, self.below)]
        lost = found < 0
        if lost.any():  # the group was empty when the splits were made: take the nearest group with rows
            apart = ((rows[lost][:, None] - self.centroids) ** 2).sum(axis=2)
            found[lost] = apart.argmin(axis=1)
        return found


def bisect(rows: Rows, groups: int, rng: np.random.Generator) -> Bisection:
    """Split rows into a number of groups, or fewer if there are fewer different rows.

    >>> cut = bisect(np.array([[0.0], [9.0], [0.1], [9.1]]), 2, np.random.default_rng(1))
    >>> bool(cut.of[0] == cut.of[2]), bool(cut.of[1] == cut.of[3]), len(cut)
    (True, True, 2)
    >>> int(cut.assign(np.array([[8.0]]))[0]) == int(cut.of[1])
    True
    """
    rows = _rounded(rows)
    groups = min(groups, _different(rows))
    seed = int(rng.integers(2**31))
    if groups < 2:
        none: NDArray[np.int32] = np.zeros(len(rows), np.int32)
        only = _means(rows, none, 1)
        no_cut: NDArray[np.int32] = np.zeros((0, 2), np.int32)
        no_centre: Rows = np.zeros((0, 2, rows.shape[1]), rows.dtype)
        return Bisection(none, only, by_distance(only), no_centre, no_cut, np.zeros(1, np.int32))

    tree = sklearn.cluster.BisectingKMeans(groups, random_state=seed, max_iter=_MOST_STEPS)
    with threadpoolctl.threadpool_limits(1):
        tree.fit(rows)
    centres, below = _cuts(tree)
    # Assigned again by the splits, so that a row halfway between two groups has the same group now and later.
    found = _walked(rows, centres, below)
    filled = np.bincount(found, minlength=groups) > 0
    number = np.where(filled, np.cumsum(filled) - 1, -1).astype(np.int32)
    of = number[found]
    centroids = _means(rows, of, int(filled.sum()))
    return Bisection(of, centroids, by_distance(centroids), centres, below, number)


def by_distance(centroids: Rows) -> NDArray[np.int32]:
    """Return row g: all groups by the distance of their centroids from g's, g itself first.

    >>> by_distance(np.array([[0.0], [5.0], [1.0]])).tolist()
    [[0, 2, 1], [1, 2, 0], [2, 0, 1]]
    """
    points = centroids.astype(np.float64)
    norms = (points**2).sum(axis=1)
    apart: NDArray[np.float64] = norms[:, None] + norms - 2 * points @ points.T
    np.fill_diagonal(apart, -np.inf)
    return apart.argsort(axis=1, kind="stable").astype(np.int32)


def _cuts(fitted: Any) -> tuple[Rows, NDArray[np.int32]]:
    """Return the centres and sides of the splits of a fitted BisectingKMeans."""
    nodes = [fitted._bisecting_tree]
    centres, below = [], []
    for node in nodes:  # the list grows during the loop
        sides = []
        for side in (node.left, node.right):
            sides.append(-1 - side.label if side.left is None else len(nodes))
            if side.left is not None:
                nodes.append(side)
        centres.append([node.left.center + fitted._X_mean, node.right.center + fitted._X_mean])
        below.append(sides)
    return np.array(centres), np.array(below, np.int32)


def _walked(rows: Rows, centres: Rows, below: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the leaves of rows: down the tree, to the nearer side at each split."""
    leaf: NDArray[np.int32] = np.zeros(len(rows), np.int32)
    waiting = [(0, np.arange(len(rows)))]
    while waiting:
        cut, here = waiting.pop()
        right = np.concatenate([_nearer_right(rows[part], centres[cut]) for part in _slices(here)])
        for side, these in zip(below[cut].tolist(), (here[~right], here[right]), strict=True):
            if side < 0:
                leaf[these] = -1 - side
            elif len(these):
                waiting.append((side, these))
    return leaf


def _nearer_right(rows: Rows, centres: Rows) -> NDArray[np.bool_]:
    """Compare each row by itself, so that the result does not depend on the other rows."""
    left, right = (np.einsum("ij,ij->i", apart, apart) for apart in (rows - centres[0], rows - centres[1]))
    nearer: NDArray[np.bool_] = right < left
    return nearer


def _slices(places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [places[begin : begin + _SLICE] for begin in range(0, len(places), _SLICE)]


def _rounded(rows: Rows) -> Rows:
    scaled = rows * rows.dtype.type(_GRID)
    np.rint(scaled, out=scaled)
    scaled /= _GRID
    scaled += 0  # -0.0 is 0.0
    return np.ascontiguousarray(scaled)


def _different(rows: Rows) -> int:
    """Return the number of different rows, compared bit by bit."""
    if not rows.shape[1]:
        return min(len(rows), 1)
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def _means(rows: Rows, of: NDArray[np.int32], groups: int) -> Rows:
    counts = np.maximum(np.bincount(of, minlength=groups), 1)
    sums = [np.bincount(of, weights=column, minlength=groups) for column in rows.T]
    return (np.column_stack(sums) / counts[:, None] if sums else np.zeros((groups, 0))).astype(rows.dtype)
