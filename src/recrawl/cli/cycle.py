"""`recrawl cycle`: refresh once, within a budget; with `--dry-run`, show the plan."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from recrawl.choose import describe, make_policy
from recrawl.cli.terminal.output import AsJson, as_json, count, note, say, table
from recrawl.cli.terminal.run_report import print_summary, watched
from recrawl.cli.terminal.session import (
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
from recrawl.crawl import cycles
from recrawl.crawl.reports.next_plan import CyclePlan, next_plan
from recrawl.record.storage import Storage
from recrawl.repository.turns import summary_of
from recrawl.times import duration

EXAMPLE = "Example: recrawl cycle --budget 500 --policy 'round-robin(order=shuffled)'"
_MOST_ROWS = 20


def command(
    ctx: typer.Context,
    budget: Annotated[
        float | None, typer.Option(help="Limit of visits; below 1, a share of the pages. Default: the setting.")
    ] = None,
    bytes_: Bytes = "",
    policy: Annotated[
        str, typer.Option(help="Policy that chooses the pages: a name from 'recrawl policies', or module:Class(args).")
    ] = "",
    time_limit: Annotated[str, typer.Option("--for", metavar="DURATION", help="End the cycle after this long.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan (pages and reasons) without visiting anything.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait if another command is writing to the repository.")] = False,
    allow_private: AllowPrivate = False,
    delay: Delay = None,
    json: AsJson = False,
) -> None:
    """Refresh once: visit the pages that the policy chooses, within the budget."""
    folder = folder_of(ctx)
    values = load(folder)
    chosen = make_policy(policy or values["policy"])
    options = with_bytes(options_of(values, allow_private=allow_private, delay=delay), bytes_)
    seconds = duration(time_limit) if time_limit else float("inf")
    if dry_run:
        with reading(ctx) as repository:
            amount = values["budget"] if budget is None else budget
            _show_plan(
                repository, next_plan(repository, options, chosen, amount, values["seed"], seconds=seconds), json
            )
        return
    stop = Stop()
    with writing(folder, "cycle", options, values, wait=wait) as repository:
        amount = values["budget"] if budget is None else budget
        visits = cycles.budget_of(amount, repository.store)
        before = cycles.unfinished(repository.store, "cycle")
        if before is not None:
            note(f"resuming cycle {before.id} ({before.policy}, budget {before.budget:,})")
            if policy and before.policy != describe(chosen):
                note("it keeps its policy; --policy applies from the next cycle on")
        with watched("visiting", visits, quiet=json) as progress:
            controls = cycles.Controls(stop=stop, progress=progress, seconds=seconds)
            summary = cycles.cycle(repository, options, chosen, visits, values["seed"], controls)
    if json:
        as_json(summary_of(summary))
    else:
        print_summary(summary)


def _show_plan(repository: Storage, plan: CyclePlan, json: bool) -> None:
    """Print which sites and pages would be visited."""
    pages, sites = _pages(repository, plan), _sites(repository, plan)
    if json:
        as_json(
            {
                "policy": plan.cycle.policy,
                "budget": plan.cycle.budget,
                "sure": plan.sure,
                "sites": sites,
                "pages": pages,
            }
        )
        return
    say(f"{plan.cycle.policy} would use {count(len(pages), 'visit')} of its budget of {plan.cycle.budget:,}")
    if plan.sure < len(pages):
        say(f"the first {plan.sure:,} are certain; the others assume that those are found unchanged")
    if not pages:
        return
    say()
    table(sites[:_MOST_ROWS], {"site": "site", "visits": ">visits", "pages": ">pages", "at_most": ">at most"})
    say()
    table(pages[:_MOST_ROWS], {"place": ">no", "url": "page", "score": ">score", "reason": "reason"})
    if len(pages) > _MOST_ROWS:
        say(f"... and {len(pages) - _MOST_ROWS:,} more; --json lists all")


def _pages(repository: Storage, plan: CyclePlan) -> list[dict[str, Any]]:
    rows = repository.store.pages.get_many(plan.pages.tolist())
    chosen = zip(plan.pages.tolist(), plan.score.tolist(), plan.reasons, strict=True)
    return [
        {"place": place, "url": rows[page][0], "score": score, "reason": reason}
        for place, (page, score, reason) in enumerate(chosen, 1)
    ]


def _sites(repository: Storage, plan: CyclePlan) -> list[dict[str, Any]]:
    """Visits per site, most visits first, with the limit where there is one."""
    origins = [row.origin for row in repository.store.sites.all()]
    visits = np.bincount(plan.book.site[plan.pages], minlength=len(origins))
    known = np.bincount(plan.book.site[plan.book.known], minlength=len(origins))
    limits = plan.allowance
    return [
        {
            "site": origins[site],
            "visits": int(visits[site]),
            "pages": int(known[site]),
            "at_most": limits.most.get(site, limits.site_most),
        }
        for site in np.argsort(-visits, kind="stable").tolist()
        if visits[site] or limits.most.get(site) == 0
    ]
