"""`recrawl cycle`: refresh once, within a budget; with `--dry-run`, print the plan."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, percent, say, table
from recrawl.cli.terminal.run_report import end_run, watched
from recrawl.cli.terminal.session import AllowPrivate, Budget, Bytes, Change, Delay, PolicyText, Stop, Wait, repository

EXAMPLE = "Example: recrawl cycle --budget 500 --policy 'round-robin(order=shuffled)'"
_MOST_ROWS = 20


def command(
    ctx: typer.Context,
    budget: Budget = None,
    bytes_: Bytes = "",
    policy: PolicyText = "",
    time_limit: Annotated[str, typer.Option("--for", metavar="DURATION", help="End the cycle after this long.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan (pages and reasons) without visiting anything.")
    ] = False,
    wait: Wait = False,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    change: Change = "",
    json: AsJson = False,
) -> None:
    """Refresh once: visit the pages that the policy chooses, within the budget."""
    options: dict[str, Any] = {
        "budget": budget,
        "policy": policy or None,
        "bytes": bytes_,
        "time_limit": time_limit or None,
        "allow_private": allow_private,
        "delay": delay,
        "change": change,
    }
    with repository(ctx) as repo:
        if dry_run:
            plan = repo.plan(**options).as_dict()
            as_json(plan) if json else _print_plan(plan)
            return
        with watched(quiet=json) as watcher:
            report = repo.cycle(**options, wait=wait, progress=watcher.report, stop=Stop())
    end_run(report, json=json)


def _print_plan(plan: dict[str, Any]) -> None:
    pages, sites = plan["pages"], plan["sites"]
    say(f"{plan['policy']} would use {count(len(pages), 'visit')} of its budget of {plan['budget']:,}")
    if plan["sure"] < len(pages):
        say(f"the first {plan['sure']:,} are certain; the others assume that those are found unchanged")
    if not pages:
        return
    say()
    table(sites[:_MOST_ROWS], {"site": "site", "visits": ">visits", "pages": ">pages", "at_most": ">at most"})
    say()
    shown = ({**row, "probability": percent(row["probability"])} for row in pages[:_MOST_ROWS])
    columns = {"place": ">no", "url": "page", "probability": ">change probability", "score": ">score"}
    table(shown, {**columns, "reason": "reason"})
    if len(pages) > _MOST_ROWS:
        say(f"... and {len(pages) - _MOST_ROWS:,} more; --json lists all")
