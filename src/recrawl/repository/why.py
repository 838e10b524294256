"""Why a page was visited, why it was not, and what the next cycle thinks of it: in sentences, with the numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.papers.change_frequency import page_rates
from recrawl.choose.papers.predicted import LIKELY
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.next_plan import CyclePlan, next_plan
from recrawl.errors import NotKnown, UsageError
from recrawl.record.storage import Storage
from recrawl.repository.lookup import page_of
from recrawl.repository.opening import options_of, seed_url
from recrawl.repository.turns import period_of
from recrawl.repository.values import Explanation
from recrawl.settings import Settings
from recrawl.times import span, stamp

_STATES = {
    "found": "It was found but never downloaded.",
    "live": "It is kept.",
    "missing": "The server says it is not there; it counts as gone only when that is confirmed.",
    "gone": "It is gone, and no longer visited unless a sitemap names it again.",
    "moved": "It has moved; its new address is visited instead.",
    "barred": "robots.txt keeps us out.",
    "dropped": "It was removed with 'recrawl rm'.",
}
_DAY = 86400.0


_OUT = {
    "other-site": "no site that was added holds it: name one with 'recrawl add'",
    "excluded": "a pattern of its site excludes it",
    "not-included": "its site's patterns do not include it",
}


def explain(folder: Path, values: Settings, options: CrawlOptions, url: str, now: float) -> Explanation:
    """Why a page was visited or not, and whether the next cycle would choose it."""
    with Storage(folder) as storage:  # a connection of its own: the plan needs temporary tables
        page = find(storage, values, url)
        told, numbers = reasons(storage, values, page, now, options)
    return Explanation(page["url"], page["state"], tuple(told), numbers)


def find(repository: Storage, values: Settings, url: str) -> dict[str, Any]:
    """The page that a URL names; where there is none, the error says why."""
    try:
        return page_of(repository, url)
    except NotKnown as error:
        refusal = options_of(values).scopes.refuses(seed_url(url), 1)
        why = _OUT.get(refusal or "", "it was never found: no page that was downloaded names it, and no sitemap")
        raise NotKnown(f"{error}; {why}") from error


def reasons(
    repository: Storage, values: Settings, page: dict[str, Any], now: float, options: CrawlOptions | None = None
) -> tuple[list[str], dict[str, Any] | None]:
    """Sentences about a page, and what the next cycle plans with it in numbers; None when that cannot be told.

    The repository must be open in a connection of its own: the plan needs tables for a while.
    """
    store = repository.store
    moved = store.pages.get(page["target"])[0] if page["target"] >= 0 else ""
    sentences = [f"{_STATES[page['state']]}{f' It leads to {moved}.' if moved else ''}"]
    visits = store.reports.visits_of_page(page["id"], limit=1)
    sentences += _last_visit(visits)
    sentences += _last_cycle(repository, page, visits)
    numbers: dict[str, Any] | None = None
    try:
        policy, budget, seed = make_policy(values["policy"]), values["budget"], values["seed"]
        plan = next_plan(repository, options or options_of(values), policy, budget, seed, ranked=True)
        numbers = _numbers(plan, page["id"], values["policy"])
        sentences += _habits(plan.book, page["id"])
        sentences.append(_next_cycle(repository, plan, numbers, page, period_of(values), now))
    except UsageError as error:  # the settings ask for what this repository cannot do; the rest can still be told
        sentences.append(f"The next cycle cannot be told: {error}.")
    return sentences, numbers


# -- the past -----------------------------------------------------------------------------------------------------


def _last_visit(visits: list[dict[str, Any]]) -> list[str]:
    if not visits:
        return ["It was never visited."]
    visit = visits[0]
    what = visit["failure"] or visit["outcome"]
    detail = f" ({visit['detail']})" if visit["detail"] else ""
    likely = visit["score"] is not None and (visit["reason"] or "").startswith(LIKELY)
    score = f", probability {visit['score']:.0%}" if likely else _scored(visit["score"])
    because = (
        f"because {visit['reason']} (policy {visit['policy']}{score})"
        if visit["reason"]
        else "where it was imported"
        if visit["kind"] == "import"
        else "as a crawl downloads everything that is new"
    )
    return [f"Last visit: {stamp(visit['at'])}, {what}{detail}, in {visit['kind']} {visit['cycle']}, {because}."]


def _scored(score: float | None) -> str:
    if score is None or not math.isfinite(score):
        return ""
    return f", score {_short(score)}"


def _short(score: float) -> str:
    return f"{score:,.0f}" if abs(score) >= 1000 else f"{score:.3g}"


def _last_cycle(repository: Storage, page: dict[str, Any], visits: list[dict[str, Any]]) -> list[str]:
    """Why the last cycle left the page out, if it did."""
    cycle = next((row for row in repository.store.cycles.newest(limit=20) if row.kind == "cycle"), None)
    if cycle is None or page["id"] >= cycle.known or (visits and visits[0]["cycle"] == cycle.id):
        return []
    spent = repository.store.reports.spent(cycle.id, cycle.first_visit, page["site"])
    limits = Allowance.of(cycle.limits or "")
    most = limits.most.get(page["site"], limits.site_most)
    name = f"Cycle {cycle.id} did not visit it:"
    if most == 0:
        return [f"{name} its server wanted to be left alone."]
    if most is not None and spent["of_site"] >= most:
        return [f"{name} its site got the {most:,} visits that it may have."]
    if spent["received"] + max(page["size"], spent["received"] / max(1, spent["visits"])) > limits.bytes:
        return [f"{name} the {limits.bytes / 1e6:,.1f} MB that it may receive were used up."]
    if cycle.finished is None:
        return [f"Cycle {cycle.id} has not visited it, but is not finished."]
    if spent["visits"] < cycle.budget:
        return [
            f"{name} it ended after {spent['visits']:,} of {cycle.budget:,} visits, with nothing more it could ask for."
        ]
    lowest = "" if spent["lowest"] is None else f", the last of them with a score of {_short(spent['lowest'])}"
    return [f"{name} its {cycle.budget:,} visits went to pages that {cycle.policy} ranked higher{lowest}."]


# -- the future ---------------------------------------------------------------------------------------------------


def _numbers(plan: CyclePlan, page: int, policy: str) -> dict[str, Any]:
    planned = plan.pages
    at = np.flatnonzero(planned == page)
    rank = plan.rank(page)
    site = int(plan.book.site[page])
    most = plan.allowance.most.get(site, plan.allowance.site_most)
    return {
        "policy": policy,
        "budget": plan.cycle.budget,
        "known": int(plan.book.known.sum()),
        "visitable": bool(plan.book.known[page]),
        "place": int(at[0]) + 1 if len(at) else rank[0] if rank else None,
        "planned": bool(len(at)),
        "score": float(plan.score[at[0]]) if len(at) else rank[1] if rank else None,
        "reason": plan.reasons[at[0]] if len(at) else None,
        "last_score": float(plan.score[-1]) if len(planned) else None,
        "site_most": most,
        "site_planned": int(np.count_nonzero(plan.book.site[planned] == site)),
        "failures": int(plan.book.failures[page]),
    }


def _habits(book: Book, page: int) -> list[str]:
    """How often it changes, by its own history."""
    compared, changed = int(book.visits[page]) - 1, int(book.changes[page]) - 1
    if compared < 1:
        return []
    rate = float(page_rates(book)[page])
    chance = -math.expm1(-rate * max(0.0, book.now - float(book.last_visit[page])) / _DAY)
    seen = f"It had changed at {max(0, changed):,} of {compared:,} visits after the first"
    return [f"{seen}; by that alone, the chance that it has changed by now is {chance:.0%}."]


def _next_cycle(
    repository: Storage, plan: CyclePlan, told: dict[str, Any], page: dict[str, Any], period: float, now: float
) -> str:
    name = f"{told['policy']}, budget {told['budget']:,}"
    if not told["visitable"]:
        return _barred(told, page, now)
    line = (
        f"it is number {told['place']:,} of {told['known']:,} in line{_scored(told['score'])}" if told["place"] else ""
    )
    if told["planned"]:
        return f"The next cycle ({name}) would visit it because {told['reason']}; {line}."
    no = f"The next cycle ({name}) would not reach it:"
    if told["site_most"] == 0:
        until = repository.store.sites.get(page["site"]).held_until
        return f"{no} its server wants to be left alone until {stamp(until)}."
    if told["site_most"] is not None and told["site_planned"] >= told["site_most"]:
        return f"{no} its site gets at most {told['site_most']:,} visits, and that many of its pages come before it."
    if told["place"] is None:
        return f"The next cycle ({name}) would not ask for it: its time has not come by the policy's rule."
    if len(plan.pages) < told["budget"] and plan.allowance.bytes < math.inf:
        return f"{no} the {plan.allowance.bytes / 1e6:,.1f} MB of the cycle go to pages before it; {line}."
    last = _scored(told["last_score"]).removeprefix(", ")
    cycles = -(-told["place"] // max(1, told["budget"]))
    return (
        f"{no} {line}{f', the last one visited has {last}' if last else ''}; "
        f"if nothing changed its place, its turn would come in about {cycles:,} cycles ({span(cycles * period)})."
    )


def _barred(told: dict[str, Any], page: dict[str, Any], now: float) -> str:
    if page["state"] in ("found", "live", "missing") and told["failures"]:
        tried = span(max(0.0, now - page["last_try"]))
        return f"It failed {told['failures']} times in a row, last {tried} ago, and is left alone for a while."
    if page["state"] == "found":
        return "The next cycle cannot choose it: its site has as many pages as it may have (--limit)."
    return "The next cycle cannot choose it."
