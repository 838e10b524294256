"""`recrawl cycle`."""

from __future__ import annotations

from typing import Annotated

import typer

from recrawl.choose import describe, make_policy
from recrawl.cli.dry_run import show_plan
from recrawl.cli.output import AsJson, as_json, note
from recrawl.cli.session import (
    AllowPrivate,
    Bytes,
    Delay,
    Stop,
    folder_of,
    load,
    options_of,
    reading,
    with_bytes,
    writing,
)
from recrawl.cli.watch_run import tell, watched
from recrawl.crawl import cycles
from recrawl.crawl.reports.next_plan import next_plan
from recrawl.repository.times import duration
from recrawl.repository.turns import summary_of

EXAMPLE = "Example: recrawl cycle --budget 500 --policy 'round-robin(order=shuffled)'"


def command(
    ctx: typer.Context,
    budget: Annotated[
        float | None, typer.Option(help="Most visits; under 1, a share of the pages. Default: the setting.")
    ] = None,
    bytes_: Bytes = "",
    policy: Annotated[str, typer.Option(help="How to choose pages; see 'recrawl policies'.")] = "",
    time_limit: Annotated[str, typer.Option("--for", metavar="DURATION", help="End the cycle after this long.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan: what would be visited, and why. Nothing is.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait while another command works on the repository.")] = False,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    json: AsJson = False,
) -> None:
    """Refresh: visit the pages that the policy chooses, at most as many as the budget allows."""
    folder = folder_of(ctx)
    values = load(folder)
    chosen = make_policy(policy or values["policy"])
    options = with_bytes(options_of(values, allow_private=allow_private, delay=delay), bytes_)
    seconds = duration(time_limit) if time_limit else float("inf")
    if dry_run:
        with reading(ctx) as repository:
            amount = values["budget"] if budget is None else budget
            show_plan(repository, next_plan(repository, options, chosen, amount, values["seed"], seconds=seconds), json)
        return
    stop = Stop()
    with writing(folder, "cycle", options, values, wait=wait) as repository:
        amount = values["budget"] if budget is None else budget
        visits = cycles.budget_of(amount, repository.store)
        before = cycles.unfinished(repository.store, "cycle")
        if before is not None:
            note(f"going on with cycle {before.id} ({before.policy}, budget {before.budget:,})")
            if policy and before.policy != describe(chosen):
                note("its policy is kept; the one given here would be used by the next cycle")
        with watched("visiting", visits, quiet=json) as progress:
            controls = cycles.Controls(stop=stop, progress=progress, seconds=seconds)
            summary = cycles.cycle(repository, options, chosen, visits, values["seed"], controls)
    if json:
        as_json(summary_of(summary))
    else:
        tell(summary)
