"""Noise on pages that change at every visit: proposals for filters, and what a filter would have hidden (spec C8)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from recrawl.compare.encoding import decode
from recrawl.compare.noise.filters import Noise
from recrawl.compare.noise.preview import hidden
from recrawl.compare.noise.proposals import propose
from recrawl.record.storage import Storage
from recrawl.repository.lookup import page_of, versions_of
from recrawl.repository.values import Row

_PAGES = 10
_VERSIONS = 20
_RECENT_UPDATES = 5000
"""Updates that are counted to find the pages that change most."""


@dataclass(frozen=True, slots=True)
class NoiseProposal:
    """A filter that would hide `hides` of a page's `of` changes."""

    url: str
    kind: str
    """selector or pattern."""
    value: str
    hides: int
    of: int
    example: str
    """Text that it removes."""

    def as_dict(self) -> Row:
        """As `recrawl noise --json` prints it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Preview:
    """A filter would have hidden `hides` of the `of` changes of `pages` pages."""

    hides: int
    of: int
    pages: int
    example: str
    """Text that it removes."""

    def as_dict(self) -> Row:
        """All fields."""
        return asdict(self)


def proposals(storage: Storage, url: str = "") -> list[NoiseProposal]:
    """Filters for one page; without a URL, for the pages that change at every visit."""
    pages = [int(page_of(storage, url)["id"])] if url else restless(storage)
    found = (sources(storage, page) for page in pages)
    return [NoiseProposal(address, **asdict(proposal)) for address, html in found for proposal in propose(html)]


def restless(storage: Storage) -> list[int]:
    """Pages that changed at 90 % of their visits or more, the most visited first."""
    rows = storage.store.db.execute(
        "SELECT id FROM pages WHERE visits >= 3 AND changes >= 0.9 * visits ORDER BY visits DESC LIMIT ?",
        (_PAGES,),
    )
    return [row[0] for row in rows]


def sources(storage: Storage, page: int) -> tuple[str, list[str]]:
    """A page's URL and the HTML of its newest versions, oldest first."""
    url = storage.store.page(page)[0]
    found = []
    for version in versions_of(storage, page)[-_VERSIONS:]:
        _, headers, body = storage.body(version)
        kind = next((value for name, value in headers if name.lower() == "content-type"), "")
        found.append(decode(body, kind).text)
    return url, found


def preview(storage: Storage, site: str, before: Noise, extra: Noise) -> Preview:
    """Try a filter on the pages of a site (all sites if empty) that changed most often lately."""
    extra.check()
    only = "WHERE p.site = (SELECT id FROM sites WHERE origin = ?)" if site else ""
    rows = storage.store.db.execute(
        f"""SELECT v.page FROM (SELECT page FROM visits WHERE outcome IN (1, 2, 3) ORDER BY at DESC LIMIT ?) v
            JOIN pages p ON p.id = v.page {only} GROUP BY v.page HAVING count(*) > 1
            ORDER BY count(*) DESC, v.page LIMIT ?""",  # noqa: S608
        (_RECENT_UPDATES, *([site] if site else []), _PAGES),
    )
    found = [hidden(sources(storage, row[0])[1], before, extra) for row in rows.fetchall()]
    changed = [part for part in found if part[1]]
    return Preview(
        hides=sum(part[0] for part in changed),
        of=sum(part[1] for part in changed),
        pages=len(changed),
        example=next((part[2] for part in found if part[2]), ""),
    )
