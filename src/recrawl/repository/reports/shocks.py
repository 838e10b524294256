"""Shocks of a site recorded by the policy `shock`: intervals with at least twice the expected number of changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from recrawl.columns import DAY
from recrawl.crawl.state.array_files import Arrays, read_arrays
from recrawl.repository.reader import Reader

_MIN_RATIO = 2.0
"""Least ratio of changes to expected changes."""
_MIN_CHANGES = 3.0
"""Fewer changes are explained by chance."""
_MAX_SHOCKS = 10
_NAMES = ("site", "times", "events", "expected")


@dataclass(frozen=True, slots=True)
class SeenShock:
    """One shock."""

    since: float
    until: float
    changes: float
    """Estimated changes in the interval; visits do not give exact times."""
    usual: float
    """Expected changes of the pages visited."""

    @property
    def times(self) -> float:
        """Ratio of changes to expected changes."""
        return self.changes / max(self.usual, 1e-9)


def memory_of(repo: Reader) -> Arrays | None:
    """Return the latest saved state of the policy; None if there is none or its format is unknown."""
    files = sorted((file.stat().st_mtime_ns, file) for file in (repo.folder / "models").glob("shock-*.npz"))
    return _read(files[-1][1], files[-1][0]) if files else None


@lru_cache(maxsize=2)
def _read(file: Path, _written: int) -> Arrays | None:
    """Read a state file; the modification time is part of the cache key."""
    found = read_arrays(file)
    if found is None or not {f"kept shock.{name}" for name in _NAMES} <= found.keys():
        return None
    return {name: found[f"kept shock.{name}"] for name in _NAMES}


def shocks(memory: Arrays, site: int) -> list[SeenShock]:
    """Return the shocks of a site, newest first.

    >>> memory = {
    ...     "site": np.zeros(1, int), "times": np.array([0.0, 1.0, 2.0]),
    ...     "events": np.array([[1.0, 9.0]]), "expected": np.array([[2.0, 3.0]]),
    ... }
    >>> [(shock.until, shock.changes, shock.times) for shock in shocks(memory, 0)]
    [(172800.0, 9.0, 3.0)]
    """
    events, expected, times = memory["events"], memory["expected"], memory["times"] * DAY
    groups = min(len(memory["site"]), len(events), len(expected))
    bins = min(len(times) - 1, events.shape[1], expected.shape[1])
    mine = memory["site"][:groups] == site
    changes = events[:groups][mine, :bins].sum(axis=0, dtype=np.float64)
    usual = expected[:groups][mine, :bins].sum(axis=0, dtype=np.float64)
    found = np.flatnonzero((changes >= _MIN_RATIO * usual) & (changes >= _MIN_CHANGES))[::-1][:_MAX_SHOCKS]
    return [SeenShock(float(times[k]), float(times[k + 1]), float(changes[k]), float(usual[k])) for k in found.tolist()]
