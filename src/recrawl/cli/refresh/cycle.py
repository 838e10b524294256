"""`recrawl cycle`: refresh once, within a budget; with `--dry-run`, print the plan."""

from __future__ import annotations

from typing import Annotated, Any, Unpack

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, percent, say, table
from recrawl.cli.terminal.session import repository
from recrawl.cli.terminal.signals import Stop
from recrawl.parameters import Budget, Bytes, PolicyText, RunRules, TimeLimit, Wait

EXAMPLE = "Example: recrawl cycle --budget 500 --policy 'round-robin(order=shuffled)'"
_MOST_ROWS = 20


def command(
    ctx: typer.Context,
    budget: Budget = None,
    bytes: Bytes = "",  # noqa: A002
    policy: PolicyText = "",
    time_limit: TimeLimit = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan (pages and reasons) without visiting anything.")
    ] = False,
    wait: Wait = False,
    json: AsJson = False,
    **rules: Unpack[RunRules],
) -> None:
    """Refresh once: visit the pages that the policy chooses, within the budget."""
    from recrawl.cli.terminal.run_report import end_run, watched  # lazy: the help does without

    options: dict[str, Any] = {
        "budget": budget,
        "policy": policy or None,
        "bytes": bytes,
        "time_limit": time_limit,
        **rules,
    }
    stop = Stop()
    with repository(ctx) as repo:
        if dry_run:
            plan = repo.plan(**options).as_dict()
            as_json(plan) if json else _print_plan(plan)
            return
        with watched(quiet=json) as watcher:
            report = repo.cycle(**options, wait=wait, progress=watcher.report, stop=stop)
    end_run(report, stop, json=json)


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
