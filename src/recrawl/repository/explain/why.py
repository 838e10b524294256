"""Why a page was visited or not, and what the next cycle would do with it: in sentences and in numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.budget.allowance import Allowance
from recrawl.choose.protocol import LIKELY
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.reports.change_probability import change_probabilities, estimated_by
from recrawl.crawl.reports.next_plan import CyclePlan, next_plan
from recrawl.crawl.state.load_book import retry_time
from recrawl.errors import NotKnown, UsageError
from recrawl.record.storage import Storage
from recrawl.repository.explain.prediction import estimator
from recrawl.repository.lookup import page_of
from recrawl.repository.opening import options_of
from recrawl.repository.results.values import Explanation
from recrawl.repository.results.words import count, held_text, percent
from recrawl.repository.seed_rules import seed_url
from recrawl.settings import Settings, period_of
from recrawl.times import span, stamp

_STATES = {
    "found": "It was found but never downloaded.",
    "live": "It is live.",
    "missing": "The server answered 404 or 410; it counts as gone once that is confirmed.",
    "gone": "It is gone; it is checked again from time to time, and when a sitemap or a new link names it.",
    "moved": "It has moved; its new URL is visited instead, and this one is checked from time to time.",
    "barred": "robots.txt, a filter, its content type or a trap limit excludes it.",
    "dropped": "It was removed with 'recrawl rm'.",
}
_OUT = {
    "other-site": "it belongs to no site that was added; add one with 'recrawl add'",
    "excluded": "a pattern of its site excludes it",
    "not-included": "its site's patterns do not include it",
}


def explain(folder: Path, values: Settings, options: CrawlOptions, url: str, now: float) -> Explanation:
    """Why a page was visited or not, and whether the next cycle would choose it."""
    with Storage(folder) as storage:  # a connection of its own: the plan needs temporary tables
        page = find(storage, values, url)
        sentences, numbers = reasons(storage, values, page, now, options)
    return Explanation(page["url"], page["state"], tuple(sentences), numbers)


def find(repository: Storage, values: Settings, url: str) -> dict[str, Any]:
    """The page with this URL; the error explains why there is none."""
    try:
        return page_of(repository, url)
    except NotKnown as error:
        refusal = options_of(values).scopes.refuses(seed_url(url), 1)
        why = _OUT.get(refusal or "", "it was never found: no downloaded page and no sitemap links to it")
        raise NotKnown(f"{error}; {why}") from error


def reasons(
    repository: Storage, values: Settings, page: dict[str, Any], now: float, options: CrawlOptions | None = None
) -> tuple[list[str], dict[str, Any] | None]:
    """Sentences about a page, and the next cycle's numbers for it; None when the next cycle cannot be planned.

    The storage must have a connection of its own: the plan needs temporary tables.
    """
    store = repository.store
    moved = store.pages.get(page["target"])[0] if page["target"] >= 0 else ""
    stands = store.pages.representative_of([page["id"]]).get(page["id"])
    also = store.pages.copies_of([page["id"]]).get(page["id"], [])
    sentences = [f"{_STATES[page['state']]}{f' It redirects to {moved}.' if moved else ''}"]
    if stands is not None:
        sentences.append(
            f"It is a copy of {store.pages.get(stands).url}, which is visited in its place; this URL is visited when "
            "that page has changed, and once a month."
        )
    elif also:
        sentences.append(f"It stands for {count(len(also), 'other URL')} with the same page, such as {also[0]}.")
    visits = store.reports.visits_of_page(page["id"], limit=1)
    sentences += _last_visit(visits)
    sentences += _last_cycle(repository, page, visits)
    numbers: dict[str, Any] | None = None
    try:
        policy, budget, seed = make_policy(values["policy"]), values["budget"], values["seed"]
        plan = next_plan(repository, options or options_of(values), policy, budget, seed, ranked=page["id"])
        chance = float(change_probabilities(store, policy, plan.book, np.array([page["id"]]))[0])
        probability = None if math.isnan(chance) else chance
        numbers = {**_numbers(plan, page["id"], values["policy"]), "probability": probability}
        sentences += _habits(plan.book, page["id"], probability, estimated_by(policy))
        sentences.append(_next_cycle(repository, plan, numbers, page, period_of(values), now))
    except UsageError as error:  # the past can be explained even if the settings are invalid
        sentences.append(f"Cannot plan the next cycle: {error}.")
    return sentences, numbers


# -- the past -----------------------------------------------------------------------------------------------------


def _last_visit(visits: list[dict[str, Any]]) -> list[str]:
    if not visits:
        return ["It was never visited."]
    visit = visits[0]
    what = visit["failure"] or visit["outcome"]
    detail = f" ({visit['detail']})" if visit["detail"] else ""
    likely = visit["score"] is not None and (visit["reason"] or "").startswith(LIKELY)
    score = f", change probability then {percent(visit['score'])}" if likely else _scored(visit["score"])
    because = (
        f"because {visit['reason']} (policy {visit['policy']}{score})"
        if visit["reason"]
        else "when it was imported"
        if visit["kind"] == "import"
        else "as a crawl downloads all new pages"
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
        return [f"{name} its server had asked for a pause (Retry-After)."]
    if most is not None and spent["of_site"] >= most:
        return [f"{name} its site had reached its limit of {most:,} visits."]
    if page["site"] in limits.held and spent["of_site"] >= limits.held[page["site"]][1]:
        return [f"{name} {held_text('its site', *limits.held[page['site']])}."]
    if spent["received"] + max(page["size"], spent["received"] / max(1, spent["visits"])) > limits.bytes:
        return [f"{name} its limit of {limits.bytes / 1e6:,.1f} MB was used up."]
    if cycle.finished is None:
        return [f"Cycle {cycle.id} has not visited it yet and is unfinished."]
    if spent["visits"] < cycle.budget:
        made = f"{spent['visits']:,} of {cycle.budget:,} visits"
        return [f"{name} it ended after {made}, as the policy had no more pages to choose."]
    lowest = "" if spent["lowest"] is None else f", the last with score {_short(spent['lowest'])}"
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


def _habits(book: Book, page: int, probability: float | None, basis: str) -> list[str]:
    """What its visits found, and its change probability now."""
    compared, changed = int(book.visits[page]) - 1, int(book.changes[page]) - 1
    seen = f"It had changed at {max(0, changed):,} of {compared:,} visits after the first; it" if compared > 0 else "It"
    if probability is None:
        return []
    return [f"{seen} is {percent(probability)} likely to have changed since its last visit, by {estimator(basis)}."]


def _next_cycle(
    repository: Storage, plan: CyclePlan, numbers: dict[str, Any], page: dict[str, Any], period: float, now: float
) -> str:
    name = f"{numbers['policy']}, budget {numbers['budget']:,}"
    if not numbers["visitable"]:
        return _not_visitable(plan.book, page, now)
    line = (
        f"it ranks {numbers['place']:,} of {numbers['known']:,}{_scored(numbers['score'])}" if numbers["place"] else ""
    )
    if numbers["planned"]:
        return f"The next cycle ({name}) would visit it because {numbers['reason']}; {line}."
    no = f"The next cycle ({name}) would not reach it:"
    if numbers["site_most"] == 0:
        until = repository.store.sites.get(page["site"]).held_until
        return f"{no} its server asked for a pause until {stamp(until)}."
    if numbers["site_most"] is not None and numbers["site_planned"] >= numbers["site_most"]:
        return f"{no} its site is limited to {numbers['site_most']:,} visits, and as many of its pages rank higher."
    held = plan.allowance.held.get(int(plan.book.site[page["id"]]))
    if held is not None and numbers["site_planned"] >= held[1]:
        return f"{no} {held_text('its site', *held)}."
    if numbers["place"] is None:
        return f"The next cycle ({name}) would not choose it: by the policy's rule it is not due yet."
    if len(plan.pages) < numbers["budget"] and plan.allowance.bytes < math.inf:
        return f"{no} the {plan.allowance.bytes / 1e6:,.1f} MB of the cycle go to pages that rank higher; {line}."
    last = _scored(numbers["last_score"]).removeprefix(", ")
    cycles = -(-numbers["place"] // max(1, numbers["budget"]))
    return (
        f"{no} {line}{f'; the last page visited has {last}' if last else ''}; "
        f"at this rank its turn comes in about {cycles:,} cycles ({span(cycles * period)})."
    )


def _not_visitable(book: Book, page: dict[str, Any], now: float) -> str:
    failures, last_try = book.failures[[page["id"]]], book.last_try[[page["id"]]]
    retry = float(retry_time(failures, last_try)[0])
    if page["state"] in ("found", "live", "missing") and retry > book.now:
        ago = span(max(0.0, now - float(last_try[0])))
        return f"{count(int(failures[0]), 'failed attempt')}, the last {ago} ago; next try after {stamp(retry)}."
    if page["state"] in ("gone", "moved"):
        return "The next cycle does not check it yet."
    if page["state"] == "found":
        return "The next cycle cannot choose it: its site has reached its page limit (--limit)."
    return "The next cycle cannot choose it."
