"""Noise on pages that change at every visit: proposals for filters, and what a filter would have hidden (spec C8)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from recrawl.compare.noise.filters import Noise
from recrawl.compare.noise.preview import hidden
from recrawl.compare.noise.proposals import propose
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.reports.frames import FrameLine, frame_lines
from recrawl.errors import DamagedRecord
from recrawl.record.storage import Storage
from recrawl.repository.lookup import page_of, versions_of
from recrawl.repository.results.values import Row

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


def check_filter(selectors: tuple[str, ...] = (), patterns: tuple[str, ...] = ()) -> None:
    """Raise UsageError for an invalid selector or pattern."""
    Noise(selectors, patterns).check()


def proposals(storage: Storage, url: str = "") -> list[NoiseProposal]:
    """Filters for one page; without a URL, for the pages that change at every visit."""
    pages = [int(page_of(storage, url)["id"])] if url else restless(storage)
    found = (sources(storage, page) for page in pages)
    return [NoiseProposal(address, **asdict(proposal)) for address, html in found for proposal in propose(html)]


def frame(storage: Storage, site: str, noise: Noise, limit: int) -> list[FrameLine]:
    """Lines that were learned as the frame of a site."""
    number = storage.store.sites.number(site)
    return [] if number is None else frame_lines(storage, number, noise, limit)


def restless(storage: Storage) -> list[int]:
    """Pages that changed at 90 % of their visits or more, the most visited first."""
    return storage.store.pages.often_changed(_PAGES)


def sources(storage: Storage, page: int) -> tuple[str, list[str]]:
    """A page's URL and the HTML of its newest versions, oldest first."""
    url = storage.store.pages.get(page)[0]
    found = []
    for version in versions_of(storage, page)[-_VERSIONS:]:
        try:
            _, headers, body = storage.body(version)
        except DamagedRecord:
            continue
        kind = next((value for name, value in headers if name.lower() == "content-type"), "")
        found.append(decode(body, kind).text)
    return url, found


def preview(storage: Storage, site: str, before: Noise, extra: Noise) -> Preview:
    """Try a filter on the pages of a site (all sites if empty) that changed most often lately."""
    extra.check()
    pages = storage.store.visits.most_changed(site, _RECENT_UPDATES, _PAGES)
    found = [hidden(sources(storage, page)[1], before, extra) for page in pages]
    changed = [part for part in found if part[1]]
    return Preview(
        hides=sum(part[0] for part in changed),
        of=sum(part[1] for part in changed),
        pages=len(changed),
        example=next((part[2] for part in found if part[2]), ""),
    )
