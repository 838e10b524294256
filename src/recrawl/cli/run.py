"""`recrawl run`: refresh continuously."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, json_line, note
from recrawl.cli.terminal.run_report import print_summary, watched
from recrawl.cli.terminal.session import AllowPrivate, Bytes, Delay, Stop, folder_of, load, patience, reading
from recrawl.crawl import cycles
from recrawl.errors import UsageError
from recrawl.repository.turns import Turn, next_due, period_of, summary_of, take
from recrawl.times import stamp

EXAMPLE = "Example: recrawl run --every 6h --budget 500"


def command(
    ctx: typer.Context,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="Time from one cycle's start to the next. Default: the setting.")
    ] = "",
    budget: Annotated[
        float | None,
        typer.Option(help="Limit of visits per cycle; below 1, a share of the pages. Default: the setting."),
    ] = None,
    bytes_: Bytes = "",
    policy: Annotated[
        str, typer.Option(help="Policy that chooses the pages: a name from 'recrawl policies', or module:Class(args).")
    ] = "",
    sync: Annotated[str, typer.Option(help="When to visit within the period: start, most-at-start or even.")] = "start",
    count: Annotated[int, typer.Option(min=0, help="Stop after this many cycles; 0 runs until stopped.")] = 0,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    json: AsJson = False,
) -> None:
    """Refresh continuously: at every multiple of the period, crawl new pages, then run a cycle.

    Missed periods (a cycle took longer, or the machine slept) are skipped. Ctrl-C ends the run cleanly; the next run
    resumes an unfinished cycle.
    """
    folder = folder_of(ctx)
    values = load(folder)
    period = period_of(values, every)
    turn = Turn(
        period=period,
        at_start=_share_at_start(sync),
        budget=budget,
        bytes=bytes_,
        policy=policy,
        allow_private=allow_private,
        delay=delay,
    )
    with reading(ctx) as repository:
        if not values.seeds and not len(repository.store.pages.keys()[0]):
            raise UsageError("nothing to refresh: add a site with 'recrawl add URL'")
        if budget is not None:
            cycles.budget_of(budget, repository.store)  # refuse an invalid budget before the work begins
    stop = Stop()
    done = 0
    due = time.time()
    while not stop():
        summary = take(folder, turn, stop, wait=patience(True), tell=note, watch=partial(watched, quiet=json))
        if summary is None:
            break
        if json:
            json_line(summary_of(summary))
        else:
            print_summary(summary)
        done += 1
        if count and done >= count:
            break
        due = next_due(due, time.time(), period)
        if not stop():
            note(f"next cycle at {stamp(due)}")
        while not stop() and time.time() < due:
            time.sleep(min(0.2, max(0.0, due - time.time())))


def _share_at_start(sync: str) -> float:
    """The share of a cycle's visits made at its start (synchronisation points, spec P1)."""
    shares = {"start": 1.0, "most-at-start": 0.75, "even": 0.0}
    if sync not in shares:
        raise UsageError(f"invalid --sync '{sync}': use start, most-at-start or even")
    return shares[sync]
