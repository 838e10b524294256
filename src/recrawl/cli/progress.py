"""How far long work is: a line on a terminal, or lines of text for a program that asked for them.

The service runs commands as jobs; it sets `RECRAWL_PROGRESS=lines` and reads what is written to standard error.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TaskID

from recrawl.repository.words import PROGRESS

_ASKED = "RECRAWL_PROGRESS"
_EVERY = 0.5


def progress(*columns: str | ProgressColumn, quiet: bool = False) -> Progress:
    """What shows how far it is, to whoever watches: use it as rich's own."""
    if os.environ.get(_ASKED) == "lines":
        return _Lines(disable=True)
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)


class _Lines(Progress):
    """Writes a line now and then."""

    _last = 0.0

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Take the change in, and tell of it."""
        super().update(task_id, **changes)
        now = time.monotonic()
        if now - self._last < _EVERY:
            return
        self._last = now
        task = next(task for task in self.tasks if task.id == task_id)
        words = [task.description, str(task.fields.get("told") or _of(task.completed, task.total))]
        sys.stderr.write(f"{PROGRESS}{' '.join(word for word in words if word)}\n")
        sys.stderr.flush()


def _of(done: float, total: float | None) -> str:
    """
    >>> _of(3.0, 1200.0), _of(3.0, None)
    ('3 of 1,200', '')
    """
    return f"{done:,.0f} of {total:,.0f}" if total else ""
