"""Which outcomes a cycle has sent to its policy with which batch: a resumed cycle sends the same ones again.

Batches overlap, and what a policy is told may be recorded only later. After a crash it must be told the same to choose
the same pages. A file in `models/` has a line for each batch: the pages, their outcomes and
their bytes. A line is on disk before the policy chooses again, and its visits may be recorded only later: what a crash
takes of them is visited again (`recrawl.loop.Resumed`), and every choice that was made is made again. Visits that were
recorded without a line were not sent: no choice depends on them, so they come with the next batch.

With an object store, the lines are a value of the store instead: the cycle may be resumed on another machine.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np

from recrawl.durable_files import make_folder, replace_file, sync_folder
from recrawl.model import Outcomes
from recrawl.record.storage import Storage

_VALUE = "batches-of-cycle"


class Deliveries:
    """The file of one cycle."""

    def __init__(self, repository: Storage, cycle: int) -> None:
        self._file = _file(repository.folder)
        self._meta = None if repository.remote is None else repository.store.meta
        self._cycle = cycle

    def read(self) -> list[Outcomes]:
        """What was sent with each batch so far; lines of other cycles, and what a crash has cut, are removed."""
        text = self._text()
        sent, kept = sent_before(text, self._cycle)
        if kept != text and self._meta is not None:
            self._meta.set(_VALUE, kept)
        elif kept != text:
            replace_file(self._file, kept)
        return sent

    def add(self, seen: Outcomes) -> None:
        """Note that these outcomes are sent with the next batch."""
        line = line_of(self._cycle, seen)
        if self._meta is not None:
            self._meta.set(_VALUE, self._meta.get(_VALUE, "") + line)
            return
        make_folder(self._file.parent)
        new = not self._file.exists()
        with self._file.open("a", encoding="ascii") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_folder(self._file.parent)

    def _text(self) -> str:
        if self._meta is not None:
            return str(self._meta.get(_VALUE, ""))
        return self._file.read_text(encoding="ascii", errors="replace") if self._file.exists() else ""


def line_of(cycle: int, seen: Outcomes) -> str:
    """The line of a batch.

    >>> line_of(3, Outcomes(np.array([7, 9]), np.array([0, 4], np.int8)))
    '{"cycle": 3, "sent": [[7, 0, 0], [9, 4, 0]]}\\n'
    """
    received = np.zeros(len(seen), np.int64) if seen.received is None else seen.received
    rows = np.stack([seen.pages, seen.what.astype(np.int64), received], axis=1).tolist()
    return json.dumps({"cycle": cycle, "sent": rows}) + "\n"


def sent_before(text: str, cycle: int) -> tuple[list[Outcomes], str]:
    """The batches of a cycle, and the part of the text that they are."""
    sent, kept = [], ""
    for line in text.splitlines(keepends=True):
        rows = _rows(line, cycle)
        if rows is None:
            break
        sent.append(Outcomes(rows[:, 0], rows[:, 1].astype(np.int8), rows[:, 2]))
        kept += line
    return sent, kept


def _rows(line: str, cycle: int) -> np.ndarray | None:
    """The rows of a line; None if it is damaged, or of another cycle."""
    try:
        value = json.loads(line)
        rows = np.array(value["sent"], np.int64).reshape(-1, 3)
        valid = line.endswith("\n") and value["cycle"] == cycle
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    return rows if valid else None


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
