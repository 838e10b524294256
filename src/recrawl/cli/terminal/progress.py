"""Progress of long work: a bar on a terminal, or lines of text for a program that requested them.

The service runs commands as jobs: it sets `RECRAWL_PROGRESS=lines` and reads the lines from standard error.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

from recrawl.crawl.tally import RunCounts
from recrawl.repository.words import PROGRESS

_VARIABLE = "RECRAWL_PROGRESS"
_LINE_EVERY = 0.5
_BAR_EVERY = 0.2


def progress(*columns: str | ProgressColumn, quiet: bool = False) -> Progress:
    """A progress display, used as rich's own; the task field `detail` says how far the work is."""
    if os.environ.get(_VARIABLE) == "lines":
        return _Lines(disable=True)
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)


def detailed(*, quiet: bool = False) -> Progress:
    """A progress display with a bar, the task field `detail` and the elapsed time."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[detail]}"), TimeElapsedColumn())
    return progress(*columns, quiet=quiet)


class _Lines(Progress):
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


@contextmanager
def run_bar(
    title: str, total: int | None, describe: Callable[[RunCounts], str]
) -> Iterator[Callable[[RunCounts], None]]:
    """A progress bar for a crawl or cycle; yields the function that the run reports its counts to."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, detail="")
        last = 0.0

        def report(counts: RunCounts) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _BAR_EVERY:
                last = now
                goal = total if total is not None else counts.visits + counts.waiting
                bar.update(task, completed=counts.visits, total=goal, detail=describe(counts))

        yield report
