"""`recrawl sites`."""

from __future__ import annotations

import typer

from recrawl.cli.output import AsJson, as_json, table
from recrawl.cli.session import load, reading
from recrawl.discover.urls import origin
from recrawl.record import questions
from recrawl.verbs.times import iso, stamp

EXAMPLE = "Example: recrawl sites --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:
    """List the sites with the number of their pages, visits and changes, and what robots.txt answered."""
    with reading(ctx) as repository:
        rows = questions.sites(repository.store.db)
        seeds = load(repository.folder).seeds
    known = {row["url"] for row in rows}
    rows += [{"url": seed.url, "pages": 0} for seed in seeds if origin(seed.url) not in known]
    if json:
        times = ("last_visit", "robots_at", "sitemap_at")
        as_json([{**row, **{name: iso(row.get(name) or None) for name in times}} for row in rows])
        return
    table(
        ({**row, "last_visit": stamp(row.get("last_visit")), "robots": _robots(row)} for row in rows),
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
        },
    )


def _robots(row: dict[str, object]) -> str:
    status = row.get("robots_status")
    if not isinstance(status, int) or status < 0:
        return "not asked yet"
    return "no answer" if status == 0 else f"HTTP {status}"
