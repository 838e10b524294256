"""Progress of long work: a bar on a terminal, or lines of text for a program that requested them.

The service runs commands as jobs: it sets `RECRAWL_PROGRESS=lines` and reads the lines from standard error.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from recrawl.model import Outcome
from recrawl.repository.results.runs import Progress as RunProgress
from recrawl.repository.results.words import PROGRESS

_VARIABLE = "RECRAWL_PROGRESS"
_LINE_EVERY = 0.5
_BAR_EVERY = 0.2


def progress(*columns: str | ProgressColumn, quiet: bool = False) -> Progress:
    """A progress display, used as rich's own; the task field `detail` says how far the work is."""
    if os.environ.get(_VARIABLE) == "lines":
        return _ProgressLines(disable=True)
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)


def detailed(*, quiet: bool = False) -> Progress:
    """A progress display with a bar, the task field `detail` and the elapsed time."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[detail]}"), TimeElapsedColumn())
    return progress(*columns, quiet=quiet)


class _ProgressLines(Progress):
    """Writes a line at most every half second."""

    _last = 0.0

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Update the task and write a line."""
        super().update(task_id, **changes)
        now = time.monotonic()
        if now - self._last < _LINE_EVERY:
            return
        self._last = now
        task = next(task for task in self.tasks if task.id == task_id)
        words = [task.description, str(task.fields.get("detail") or _of(task.completed, task.total))]
        sys.stderr.write(f"{PROGRESS}{' '.join(word for word in words if word)}\n")
        sys.stderr.flush()


def _of(done: float, total: float | None) -> str:
    """
    >>> _of(3.0, 1200.0), _of(3.0, None)
    ('3 of 1,200', '')
    """
    return f"{done:,.0f} of {total:,.0f}" if total else ""


class RunBar:
    """A progress bar for crawls and cycles: call it with each progress report; `close` removes it."""

    def __init__(self, describe: Callable[[Counter[Outcome], Counter[str]], str]) -> None:
        self._describe = describe
        self._bar: Progress | None = None
        self._kind = ""
        self._last = 0.0
        self._most = 0
        """The largest total so far: pages under way are neither visited nor waiting, and pages are left out."""

    def __call__(self, progress: RunProgress) -> None:
        """Show the progress of a run, at most every 0.2 s."""
        now = time.monotonic()
        if progress.kind != self._kind:
            self.close()
        elif now - self._last < _BAR_EVERY:
            return
        if self._bar is None:
            self._start(progress)
        self._last = now
        self._most = max(self._most, progress.visits + progress.waiting)
        total = self._most if progress.total is None else progress.total
        assert self._bar is not None
        task = self._bar.task_ids[0]
        detail = self._describe(progress.outcomes, progress.failures)
        self._bar.update(task, completed=progress.visits, total=total, detail=detail)

    def _start(self, progress: RunProgress) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
        )
        self._kind, self._most = progress.kind, 0
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.add_task("crawling" if progress.kind == "crawl" else "visiting", total=progress.total, detail="")
        self._bar.start()

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar is not None:
            self._bar.stop()
        self._bar, self._kind = None, ""
