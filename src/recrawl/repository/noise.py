"""Pages that change at every visit, what their versions are made of, and what a noise filter would have hidden."""

from __future__ import annotations

from dataclasses import dataclass

from recrawl.compare.encoding import decode
from recrawl.compare.noise.filters import Noise
from recrawl.compare.noise.preview import hidden
from recrawl.record.storage import Storage
from recrawl.repository.lookup import versions_of

_PAGES = 10
_VERSIONS = 20
_LATELY = 5000
"""Updates that are looked at to find the pages that change most."""


def restless(repository: Storage) -> list[int]:
    """Pages that were found changed at nearly every visit, the most visited first."""
    rows = repository.store.db.execute(
        "SELECT id FROM pages WHERE visits >= 3 AND changes >= 0.9 * visits ORDER BY visits DESC LIMIT ?",
        (_PAGES,),
    )
    return [row[0] for row in rows]


def sources(repository: Storage, page: int) -> tuple[str, list[str]]:
    """A page's address and the HTML of its newest versions, oldest first."""
    url = repository.store.page(page)[0]
    found = []
    for version in versions_of(repository, page)[-_VERSIONS:]:
        _, headers, body = repository.body(version)
        kind = next((value for name, value in headers if name.lower() == "content-type"), "")
        found.append(decode(body, kind).text)
    return url, found


@dataclass(frozen=True, slots=True)
class Preview:
    """What a filter would have hidden: `hides` of the `of` changes of `pages` pages."""

    hides: int
    of: int
    pages: int
    example: str
    """Something that it takes out."""


def preview(repository: Storage, site: str, before: Noise, extra: Noise) -> Preview:
    """Try a filter on the pages of a site (all sites if empty) that were found changed most often lately."""
    extra.check()
    only = "WHERE p.site = (SELECT id FROM sites WHERE origin = ?)" if site else ""
    rows = repository.store.db.execute(
        f"""SELECT v.page FROM (SELECT page FROM visits WHERE outcome IN (1, 2, 3) ORDER BY at DESC LIMIT ?) v
            JOIN pages p ON p.id = v.page {only} GROUP BY v.page HAVING count(*) > 1
            ORDER BY count(*) DESC, v.page LIMIT ?""",  # noqa: S608
        (_LATELY, *([site] if site else []), _PAGES),
    )
    found = [hidden(sources(repository, row[0])[1], before, extra) for row in rows.fetchall()]
    changed = [part for part in found if part[1]]
    return Preview(
        hides=sum(part[0] for part in changed),
        of=sum(part[1] for part in changed),
        pages=len(changed),
        example=next((part[2] for part in found if part[2]), ""),
    )
