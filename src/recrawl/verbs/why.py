"""Why a page was visited, or why it was not, and whether the next cycle would choose it."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.choose import make_policy
from recrawl.choose.predicted import LIKELY
from recrawl.engine.anchors import told
from recrawl.engine.cycles import budget_of
from recrawl.engine.memory import ready_book
from recrawl.engine.needs import check_needs
from recrawl.engine.weights import weigh
from recrawl.errors import UsageError
from recrawl.record import questions
from recrawl.record.repository import Repository
from recrawl.record.rows import CycleRow
from recrawl.settings import Settings
from recrawl.verbs.opening import options_of
from recrawl.verbs.times import span, stamp

_STATES = {
    "found": "It was found but never downloaded.",
    "live": "It is kept.",
    "missing": "The server says it is not there; it counts as gone only when that is confirmed.",
    "gone": "It is gone, and no longer visited unless a sitemap names it again.",
    "moved": "It has moved; its new address is visited instead.",
    "barred": "robots.txt keeps us out.",
    "dropped": "It was removed with 'recrawl rm'.",
}


def reasons(
    repository: Repository, values: Settings, page: dict[str, Any], now: float
) -> tuple[list[str], dict[str, Any] | None]:
    """Sentences about a page, and what the next cycle plans with it; None when that cannot be told.

    The repository must be open in a connection of its own: the plan needs tables for a while.
    """
    visits = questions.visits(repository.store.db, page["id"], limit=1)
    moved = repository.store.page(page["target"])[0] if page["target"] >= 0 else ""
    try:
        plan = _plan(repository, values, page["id"], now)
        next_time = _next(plan, page, values, now)
    except UsageError as error:  # the settings ask for what this repository cannot do; the rest can still be told
        plan, next_time = None, [f"The next cycle cannot be told: {error}."]
    state = f"{_STATES[page['state']]}{f' It leads to {moved}.' if moved else ''}"
    return [state, *_last(visits), *next_time], plan


def _last(visits: list[dict[str, Any]]) -> list[str]:
    if not visits:
        return ["It was never visited."]
    visit = visits[0]
    what = visit["failure"] or visit["outcome"]
    detail = f" ({visit['detail']})" if visit["detail"] else ""
    likely = visit["score"] is not None and (visit["reason"] or "").startswith(LIKELY)
    chance = f": {visit['score']:.0%}" if likely else ""
    because = (
        f"because it {visit['reason']}{chance} (policy {visit['policy']})"
        if visit["reason"]
        else "where it was imported"
        if visit["kind"] == "import"
        else "as a crawl downloads everything that is new"
    )
    return [f"Last visit: {stamp(visit['at'])}, {what}{detail}, in {visit['kind']} {visit['cycle']}, {because}."]


def _plan(repository: Repository, values: Settings, page: int, now: float) -> dict[str, Any]:
    """What the next cycle would ask for first, with the settings of today."""
    store = repository.store
    number = store.next_id("cycles")
    seed = int(values["seed"]) * 1_000_003 + number
    numbers = store.next_id("visits"), store.next_id("pages")
    row = CycleRow(number, "cycle", values["policy"], 0, seed, now, None, *numbers)
    options = options_of(values)
    limits = {
        site.id: options.sites[site.origin].limit
        for site in store.sites()
        if site.origin in options.sites and options.sites[site.origin].limit is not None
    }
    known = {key: value for key, value in limits.items() if value is not None}
    policy = make_policy(values["policy"])
    check_needs(policy)
    book, _ = ready_book(repository, policy, row, known, begin=False, told=told(store, options.anchors))
    weigh(book, repository, row, options.weights, begin=False)
    budget = budget_of(values["budget"], store)
    first = next(policy.cycle(book, len(book), np.random.default_rng(seed)), None)
    place = np.flatnonzero(first.pages == page) if first is not None else np.zeros(0)
    return {
        "policy": values["policy"],
        "budget": budget,
        "known": int(book.known.sum()),
        "visitable": bool(book.known[page]),
        "place": int(place[0]) + 1 if len(place) else None,
        "failures": int(book.failures[page]),
    }


def _next(plan: dict[str, Any], page: dict[str, Any], values: Settings, now: float) -> list[str]:
    name = values["policy"]
    if not plan["visitable"]:
        if page["state"] in ("found", "live", "missing") and plan["failures"]:
            tried = span(max(0.0, now - page["last_try"]))
            return [f"It failed {plan['failures']} times in a row, last {tried} ago, and is left alone for a while."]
        return ["The next cycle cannot choose it."]
    if plan["place"] is None:
        return [f"The next cycle ({name}) would not ask for it at first."]
    verdict = "would visit it" if plan["place"] <= plan["budget"] else "would not reach it"
    line = f"it is number {plan['place']:,} of {plan['known']:,} in line"
    return [f"The next cycle ({name}, budget {plan['budget']:,}) {verdict}: {line}."]
