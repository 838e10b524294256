"""Shocks that were seen: times when far more happened to a site's pages than usual, as the policy `shock` noted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from recrawl.engine.arrays import Arrays, read_arrays

_DAY = 86400.0
_TIMES = 2.0
"""What counts as far more."""
_FEWEST = 3
"""Changed visits below which chance explains it."""
_MOST = 10
_NAMES = ("key", "site", "times", "events", "expected", "tries", "hits")


@dataclass(frozen=True, slots=True)
class Shock:
    """One such time."""

    since: float
    until: float
    visits: int
    changed: int
    times: float
    """How many times as much as usual."""


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


def shocks(memory: Arrays, site: int) -> list[Shock]:
    """The shocks of a site, newest first.

    >>> memory = {
    ...     "key": np.arange(1), "site": np.zeros(1, int), "times": np.array([0.0, 1.0, 2.0]),
    ...     "events": np.array([[1.0, 9.0]]), "expected": np.array([[2.0, 3.0]]),
    ...     "tries": np.array([[5.0, 10.0]]), "hits": np.array([[1.0, 8.0]]),
    ... }
    >>> [(shock.until, shock.changed, shock.times) for shock in shocks(memory, 0)]
    [(172800.0, 8, 3.0)]
    """
    mine = memory["site"] == site
    bins = min(len(memory["times"]) - 1, *(memory[name].shape[1] for name in ("events", "expected", "tries", "hits")))
    if not mine.any() or bins < 1:
        return []
    rows = int(min(len(mine), *(len(memory[name]) for name in ("events", "expected", "tries", "hits"))))
    sums = {
        name: memory[name][:rows][mine[:rows], :bins].sum(axis=0) for name in ("events", "expected", "tries", "hits")
    }
    ratio = sums["events"] / np.maximum(sums["expected"], 1e-9)
    found = np.flatnonzero((ratio >= _TIMES) & (sums["hits"] >= _FEWEST))[::-1][:_MOST]
    times = memory["times"] * _DAY
    return [
        Shock(
            float(times[k]), float(times[k + 1]), int(sums["tries"][k]), int(sums["hits"][k]), round(float(ratio[k]), 2)
        )
        for k in found.tolist()
    ]
