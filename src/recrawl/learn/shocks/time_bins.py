"""Time cut into bins at the moments of cycles; what is older is cut more coarsely, so that sums over time stay small.

Whatever is summed by bin (what happened to a group of pages, how visits to it went) is a table of groups by bins, and
all such tables go on together: `up_to` gives the next bins and the step that takes a table along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 160
"""When there are more bins, the older half of them is joined two by two."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bins:
    """Moments, days, rising: where bins end; the first is where they begin."""

    times: Floats

    def __len__(self) -> int:
        """How many bins there are."""
        return len(self.times) - 1

    @property
    def days(self) -> Floats:
        """One per bin: how long it is."""
        return self.times[1:] - self.times[:-1]

    def place(self, at: Floats) -> Floats:
        """Moments as places among the bins: 2.5 is the middle of the third bin.

        >>> Bins(np.array([0.0, 1.0, 3.0])).place(np.array([0.5, 2.0, 9.0])).tolist()
        [0.5, 1.5, 2.0]
        """
        return np.interp(at, self.times, np.arange(len(self.times)))

    def up_to(self, now: float) -> tuple[Bins, BinStep]:
        """With one more bin, up to now; none when no time has passed, or the clock has stepped back.

        >>> bins, step = Bins(np.array([0.0, 1.0])).up_to(2.0)
        >>> bins.times.tolist(), step(np.array([[7.0]]), groups=2).tolist()
        ([0.0, 1.0, 2.0], [[7.0, 0.0], [0.0, 0.0]])
        """
        if now <= self.times[-1]:
            return self, BinStep(len(self), 0, joined=False)
        times = np.append(self.times, now)
        if len(times) - 1 <= MOST:
            return Bins(times), BinStep(len(self), 1, joined=False)
        old = MOST // 2
        return Bins(np.concatenate((times[:old:2], times[old:]))), BinStep(len(self), 1, joined=True)


@dataclass(frozen=True, slots=True)
class BinStep:
    """What becomes of a table of groups by bins when bins go on."""

    bins: int
    """How many there were."""
    more: int
    joined: bool

    def __call__(self, table: NDArray[Any] | None, groups: int) -> NDArray[np.float32]:
        """The table with rows for groups that are new, a bin for the time that has passed, old bins joined."""
        wide = np.zeros((groups, self.bins + self.more), np.float32)
        if table is not None:
            wide[: len(table), : self.bins] = table
        if not self.joined:
            return wide
        old = MOST // 2
        return np.hstack((wide[:, :old].reshape(groups, old // 2, 2).sum(axis=2), wide[:, old:]))
