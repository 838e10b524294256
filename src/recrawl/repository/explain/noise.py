"""Noise on pages that change at every visit: proposals for filters, and what a filter would have hidden (spec C8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from recrawl.compare.content.census import CensusEvidence
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.noise.news import NewsJudge
from recrawl.compare.noise.preview import hidden
from recrawl.compare.noise.proposals import propose, readable
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.reports.frames import FrameLine, frame_lines, frame_of
from recrawl.errors import DamagedRecord, UsageError
from recrawl.record.storage import Storage
from recrawl.repository.lookup import page_of, versions_of
from recrawl.repository.results.values import Row
from recrawl.repository.seed_rules import seed_url
from recrawl.settings import Filter

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
    site_hides: int
    """Changes of other pages of the site that it would hide as well ..."""
    site_of: int
    """... of so many."""
    news: int
    """Changes of content of the page and the site on which it was tried."""
    news_hidden: int
    """How many of them it would hide: none, or it would not be proposed."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedFilter(Filter):
    """A noise filter with its place in the settings."""

    number: int


@dataclass(frozen=True, slots=True)
class RemovedFilter:
    """The noise filter that was removed."""

    removed: Filter


def noise_filter(
    site: str = "", selectors: Iterable[str] | None = None, patterns: Iterable[str] | None = None
) -> Filter:
    """A noise filter, if it can be one."""
    made = Filter(site, tuple(selectors or ()), tuple(patterns or ()))
    if not made.selectors and not made.patterns:
        raise UsageError("give at least one selector or pattern")
    check_filter(made.selectors, made.patterns)
    if site:
        seed_url(site)
    return made


def check_filter(selectors: tuple[str, ...] = (), patterns: tuple[str, ...] = ()) -> None:
    """Raise UsageError for an invalid selector or pattern."""
    Noise(selectors, patterns).check()


def proposals(storage: Storage, url: str = "") -> list[NoiseProposal]:
    """Filters for one page; without a URL, for the pages that change at every visit.

    Each is tried on the stored history of the page and of the site's pages that changed most: none that would hide a
    change of content is proposed.
    """
    found: list[NoiseProposal] = []
    sites: dict[int, list[_History]] = {}
    for page in [int(page_of(storage, url)["id"])] if url else restless(storage):
        state = storage.store.pages.get(page)
        if state.site not in sites:
            origin = storage.store.sites.get(state.site).origin
            numbers = storage.store.visits.most_changed(origin, _RECENT_UPDATES, _PAGES)
            sites[state.site] = [_History(storage, number) for number in numbers]
        others = [history for history in sites[state.site] if history.page != page]
        found += _proposals(_History(storage, page), others)
    return found


class _History:
    """The newest versions of a page, and which of their changes are news."""

    def __init__(self, storage: Storage, page: int) -> None:
        self.page = page
        self.url, versions = sources(storage, page)
        self.versions = readable(versions)
        known = frame_of(storage, storage.store.pages.get(page).site)
        self.judge = NewsJudge(self.versions, CensusEvidence(known.census, counts_new=page in known.members))


def _proposals(history: _History, others: list[_History]) -> list[NoiseProposal]:
    """The filters for a page, with what they would have hidden of the other pages of its site."""
    judges = [one.judge for one in (history, *others)]
    found = propose(history.versions, history.judge.news, lambda noise: not any(it.hidden(noise) for it in judges))
    made = []
    for proposal in found:
        value = (proposal.value,)
        extra = Noise(selectors=value) if proposal.kind == "selector" else Noise(patterns=value)
        tried = [hidden(one.versions, NO_NOISE, extra) for one in others]
        made.append(
            NoiseProposal(
                history.url,
                **asdict(proposal),
                site_hides=sum(hides for hides, _, _ in tried),
                site_of=sum(of for _, of, _ in tried),
                news=sum(sum(judge.news) for judge in judges),
                news_hidden=sum(judge.hidden(extra) for judge in judges),
            )
        )
    return made


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
