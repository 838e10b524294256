"""Shocks that were seen: times when far more happened to a site's pages than usual, as the policy `shock` noted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from recrawl.crawl.state.array_files import Arrays, read_arrays

_DAY = 86400.0
_TIMES = 2.0
"""What counts as far more."""
_FEWEST = 3.0
"""Changes below which chance explains it."""
_MOST = 10
_NAMES = ("site", "times", "events", "expected")


@dataclass(frozen=True, slots=True)
class SeenShock:
    """One such time."""

    since: float
    until: float
    changes: float
    """Changes thought to have fallen there; a visit does not say when exactly one was."""
    usual: float
    """Changes that would have been expected of the pages watched there."""

    @property
    def times(self) -> float:
        """How many times as much as usual."""
        return self.changes / max(self.usual, 1e-9)


def memory_of(folder: Path) -> Arrays | None:
    """What the policy remembered last; None when it was never used, or remembers otherwise than we read."""
    files = sorted((file.stat().st_mtime_ns, file) for file in (folder / "models").glob("shock-*.npz"))
    return _read(files[-1][1], files[-1][0]) if files else None


@lru_cache(maxsize=2)
def _read(file: Path, _written: int) -> Arrays | None:
    """The file as it was when it was written."""
    found = read_arrays(file)
    if found is None or not {f"kept shock.{name}" for name in _NAMES} <= found.keys():
        return None
    return {name: found[f"kept shock.{name}"] for name in _NAMES}


def shocks(memory: Arrays, site: int) -> list[SeenShock]:
    """The shocks of a site, newest first.

    >>> memory = {
    ...     "site": np.zeros(1, int), "times": np.array([0.0, 1.0, 2.0]),
    ...     "events": np.array([[1.0, 9.0]]), "expected": np.array([[2.0, 3.0]]),
    ... }
    >>> [(shock.until, shock.changes, shock.times) for shock in shocks(memory, 0)]
    [(172800.0, 9.0, 3.0)]
    """
    events, expected, times = memory["events"], memory["expected"], memory["times"] * _DAY
    groups = min(len(memory["site"]), len(events), len(expected))
    bins = min(len(times) - 1, events.shape[1], expected.shape[1])
    mine = memory["site"][:groups] == site
    changes = events[:groups][mine, :bins].sum(axis=0, dtype=np.float64)
    usual = expected[:groups][mine, :bins].sum(axis=0, dtype=np.float64)
    found = np.flatnonzero((changes >= _TIMES * usual) & (changes >= _FEWEST))[::-1][:_MOST]
    return [SeenShock(float(times[k]), float(times[k + 1]), float(changes[k]), float(usual[k])) for k in found.tolist()]
