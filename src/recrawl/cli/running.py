"""`recrawl run`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from recrawl.choose import make_policy
from recrawl.cli.output import AsJson, json_line, note
from recrawl.cli.session import AllowPrivate, Delay, Stop, folder_of, load, options_of, reading, writing
from recrawl.cli.watching import summary_of, tell, watched
from recrawl.engine import cycles
from recrawl.errors import UsageError
from recrawl.verbs.times import duration, stamp

EXAMPLE = "Example: recrawl run --every 6h --budget 500"


def command(
    ctx: typer.Context,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="From one cycle's start to the next. Default: the setting.")
    ] = "",
    budget: Annotated[float | None, typer.Option(help="Most visits a cycle; under 1, a share of the pages.")] = None,
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
    period = duration(every or load(folder)["every"])
    if period < 1:
        raise UsageError("the period of a run is at least a second")
    share = _share_at_start(sync)
    with reading(ctx) as repository:
        if not load(folder).seeds and not len(repository.store.keys()[0]):
            raise UsageError("nothing was added yet: name a site with 'recrawl add URL'")
        if budget is not None:
            cycles.budget_of(budget, repository.store)  # complain before the work begins
    stop = Stop()
    done = 0
    due = time.time()
    while not stop():
        values = load(folder)  # read anew: settings may be changed while we run
        chosen = make_policy(policy or values["policy"])
        options = options_of(values, allow_private=allow_private, delay=delay)
        with writing(folder, "run", options, values, wait=True) as repository:
            with watched("crawling", None, quiet=json) as progress:
                controls = cycles.Controls(stop=stop, progress=progress)
                seeds = [seed.url for seed in values.seeds]
                cycles.crawl(repository, options, seeds, controls, only_rested=True)
            if stop():
                break
            visits = cycles.budget_of(values["budget"] if budget is None else budget, repository.store)
            release = cycles.spread(visits, share, time.time(), period)
            with watched("visiting", visits, quiet=json) as progress:
                controls = cycles.Controls(stop=stop, progress=progress, release=release)
                summary = cycles.cycle(repository, options, chosen, visits, values["seed"], controls)
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


def next_due(last: float, now: float, period: float) -> float:
    """The next multiple of the period after now, counted from the last due time.

    >>> next_due(0.0, 5.0, 10.0), next_due(0.0, 25.0, 10.0)
    (10.0, 30.0)
    """
    return last + period * max(1, int((now - last) // period) + 1)


def _share_at_start(sync: str) -> float:
    """Synchronisation points (spec P1): the share of a cycle's visits that is made at its start."""
    shares = {"start": 1.0, "most-at-start": 0.75, "even": 0.0}
    if sync not in shares:
        raise UsageError(f"--sync is start, most-at-start or even, not '{sync}'")
    return shares[sync]
