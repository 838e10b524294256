"""`recrawl crawl`: discover and download new pages."""

from __future__ import annotations

from typing import Unpack

import typer

from recrawl.cli.terminal.output import AsJson
from recrawl.cli.terminal.session import repository
from recrawl.cli.terminal.signals import Stop
from recrawl.parameters import CrawlRules, TimeLimit, Wait

EXAMPLE = "Example: recrawl crawl --for 10m"


def command(
    ctx: typer.Context,
    time_limit: TimeLimit = None,
    wait: Wait = False,
    json: AsJson = False,
    **rules: Unpack[CrawlRules],
) -> None:
    """Discover and download new pages: known pages that were never visited, and the pages they link to.

    With --for, the next crawl continues where this one stopped.
    """
    from recrawl.cli.terminal.run_report import end_run, watched  # lazy: the help does without

    stop = Stop()
    with repository(ctx) as repo, watched(quiet=json) as watcher:
        report = repo.crawl(time_limit=time_limit, wait=wait, progress=watcher.report, stop=stop, **rules)
    end_run(report, stop, json=json)
