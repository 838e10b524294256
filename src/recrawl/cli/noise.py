"""`recrawl noise`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from recrawl.cli.output import AsJson, as_json, note, say, table
from recrawl.cli.session import reading
from recrawl.compare.encoding import decode
from recrawl.compare.noise import propose
from recrawl.record.repository import Repository
from recrawl.verbs.naming import page_of, versions_of

EXAMPLE = "Example: recrawl noise https://example.org/"
_PAGES = 10
_VERSIONS = 20


def command(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="A page; the ones that always change by default.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Propose filters for dates, counters and the like on pages that change at every visit (spec C8).

    A filter goes into recrawl.toml, for one site or (without site) for all:

    \b
        [[filter]]
        site = "https://example.org"
        selectors = ["#visitors"]
        patterns = ['\\d\\d:\\d\\d Uhr']
    """
    with reading(ctx) as repository:
        pages = [page_of(repository, url)["id"]] if url else _restless(repository)
        rows = [
            {"url": address, **asdict(proposal)}
            for address, sources in (_sources(repository, page) for page in pages)
            for proposal in propose(sources)
        ]
    if json:
        as_json(rows)
        return
    if not rows:
        note("nothing to propose: no page changes at every visit without news")
        return
    table(
        ({**row, "hides": f"{row['hides']} of {row['of']}"} for row in rows),
        {"url": "page", "kind": "kind", "value": "filter", "hides": ">would hide", "example": "such as"},
    )
    say("put what you want into recrawl.toml: see 'recrawl noise --help'")


def _restless(repository: Repository) -> list[int]:
    rows = repository.store.db.execute(
        "SELECT id FROM pages WHERE visits >= 3 AND changes >= 0.9 * visits ORDER BY visits DESC LIMIT ?",
        (_PAGES,),
    )
    return [row[0] for row in rows]


def _sources(repository: Repository, page: int) -> tuple[str, list[str]]:
    url = repository.store.page(page)[0]
    sources = []
    for version in versions_of(repository, page)[-_VERSIONS:]:
        _, headers, body = repository.body(version)
        kind = next((value for name, value in headers if name.lower() == "content-type"), "")
        sources.append(decode(body, kind).text)
    return url, sources
