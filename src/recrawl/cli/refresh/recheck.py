"""`recrawl recheck`: visit pages or sites now."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.cli.terminal.output import AsJson, as_json, note, say
from recrawl.cli.terminal.session import repository
from recrawl.cli.terminal.signals import Stop
from recrawl.errors import RepositoryBusy
from recrawl.parameters import Wait

EXAMPLE = "Example: recrawl recheck https://example.org/news"


def command(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL|SITE]...", help="A page, or a site as example.org: all of its pages."),
    ] = None,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Visit pages now, whatever the policy would choose and beyond the budget of the cycles.

    Without a target, visit what was requested before and pages whose interval ('recrawl add --every') is over. While
    another process works on the repository, the request is stored and the next cycle fulfils it.
    """
    from recrawl.cli.terminal.run_report import print_report, watched  # lazy: the help does without

    stop = Stop()
    with repository(ctx) as repo, watched(quiet=json) as watcher:
        try:
            report = repo.recheck(*(targets or ()), wait=wait, progress=watcher.report, stop=stop)
        except RepositoryBusy as busy:
            note(f"{busy}; the request is stored and the next cycle fulfils it")
            raise
    if json:
        as_json(None if report is None else report.as_dict())
    elif report is None:
        say("nothing to visit")
    else:
        print_report(report)
    stop.end(finished=report is not None and report.finished)
