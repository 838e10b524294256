"""`recrawl sites`: list the sites."""

from __future__ import annotations

from typing import Any

import typer

from recrawl.cli.terminal.output import AsJson, as_json, table
from recrawl.cli.terminal.session import load, reading
from recrawl.crawl.reports.hint_trust import trust
from recrawl.discover.urls import origin
from recrawl.times import iso, stamp

EXAMPLE = "Example: recrawl sites --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:
    """List the sites: pages, visits, changes, status of robots.txt, and precision and recall of hints."""
    with reading(ctx) as repository:
        rows = repository.store.reports.sites()
        trusted = trust(repository)
        seeds = load(repository.folder).seeds
    for row in rows:
        row["hints"] = trusted.get(row["url"], [])
    known = {row["url"] for row in rows}
    rows += [{"url": seed.url, "pages": 0} for seed in seeds if origin(seed.url) not in known]
    if json:
        times = ("last_visit", "robots_at", "sitemap_at")
        as_json([{**row, **{name: iso(row.get(name) or None) for name in times}} for row in rows])
        return
    table(
        (
            {**row, "last_visit": stamp(row.get("last_visit")), "robots": _robots(row), "hints": _hints(row)}
            for row in rows
        ),
        {
            "url": "site",
            "pages": ">pages",
            "live": ">live",
            "found": ">to visit",
            "gone": ">gone",
            "visits": ">visits",
            "changes": ">changes",
            "last_visit": "last visit",
            "robots": "robots.txt",
            "hints": "hints (precision, recall)",
        },
    )


def _robots(row: dict[str, object]) -> str:
    status = row.get("robots_status")
    if not isinstance(status, int) or status < 0:
        return "not fetched yet"
    return "no response" if status == 0 else f"HTTP {status}"


def _hints(row: dict[str, Any]) -> str:
    """Each kind of hint with its precision and recall."""
    parts = []
    for hint in row.get("hints", ()):
        if hint["precision"] is None:
            parts.append(f"{hint['kind']} (not measured yet)")
        else:
            parts.append(f"{hint['kind']} ({hint['precision']:.0%}, {hint['recall']:.0%})")
    return ", ".join(parts)
