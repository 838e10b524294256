"""The progress line of a run, on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from recrawl.crawl.tally import RunCounts

_EVERY = 0.2


@contextmanager
def bar(title: str, total: int | None, news_of: Callable[[RunCounts], str]) -> Iterator[Callable[[RunCounts], None]]:
    """A line that moves as the engine reports."""
    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[news]}"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task(title, total=total, news="")
        last = 0.0

        def report(tally: RunCounts) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY:
                last = now
                goal = total if total is not None else tally.visits + tally.waiting
                line.update(task, completed=tally.visits, total=goal, news=news_of(tally))

        yield report
