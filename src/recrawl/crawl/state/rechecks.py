"""When pages that are gone or have moved are visited again: at a slow pace, whatever the policy.

Policies do not know these pages. A small share of every cycle's budget is reserved for those that are due, and what a
policy leaves of its budget goes to the others (`recrawl.choose.budget.budgeted`).

The first check is due after 7 days; after 1 day for pages that the user gave (seeds), and on sites where many pages are
away, because a failure of the server is likelier there than a clean-up. Each check that finds nothing doubles the time
to the next, up to 30 days; up to 7 days for pages that the user gave.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from recrawl.choose.top_k import rank_within
from recrawl.columns import DAY, Flags, Floats, Ints
from recrawl.compare.gone import vanishing
from recrawl.model import State
from recrawl.record.store import Columns, Store

_FIRST = 7 * DAY
_FIRST_SOON = DAY
_LAST = 30 * DAY
_LAST_GIVEN = 7 * DAY
_SHARE = 0.02
"""Share of a cycle's budget that is reserved."""


def due_rechecks(store: Store, now: float) -> Ints:
    """The pages that are due for a check, in order: given ones first, then each site's first, each site's second ..."""
    absent = store.pages.absent()
    times = next_checks(store, absent)
    order = np.lexsort((times, ~absent["given"]))
    order = order[times[order] <= now]
    turn = rank_within(absent["site"][order])
    order = order[np.lexsort((turn, ~absent["given"][order]))]
    pages: Ints = absent["id"][order]
    return pages


def absent_pages(store: Store, now: float) -> set[int]:
    """The pages that are gone or have moved and are due for a check at this time."""
    absent = store.pages.absent()
    return set(absent["id"][next_checks(store, absent) <= now].tolist())


def next_checks(store: Store, absent: Columns) -> Floats:
    """When each page of `PageTable.absent` is visited again."""
    soon = absent["given"] | _many_away(store, absent["site"])
    first = np.where(soon, _FIRST_SOON, _FIRST)
    last = np.where(absent["given"], _LAST_GIVEN, _LAST)
    wait: Floats = absent["last_try"] + np.minimum(first * 2.0 ** np.minimum(absent["failures"], 20), last)
    return wait


def reserved(budget: int, cycle: int) -> int:
    """Visits of a cycle that are reserved for checks; small budgets save them up over several cycles.

    >>> reserved(1000, 7), [reserved(10, cycle) for cycle in range(10)]
    (20, [0, 0, 0, 0, 1, 0, 0, 0, 0, 1])
    """
    each = _SHARE * budget
    return int((cycle + 1) * each + 1e-9) - int(cycle * each + 1e-9)


def _many_away(store: Store, site: Ints) -> Flags:
    """Whether each page's site has lost many of its pages."""
    live = Counter({number: count for number, state, count in store.pages.count_by_state() if state == State.LIVE})
    away = Counter(site.tolist())
    many = {number for number, count in away.items() if vanishing(live[number], count)}
    return np.array([number in many for number in site.tolist()], bool)
