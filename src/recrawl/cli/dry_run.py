"""The plan of a cycle, as `recrawl cycle --dry-run` shows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.cli.output import as_json, count, say, table
from recrawl.crawl.reports.next_plan import CyclePlan
from recrawl.record.storage import Storage

_SHOWN = 20


def show_plan(repository: Storage, plan: CyclePlan, json: bool) -> None:
    """What would be visited, by site and page."""
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
    say(f"{plan.cycle.policy} would make {count(len(pages), 'visit')} of {plan.cycle.budget:,} it may make")
    if plan.sure < len(pages):
        say(f"it chooses {plan.sure:,} at first; the others as if those had been found unchanged")
    if not pages:
        return
    say()
    table(sites[:_SHOWN], {"site": "site", "visits": ">visits", "pages": ">pages", "at_most": ">at most"})
    say()
    table(pages[:_SHOWN], {"place": ">no", "url": "page", "score": ">score", "reason": "because it"})
    if len(pages) > _SHOWN:
        say(f"... and {len(pages) - _SHOWN:,} more; --json lists all")


def _pages(repository: Storage, plan: CyclePlan) -> list[dict[str, Any]]:
    rows = repository.store.pages(plan.pages.tolist())
    told = zip(plan.pages.tolist(), plan.score.tolist(), plan.reasons, strict=True)
    return [
        {"place": place, "url": rows[page][0], "score": score, "reason": reason}
        for place, (page, score, reason) in enumerate(told, 1)
    ]


def _sites(repository: Storage, plan: CyclePlan) -> list[dict[str, Any]]:
    """Where the visits would go, most of them first; the limit is given where there is one."""
    origins = [row.origin for row in repository.store.sites()]
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
