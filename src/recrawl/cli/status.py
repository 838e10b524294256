"""`recrawl status`: size, age and the last cycles."""

from __future__ import annotations

import time
from typing import Any

import typer

from recrawl.choose.budget.allowance import Allowance
from recrawl.cli.terminal.output import AsJson, as_json, count, say, table
from recrawl.cli.terminal.session import reading
from recrawl.record.store.reports import Reports
from recrawl.times import iso, span, stamp

EXAMPLE = "Example: recrawl status"
_MOST_SITES = 5


def command(ctx: typer.Context, json: AsJson = False) -> None:
    """Show what is stored, how long ago it was checked, and what the last cycles found."""
    now = time.time()
    with reading(ctx) as repository:
        reports = repository.store.reports
        totals, ages, cycles = reports.totals(), reports.ages(now), reports.cycles(5)
        spending = _spending(reports, cycles)
        searchable = len(repository.index) if (repository.folder / "index").is_dir() else 0
    age = {f"p{share}": _quantile(ages, share / 100) for share in (10, 50, 90, 100)} if ages else {}
    if json:
        as_json(
            {
                **totals,
                "last_visit": iso(totals["last_visit"]),
                "searchable": searchable,
                "age_seconds": age,
                "spending": spending,
                "cycles": [{**row, "started": iso(row["started"]), "finished": iso(row["finished"])} for row in cycles],
            }
        )
        return
    states = ", ".join(f"{number:,} {name}" for name, number in totals["states"].items())
    say(f"{count(totals['sites'], 'site')}, {count(totals['pages'], 'page')} ({states or 'none yet'})")
    archived = f"{totals['archive_bytes'] / 1e6:,.1f} MB archived"
    say(f"{totals['versions']:,} versions, {archived}, {searchable:,} pages searchable")
    say(f"{totals['visits']:,} visits, last {stamp(totals['last_visit'])}")
    if age:
        median, p90, oldest = (span(age[name]) for name in ("p50", "p90", "p100"))
        say(f"last checked: median {median} ago, p90 {p90} ago, oldest {oldest} ago")
    if cycles:
        say()
        table(
            map(_cycle, cycles),
            {
                "cycle": ">no",
                "kind": "kind",
                "policy": "policy",
                "started": "started",
                "visits": ">visits",
                "new": ">new",
                "changed": ">changed",
                "gone": ">gone",
                "unchanged": ">same",
                "failed": ">failed",
                "state": "",
            },
        )
    if spending:
        say()
        _print_spending(spending)


def _spending(reports: Reports, cycles: list[dict[str, Any]]) -> dict[str, Any] | None:
    """How the last cycle spent its budget."""
    last = next((row for row in cycles if row["kind"] == "cycle"), None)
    if last is None:
        return None
    sites = reports.spent_by_site(last["cycle"], last["first_visit"], -1)
    same = sum(row["not_modified"] for row in sites)
    return {
        "cycle": last["cycle"],
        "budget": last["budget"],
        "visits": last["visits"],
        "received": last["received"],
        "not_modified": same,
        "limits": Allowance.of(last["limits"] or "").told(),
        "sites": sites,
    }


def _print_spending(spending: dict[str, Any]) -> None:
    visits, same = spending["visits"], spending["not_modified"]
    share = f", {same / visits:.0%} of the responses 304 (not modified)" if visits else ""
    most = spending["limits"].get("bytes")
    received = f"{spending['received'] / 1e6:,.1f}{f' of {most / 1e6:,.1f}' if most else ''} MB received"
    say(f"cycle {spending['cycle']} spent {visits:,} of {count(spending['budget'], 'visit')}, {received}{share}:")
    columns = {"site": "site", "visits": ">visits", "updates": ">updates", "not_modified": ">304", "failed": ">failed"}
    table(spending["sites"][:_MOST_SITES], {**columns, "received": ">bytes"})
    if len(spending["sites"]) > _MOST_SITES:
        say(f"... and {count(len(spending['sites']) - _MOST_SITES, 'site')} more; --json lists all")


def _cycle(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "started": stamp(row["started"]), "state": "" if row["finished"] else "unfinished"}


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
