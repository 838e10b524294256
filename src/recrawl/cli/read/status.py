"""`recrawl status`: size, age and the last cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, count, note, percent, say, table, when
from recrawl.cli.terminal.session import repository
from recrawl.repository.results.words import held_text, shared_text
from recrawl.times import span

if TYPE_CHECKING:
    from recrawl.repository.results.values import Status

EXAMPLE = "Example: recrawl status"
_MOST_SITES = 5
_CYCLE_COLUMNS = {
    "cycle": ">no",
    "kind": "kind",
    "policy": "policy",
    "started": "started",
    "visits": ">visits",
    "new": ">new",
    "changed": ">changed",
    "gone": ">gone",
    "unchanged": ">same",
    "missing": ">missing",
    "skipped": ">skipped",
    "failed": ">failed",
    "state": "",
}


def command(ctx: typer.Context, json: AsJson = False) -> None:
    """Show what is stored, how long ago it was checked, and what the last cycles found."""
    from recrawl.repository.running import describe_running  # lazy: the help does without

    with repository(ctx) as repo:
        status = repo.status()
    if json:
        as_json(status.as_dict())
        return
    if status.running is not None:
        say(describe_running(status.running))
    for problem in status.problems:
        note(problem)
    states = ", ".join(f"{number:,} {name}" for name, number in status.states.items() if number)
    say(f"{count(status.sites, 'site')}, {count(status.pages, 'page')} ({states or 'none yet'})")
    if status.freshness is not None and status.freshness_low is not None and status.freshness_high is not None:
        interval = f"{100 * status.freshness_low:.0f}–{100 * status.freshness_high:.0f} %"
        pages = count(status.stored, "stored page")
        say(f"fresh now: {percent(status.freshness)} of {pages} (90 % interval {interval})")
    archived = f"{status.archive_bytes / 1e6:,.1f} MB archived"
    say(f"{status.versions:,} versions, {archived}, {status.searchable:,} pages searchable")
    kept = [count(number, name) for name, number in _besides(status) if number]
    if kept:
        say(f"{' and '.join(kept)} besides the pages")
    say(f"{status.visits:,} visits, last {when(status.last_visit)}")
    if status.age_seconds:
        median, p90, oldest = (span(status.age_seconds[name]) for name in ("p50", "p90", "p100"))
        say(f"last checked: median {median} ago, p90 {p90} ago, oldest {oldest} ago")
    for brake in status.brakes:
        say(shared_text(brake["site"], brake["title"], brake["pages"], brake["recent"], when(brake["since"])))
    if status.cycles:
        say()
        table(map(_cycle, status.cycles), _CYCLE_COLUMNS)
    if status.spending:
        say()
        _print_spending(status.spending)


def _besides(status: Status) -> list[tuple[str, int]]:
    """What is kept of pages besides their versions, by name."""
    return [("page requisite", status.requisites), ("screenshot", status.screenshots)]


def _print_spending(spending: dict[str, Any]) -> None:
    visits, same = spending["visits"], spending["not_modified"]
    share = f", {percent(same / visits)} of the responses 304 (not modified)" if visits else ""
    most = spending["limits"].get("bytes")
    received = f"{spending['received'] / 1e6:,.1f}{f' of {most / 1e6:,.1f}' if most else ''} MB received"
    say(f"cycle {spending['cycle']} spent {visits:,} of {count(spending['budget'], 'visit')}, {received}{share}:")
    columns = {"site": "site", "visits": ">visits", "updates": ">updates", "not_modified": ">304", "failed": ">failed"}
    table(spending["sites"][:_MOST_SITES], {**columns, "received": ">bytes"})
    for held in spending["held"]:
        say(held_text(**held))
    if len(spending["sites"]) > _MOST_SITES:
        say(f"... and {count(len(spending['sites']) - _MOST_SITES, 'site')} more; --json lists all")


def _cycle(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "started": when(row["started"]), "state": "" if row["finished"] else "unfinished"}
