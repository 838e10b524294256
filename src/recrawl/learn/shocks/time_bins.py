"""Time divided into bins at cycles; older bins are merged, so that tables by bin stay small.

Sums by group and bin are tables. `Bins.up_to` returns the bins extended to now and the `BinStep` that converts a table
to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Float32s, Floats

MAX_BINS = 160
"""When there are more bins, the older half is merged in pairs."""


@dataclass(frozen=True, slots=True)
class Bins:
    """Consecutive bins of time."""

    times: Floats
    """The boundaries of the bins in days, ascending."""

    def __len__(self) -> int:
        return len(self.times) - 1

    @property
    def days(self) -> Floats:
        """One per bin: its length."""
        return self.times[1:] - self.times[:-1]

    def place(self, at: Floats) -> Floats:
        """Convert times to positions among the bins: 2.5 is the middle of the third bin.

        >>> Bins(np.array([0.0, 1.0, 3.0])).place(np.array([0.5, 2.0, 9.0])).tolist()
        [0.5, 1.5, 2.0]
        """
        return np.interp(at, self.times, np.arange(len(self.times)))

    def up_to(self, now: float) -> tuple[Bins, BinStep]:
        """Add a bin up to now, unless no time has passed or the clock has stepped back.

        >>> bins, step = Bins(np.array([0.0, 1.0])).up_to(2.0)
        >>> bins.times.tolist(), step(np.array([[7.0]]), groups=2).tolist()
        ([0.0, 1.0, 2.0], [[7.0, 0.0], [0.0, 0.0]])
        """
        if now <= self.times[-1]:
            return self, BinStep(len(self), 0, merged=False)
        times = np.append(self.times, now)
        if len(times) - 1 <= MAX_BINS:
            return Bins(times), BinStep(len(self), 1, merged=False)
        old = MAX_BINS // 2
        return Bins(np.concatenate((times[:old:2], times[old:]))), BinStep(len(self), 1, merged=True)


@dataclass(frozen=True, slots=True)
class BinStep:
    """The conversion of a table of groups by bins to later bins."""

    bins: int
    """Number of bins before."""
    more: int
    """Bins added at the end."""
    merged: bool
    """Whether the older half is merged in pairs."""

    def __call__(self, table: NDArray[Any] | None, groups: int) -> Float32s:
        """Return the table with rows for new groups, a column for a new bin, and old bins merged."""
        wide = np.zeros((groups, self.bins + self.more), np.float32)
        if table is not None:
            wide[: len(table), : self.bins] = table
        if not self.merged:
            return wide
        old = MAX_BINS // 2
        return np.hstack((wide[:, :old].reshape(groups, old // 2, 2).sum(axis=2), wide[:, old:]))
