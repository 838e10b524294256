"""`recrawl run`."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import typer

from recrawl.cli.output import AsJson, json_line, note
from recrawl.cli.session import AllowPrivate, Bytes, Delay, Stop, folder_of, load, patience, reading
from recrawl.cli.watch_run import tell, watched
from recrawl.crawl import cycles
from recrawl.errors import UsageError
from recrawl.repository.times import stamp
from recrawl.repository.turns import Turn, next_due, period_of, summary_of, take

EXAMPLE = "Example: recrawl run --every 6h --budget 500"


def command(
    ctx: typer.Context,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="From one cycle's start to the next. Default: the setting.")
    ] = "",
    budget: Annotated[float | None, typer.Option(help="Most visits a cycle; under 1, a share of the pages.")] = None,
    bytes_: Bytes = "",
    policy: Annotated[str, typer.Option(help="How to choose pages; see 'recrawl policies'.")] = "",
    sync: Annotated[
        str, typer.Option(help="When in the period pages are visited: start, most-at-start or even.")
    ] = "start",
    count: Annotated[int, typer.Option(min=0, help="End after so many cycles; 0 goes on for ever.")] = 0,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    json: AsJson = False,
) -> None:
    """Refresh for ever: a cycle at every multiple of the period by the clock, with a crawl of what is new before it.

    A period that is missed, because a cycle took longer or the machine slept, is not made up for. Ctrl-C ends the
    run cleanly; whatever was under way is resumed by the next run.
    """
    folder = folder_of(ctx)
    values = load(folder)
    period = period_of(values, every)
    asked = Turn(
        period=period,
        at_start=_share_at_start(sync),
        budget=budget,
        bytes=bytes_,
        policy=policy,
        allow_private=allow_private,
        delay=delay,
    )
    with reading(ctx) as repository:
        if not values.seeds and not len(repository.store.keys()[0]):
            raise UsageError("nothing was added yet: name a site with 'recrawl add URL'")
        if budget is not None:
            cycles.budget_of(budget, repository.store)  # complain before the work begins
    stop = Stop()
    done = 0
    due = time.time()
    while not stop():
        summary = take(folder, asked, stop, wait=patience(True), tell=note, watch=partial(watched, quiet=json))
        if summary is None:
            break
        if json:
            json_line(summary_of(summary))
        else:
            tell(summary)
        done += 1
        if count and done >= count:
            break
        due = next_due(due, time.time(), period)
        if not stop():
            note(f"next cycle at {stamp(due)}")
        while not stop() and time.time() < due:
            time.sleep(min(0.2, max(0.0, due - time.time())))


def _share_at_start(sync: str) -> float:
    """Synchronisation points (spec P1): the share of a cycle's visits that is made at its start."""
    shares = {"start": 1.0, "most-at-start": 0.75, "even": 0.0}
    if sync not in shares:
        raise UsageError(f"--sync is start, most-at-start or even, not '{sync}'")
    return shares[sync]
