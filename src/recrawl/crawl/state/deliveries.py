"""Which outcomes a cycle has sent to its policy with which batch: a resumed cycle sends the same ones again.

Batches overlap, so which outcomes come with a batch depends on how fast servers answered. After a crash the policy must
get the same ones to choose the same pages. A file in `models/` has a line for each batch whose outcomes were sent: the
number of the next visit, since visits are numbered as they end, and pages that were held without a visit. A line is
written when these visits are recorded, and before the policy chooses again. Visits that were recorded without a line
were not sent: no choice depends on them, so they come with the next batch.

With an object store, the lines are a value of the store instead: the cycle may be resumed on another machine.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.model import Outcomes, Unvisited
from recrawl.record.rows import Columns
from recrawl.record.storage import Storage

_VALUE = "batches-of-cycle"


class Deliveries:
    """The file of one cycle."""

    def __init__(self, repository: Storage, cycle: int) -> None:
        self._file = _file(repository.folder)
        self._meta = None if repository.remote is None else repository.store.meta
        self._cycle = cycle

    def read(self, visits: Columns) -> tuple[dict[int, int], list[list[int]]]:
        """The pages that were held without a visit, with this outcome; and the pages sent with each batch so far."""
        lines = self._lines()
        ends = np.searchsorted(visits["id"], [line["next_visit"] for line in lines])
        parts = np.split(visits["page"], ends)[: len(lines)]
        visited = set(visits["page"].tolist())
        held = [[page for page in line["held"] if page not in visited] for line in lines]
        sent = [[*part.tolist(), *more] for part, more in zip(parts, held, strict=True)]
        return {page: int(Unvisited.HELD) for pages in held for page in pages}, sent

    def add(self, next_visit: int, seen: Outcomes) -> None:
        """Note that the outcomes of all visits so far were sent, `seen` with the last batch."""
        held = seen.pages[seen.what == Unvisited.HELD].tolist()
        line = json.dumps({"cycle": self._cycle, "next_visit": next_visit, "held": held}) + "\n"
        if self._meta is not None:
            self._meta.set(_VALUE, self._meta.get(_VALUE, "") + line)
            return
        self._file.parent.mkdir(exist_ok=True)
        with self._file.open("a", encoding="ascii") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> list[dict[str, Any]]:
        """The lines of this cycle; others, and a line that a crash has cut, are removed from the file."""
        text = self._text()
        lines, kept = [], ""
        for written in text.splitlines(keepends=True):
            line = _parsed(written)
            if line is None or line["cycle"] != self._cycle:
                break
            lines.append(line)
            kept += written
        if kept != text and self._meta is not None:
            self._meta.set(_VALUE, kept)
        elif kept != text:
            self._file.write_text(kept, encoding="ascii")
        return lines

    def _text(self) -> str:
        if self._meta is not None:
            return str(self._meta.get(_VALUE, ""))
        return self._file.read_text(encoding="ascii", errors="replace") if self._file.exists() else ""


def _parsed(text: str) -> dict[str, Any] | None:
    """A line of the file; None if it is damaged."""
    try:
        line = json.loads(text)
        valid = all(isinstance(line[name], int) for name in ("cycle", "next_visit")) and isinstance(line["held"], list)
    except (ValueError, KeyError, TypeError):
        return None
    return line if valid and text.endswith("\n") else None


def delete(repository: Storage) -> None:
    """Delete the lines of a finished cycle, and the folder of their file if nothing else is in it."""
    folder = repository.folder
    if repository.remote is not None:
        repository.store.meta.set(_VALUE, "")
    _file(folder).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        _file(folder).parent.rmdir()


def _file(folder: Path) -> Path:
    return folder / "models" / "batches-of-cycle.jsonl"
