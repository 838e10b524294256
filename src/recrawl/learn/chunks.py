"""Long columns taken part by part, so that the room for what is computed on the way does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 1 << 14
"""So many rows are one part."""

Pages = NDArray[np.int64] | NDArray[np.int32]
Floats = NDArray[np.float64]
Column = NDArray[np.float32]
"""One number per page: so many that they are kept short."""
AnyFloats = Floats | Column


def parts(rows: int) -> Iterator[slice]:
    """So many rows, part by part."""
    for start in range(0, rows, ROWS):
        yield slice(start, min(start + ROWS, rows))


def where(mask: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """The numbers of the rows that are true, part by part."""
    for part in parts(len(mask)):
        yield part.start + np.flatnonzero(mask[part])


def by_parts(told: Callable[[Pages], Floats], pages: Pages) -> Column:
    """What a function tells of pages, asked for a part of them at a time."""
    column = np.empty(len(pages), np.float32)
    for part in parts(len(pages)):
        column[part] = told(pages[part])
    return column


def sums(group: NDArray[np.int32], column: NDArray[Any], groups: int) -> Floats:
    """The sum of a column for each of so many groups.

    >>> sums(np.array([1, 0, 1], np.int32), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [2.0, 4.0, 0.0]
    """
    total = np.zeros(groups)
    for part in parts(len(group)):
        total += np.bincount(group[part], column[part], groups)
    return total
