"""Trust in each site's hints: what was read, what was ignored, and their precision and recall."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.book import Hints
from recrawl.crawl.state.array_files import Arrays, read_part
from recrawl.learn.hints import HintTrust, Signals
from recrawl.record.storage import Storage

_NOW = "kept hints.now"


def trust(repository: Storage) -> dict[str, list[dict[str, Any]]]:
    """By origin, one row per kind of hint: signals, ignored ones and why, precision and recall if there are visits."""
    learned = {(row.site, row.kind): row for row in _learned(repository)}
    found: dict[str, list[dict[str, Any]]] = {}
    for site, origin, kind, seen, signals, ignored, problem in repository.store.hints.sources():
        row = learned.get((site, kind))
        found.setdefault(origin, []).append(
            {
                "kind": kind,
                "read": seen or None,
                "signals": signals,
                "ignored": ignored,
                "problem": problem,
                "precision": round(row.precision, 4) if row else None,
                "recall": round(row.recall, 4) if row else None,
                "visits": round(row.signalled + row.silent, 1) if row else 0,
            }
        )
    return found


def _learned(repository: Storage) -> list[HintTrust]:
    """Trust learned by the policy that ran last."""
    files = sorted((path, path.stat().st_mtime_ns) for path in (repository.folder / "models").glob("*.npz"))
    return _learned_from(tuple(files))


@lru_cache(maxsize=4)
def _learned_from(files: tuple[tuple[Path, int], ...]) -> list[HintTrust]:
    """The same, from these files with these modification times."""
    memory = _memory([path for path, _ in files])
    if memory is None:
        return []
    kinds = tuple(sorted(name.split(".")[1] for name in memory if name.endswith(".counts")))
    sites = max((len(memory[f"hints.{kind}.counts"]) for kind in kinds), default=0)
    nothing = np.zeros((len(kinds), sites))
    hints = Hints(kinds, nothing.astype(np.int16), nothing, nothing)
    now = float(memory["hints.now"])
    return Signals(hints, np.arange(sites, dtype=np.int32), np.full(sites, now), memory, now).trust()


def _memory(files: list[Path]) -> Arrays | None:
    """The newest policy memory with hints."""
    best: Arrays | None = None
    for path in files:
        file = read_part(path, "kept hints.")
        if file and _NOW in file and (best is None or file[_NOW] > best["hints.now"]):
            best = {name.removeprefix("kept "): column for name, column in file.items()}
    return best
