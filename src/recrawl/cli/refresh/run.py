"""`recrawl run`: refresh continuously."""

from __future__ import annotations

from typing import Annotated, Unpack

import typer

from recrawl.cli.terminal.output import AsJson, json_line
from recrawl.cli.terminal.session import repository
from recrawl.cli.terminal.signals import Stop
from recrawl.parameters import Budget, Bytes, PolicyText, RunRules

EXAMPLE = "Example: recrawl run --every 6h --budget 500"


def command(
    ctx: typer.Context,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="Time from one cycle's start to the next. Default: the setting.")
    ] = "",
    budget: Budget = None,
    bytes: Bytes = "",  # noqa: A002
    policy: PolicyText = "",
    sync: Annotated[str, typer.Option(help="When to visit within the period: start, most-at-start or even.")] = "start",
    count: Annotated[int, typer.Option(min=0, help="Stop after this many cycles; 0 runs until stopped.")] = 0,
    json: AsJson = False,
    **rules: Unpack[RunRules],
) -> None:
    """Refresh continuously: now, and at every multiple of the period, crawl new pages, then run a cycle.

    The clock decides: with --every 6h, cycles begin at 00:00, 06:00, 12:00 and 18:00 UTC. Missed periods (a cycle took
    longer, or the machine slept) are skipped. Ctrl-C ends the run cleanly; the next run resumes an unfinished cycle.
    """
    from recrawl.cli.terminal.run_report import print_report, watched  # lazy: the help does without

    with repository(ctx) as repo, watched(quiet=json) as watcher:
        for report in repo.run(
            every=every,
            budget=budget,
            policy=policy or None,
            bytes=bytes,
            sync=sync,
            count=count,
            progress=watcher.report,
            stop=Stop(),
            **rules,
        ):
            watcher.close()
            if json:
                json_line(report.as_dict())
            else:
                print_report(report)
