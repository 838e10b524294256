"""A run as people watch it: a progress line on a terminal, a summary at the end."""

from __future__ import annotations

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
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from recrawl.cli.output import count, say
from recrawl.cli.times import span
from recrawl.engine.cycles import Summary
from recrawl.engine.live import Tally
from recrawl.model import Outcome

_EVERY = 0.2


@contextmanager
def watched(title: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[Tally], None]]:
    """A function for the engine to report to."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[news]}"),
        TimeElapsedColumn(),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, news="")
        last = 0.0

        def report(tally: Tally) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY:
                last = now
                goal = total if total is not None else tally.visits + tally.waiting
                bar.update(task, completed=tally.visits, total=goal, news=news_of(tally))

        yield report


def news_of(tally: Tally) -> str:
    """Counts in a few words."""
    words = ("new", "changed", "gone", "unchanged", "failed")
    parts = [(tally.outcomes[Outcome[word.upper()]], word) for word in words]
    return ", ".join(f"{number:,} {word}" for number, word in parts if number) or "nothing"


def summary_of(summary: Summary) -> dict[str, Any]:
    """A run for machines."""
    tally = summary.tally
    return {
        "cycle": summary.cycle.id,
        "kind": summary.cycle.kind,
        "policy": summary.cycle.policy,
        "budget": summary.cycle.budget,
        "resumed": summary.resumed,
        "finished": summary.finished,
        "visits": tally.visits,
        **{outcome.name.lower(): tally.outcomes[outcome] for outcome in Outcome},
        "failures": dict(tally.failures),
        "found": tally.found,
        "received": tally.received,
        "seconds": round(summary.seconds, 3),
    }


def tell(summary: Summary) -> None:
    """A run for people."""
    tally = summary.tally
    name = f"{summary.cycle.kind} {summary.cycle.id}"
    how = " (resumed)" if summary.resumed else ""
    end = "" if summary.finished else "; stopped before its end, the next one goes on from here"
    say(f"{name}{how}: {count(tally.visits, 'visit')} in {span(summary.seconds)}: {news_of(tally)}{end}")
    if tally.found:
        say(f"  {count(tally.found, 'page')} found, {tally.received / 1e6:.1f} MB received")
    for failure, number in tally.failures.most_common(5):
        say(f"  {number:,} x {failure}")
