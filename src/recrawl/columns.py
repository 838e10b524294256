"""Array types and units of time that every module shares.

Whatever grows with the number of pages is an array with one entry per page (a column). Modules take the names of those
array types from here, so that one name means one type everywhere. `unique`, `median` and the constants are here for the
same reason: one definition each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""64-bit floating point numbers: times, rates, probabilities."""
Float32s = NDArray[np.float32]
"""32-bit floating point numbers, where memory matters more than digits."""
Ints = NDArray[np.int64]
"""64-bit integers: page numbers, counts, row numbers."""
Int32s = NDArray[np.int32]
"""32-bit integers."""
Flags = NDArray[np.bool_]
"""Truth values."""
Bytes = NDArray[np.uint8]
"""Eight bits each."""

MINUTE = 60.0
"""One minute in seconds."""
HOUR = 3600.0
"""One hour in seconds."""
DAY = 86400.0
"""One day in seconds."""
WEEK = 7 * DAY
"""One week in seconds."""


def unique(numbers: NDArray[Any]) -> NDArray[Any]:
    """The numbers in ascending order, each once.

    As `np.unique`, which is many times slower for a million numbers, since it hashes them first.

    >>> unique(np.array([3, 0, 3])).tolist()
    [0, 3]
    """
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def median(numbers: Floats) -> float:
    """The middle of the numbers, or the mean of the two in the middle; there must be at least one.

    As `np.median`, whose first call imports numpy.ma, for 20 ms.

    >>> median(np.array([3.0, 0.0, 1.0])), median(np.array([3.0, 0.0, 1.0, 2.0]))
    (1.0, 1.5)
    """
    ordered, half = np.sort(numbers), len(numbers) // 2
    return float(ordered[half] if len(numbers) % 2 else (ordered[half - 1] + ordered[half]) / 2)
