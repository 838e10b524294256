"""Processing of long columns in chunks, so that temporary memory does not grow with the number of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Float32s, Floats, Int32s, Ints

ROWS = 1 << 14
"""Rows per chunk."""

AnyPages = Ints | Int32s
AnyFloats = Floats | Float32s


def chunks(rows: int) -> Iterator[slice]:
    """Yield consecutive slices that cover a number of rows."""
    for start in range(0, rows, ROWS):
        yield slice(start, min(start + ROWS, rows))


def where(mask: Flags) -> Iterator[Ints]:
    """Yield the row numbers where the mask is true, chunk by chunk."""
    for chunk in chunks(len(mask)):
        yield chunk.start + np.flatnonzero(mask[chunk])


def map_chunks(function: Callable[[AnyPages], Floats], pages: AnyPages) -> Float32s:
    """Apply a function to pages, chunk by chunk."""
    column = np.empty(len(pages), np.float32)
    for chunk in chunks(len(pages)):
        column[chunk] = function(pages[chunk])
    return column


def group_sums(group: Int32s, column: NDArray[Any] | Callable[[slice], NDArray[Any]], groups: int) -> Floats:
    """Return the sum of a column, or of what a function returns for each chunk of it, for each group.

    >>> group_sums(np.array([1, 0, 1], np.int32), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [2.0, 4.0, 0.0]
    """
    total = np.zeros(groups)
    for chunk in chunks(len(group)):
        total += np.bincount(group[chunk], column(chunk) if callable(column) else column[chunk], groups)
    return total
