"""`recrawl sites`: list the sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from recrawl.cli.terminal.output import AsJson, as_json, percent, table, when
from recrawl.cli.terminal.session import repository

if TYPE_CHECKING:
    from recrawl.repository.results.values import Site

EXAMPLE = "Example: recrawl sites --json"


def command(ctx: typer.Context, json: AsJson = False) -> None:
    """List the sites: pages, visits, changes, status of robots.txt, and precision and recall of hints."""
    with repository(ctx) as repo:
        sites = repo.sites()
    if json:
        as_json([site.as_dict() for site in sites])
        return
    table(
        (
            {**site.as_dict(), "last_visit": when(site.last_visit), "robots": _robots(site), "hints": _hints(site)}
            for site in sites
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


def _robots(site: Site) -> str:
    if site.robots_status < 0:
        return "not fetched yet"
    return "no response" if site.robots_status == 0 else f"HTTP {site.robots_status}"


def _hints(site: Site) -> str:
    """Each kind of hint with its precision and recall."""
    return ", ".join(
        f"{hint['kind']} (not measured yet)"
        if hint["precision"] is None
        else f"{hint['kind']} ({percent(hint['precision'])}, {percent(hint['recall'])})"
        for hint in site.hints
    )
