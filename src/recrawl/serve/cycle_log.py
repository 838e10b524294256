"""What the service says about its cycles: the plan when it starts, then a line for each crawl and cycle.

The lines also tell of a `recrawl cycle` that was started by hand: they follow the events of the watcher, which reads
the store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from recrawl.repository.opening import TEMPORARY_ERRORS
from recrawl.repository.reports import activity
from recrawl.repository.results.words import count
from recrawl.repository.turns import visits_of
from recrawl.serve.context import Context
from recrawl.times import iso, span, stamp

_WORDS = ("new", "changed", "gone", "unchanged", "missing", "skipped", "failed")


def plan(context: Context) -> dict[str, Any]:
    """Return what the scheduler will do: when, how much, by which policy, for how many pages."""
    values, status = context.settings(), context.scheduler.status()
    with context.reading() as repository:
        pages, visits = repository.page_count, visits_of(repository, values)
    return {
        "scheduled": status.enabled and not status.paused,
        "paused": status.paused,
        "next_cycle": iso(status.cycle_due),
        "due_in": None if status.cycle_due is None else max(0.0, status.cycle_due - context.clock()),
        "every": values["every"],
        "policy": values["policy"],
        "budget": values["budget"],
        "visits": visits,
        "pages": pages,
        "seeds": len(values.seeds),
    }


def describe_plan(planned: dict[str, Any]) -> str:
    """Return the plan as a sentence.

    >>> plan = {"scheduled": True, "due_in": 60.0, "next_cycle": "2026-03-01T00:00:00.000+00:00", "every": "1d",
    ...         "policy": "shock", "budget": 0.1, "visits": 35, "pages": 352, "seeds": 1, "paused": False}
    >>> describe_plan(plan)
    'next cycle in 60 s (2026-03-01 00:00Z), then every 1d: policy shock, budget 35 of 352 pages'
    """
    if not planned["seeds"] and not planned["pages"]:
        return "no site was added yet; add one in the dashboard under Settings, or with 'recrawl add URL'"
    what = f"policy {planned['policy']}, budget {planned['visits']:,} of {count(planned['pages'], 'page')}"
    if planned["paused"]:
        return f"the scheduler is paused; resume it in the dashboard. When resumed: {what}"
    if not planned["scheduled"]:
        return "scheduled cycles are off (--no-schedule); start one in the dashboard or with 'recrawl cycle'"
    begin = "first crawl starts now" if not planned["pages"] else "next cycle starts now"
    if planned["due_in"]:
        begin = f"next cycle in {span(planned['due_in'])} ({planned['next_cycle'][:16].replace('T', ' ')}Z)"
    return f"{begin}, then every {planned['every']}: {what}"


class CycleLog:
    """Writes a line for each crawl or cycle that starts, finishes or fails."""

    def __init__(self, context: Context, write: Callable[[str], None]) -> None:
        self._context = context
        self._write = write

    def __call__(self, kind: str, data: dict[str, Any]) -> None:
        """Take an event."""
        with contextlib.suppress(*TEMPORARY_ERRORS):  # a line is lost, the service goes on
            self._take(kind, data)

    def _take(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "cycle" and data["finished"] is None and data["kind"] == "cycle":
            self._line(f"cycle {data['id']} started: policy {data['policy']}, budget {count(data['budget'], 'visit')}")
        elif kind == "cycle" and data["finished"] is not None:
            with self._context.reading() as repository:
                row = next((row for row in activity.cycle_counts(repository, 3) if row["cycle"] == data["id"]), None)
            if row is not None and (row["visits"] or row["kind"] == "cycle"):
                self._line(describe_cycle(row))
        elif kind == "failed":
            due = self._context.scheduler.status().due
            again = "" if due is None else f"; next attempt in {span(max(0.0, due - self._context.clock()))}"
            self._line(f"cycle failed: {data['error']}{again}")

    def _line(self, text: str) -> None:
        self._write(f"{stamp(self._context.clock())} {text}")


def describe_cycle(row: dict[str, Any]) -> str:
    """Return a finished crawl or cycle as a line.

    >>> row = {"kind": "cycle", "cycle": 7, "started": 0.0, "finished": 34.0, "visits": 3, "new": 0, "changed": 1,
    ...        "gone": 0, "unchanged": 2, "failed": 0, "received": 1_500_000}
    >>> describe_cycle(row)
    'cycle 7 finished in 34 s: 3 visits: 1 changed, 2 unchanged; 1.5 MB received'
    """
    outcomes = ", ".join(f"{row[word]:,} {word}" for word in _WORDS if row.get(word))
    visits = count(row["visits"], "visit") + (f": {outcomes}" if outcomes else "")
    took = span(max(0.0, row["finished"] - row["started"]))
    return f"{row['kind']} {row['cycle']} finished in {took}: {visits}; {row['received'] / 1e6:,.1f} MB received"
