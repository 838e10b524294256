"""The plan of the next cycle: what it would visit, and why."""

from __future__ import annotations

import numpy as np

from recrawl.choose import Policy, policy_of
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.change_probability import change_probabilities
from recrawl.crawl.reports.next_plan import CyclePlan, next_plan
from recrawl.learn import value
from recrawl.record.storage import Storage
from recrawl.repository.results.runs import Plan, PlannedVisit
from recrawl.repository.results.values import Row
from recrawl.settings import Settings

OBJECTIVES = value.OBJECTIVES
"""Names of what a policy with the parameter `objective` can optimise."""


def plan(
    storage: Storage,
    values: Settings,
    options: CrawlOptions,
    *,
    policy: str | Policy | None = None,
    budget: float | None = None,
    seconds: float = float("inf"),
) -> Plan:
    """What a cycle would visit if it began now, without any request."""
    amount = values["budget"] if budget is None else budget
    chosen = policy_of(policy or values["policy"])
    return described(storage, chosen, next_plan(storage, options, chosen, amount, values["seed"], seconds=seconds))


def described(storage: Storage, chosen: Policy, found: CyclePlan) -> Plan:
    """A plan with the URLs and sites of its pages, and their change probabilities."""
    rows = storage.store.pages.get_many(found.pages.tolist())
    chances = change_probabilities(storage.store, chosen, found.book, found.pages)
    known = [None if np.isnan(chance) else float(chance) for chance in chances]
    visits = zip(found.pages.tolist(), found.score.tolist(), found.reasons, known, strict=True)
    return Plan(
        policy=found.cycle.policy,
        budget=found.cycle.budget,
        sure=found.sure,
        sites=tuple(_by_site(storage, found)),
        pages=tuple(
            PlannedVisit(place, rows[page][0], score, reason, probability)
            for place, (page, score, reason, probability) in enumerate(visits, 1)
        ),
    )


def _by_site(storage: Storage, found: CyclePlan) -> list[Row]:
    """Visits by site, most first, with the site's limit where there is one."""
    origins = [row.origin for row in storage.store.sites.all()]
    visits = np.bincount(found.book.site[found.pages], minlength=len(origins))
    known = np.bincount(found.book.site[found.book.known], minlength=len(origins))
    limits = found.allowance
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
