"""Rows of the store: named tuples whose field names are the column names, and the batch that is committed at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from numpy.typing import NDArray

from recrawl.record.index import Document

Columns = dict[str, NDArray[Any]]
"""The result of a query, one array per column."""
Row = dict[str, Any]
"""One row of a query whose columns people or programs read by name."""


class NewPage(NamedTuple):
    """An address seen for the first time."""

    id: int
    key: int
    site: int
    folder: int
    depth: int
    parent: int
    found: float
    cycle: int
    state: int
    listed: int
    url: str


class PageState(NamedTuple):
    """What a visit may change about a page; `id` comes last because SQL wants it there."""

    state: int
    visits: int
    changes: int
    failures: int
    quiet: int
    """304 answers in a row; every tenth visit asks without validators."""
    misses: int
    size: int
    version: int
    version_at: float
    """When the stored version was downloaded: revisit records refer to it."""
    target: int
    last_try: float | None
    """The last visit of any outcome; `last_visit` leaves failures out."""
    last_visit: float | None
    last_change: float | None
    missing_since: float
    payload: bytes | None
    digest: bytes | None
    noise: bytes | None
    etag: str
    modified: str
    id: int


def unvisited(page: int) -> PageState:
    """The state of a page that was found and nothing more."""
    return PageState(0, 0, 0, 0, 0, 0, 0, -1, 0.0, -1, None, None, None, 0.0, None, None, None, "", "", page)


class PageRow(NamedTuple):
    """A page as a visit needs it."""

    url: str
    site: int
    depth: int
    listed: int
    """Whether the site's sitemap lists it."""
    state: PageState


class ScopeRow(NamedTuple):
    """What decides whether a page is in scope."""

    id: int
    url: str
    depth: int
    parent: int
    state: int
    downloaded: int


class StoredPage(NamedTuple):
    """A page with the size and the place of its newest version."""

    page: int
    url: str
    size: int
    warc: int
    start: int
    length: int


class VisitRow(NamedTuple):
    """One visit."""

    id: int
    page: int
    cycle: int
    at: float
    outcome: int
    status: int
    received: int
    seconds: float
    version: int
    score: float | None
    why: int | None
    failure: str | None
    detail: str | None
    hints: int = 0
    """What servers had volunteered about the page since the visit before, packed (see `engine.hinted`)."""


class HintRow(NamedTuple):
    """What a source says of a page now."""

    page: int
    kind: str
    seen: float
    value: float
    """The date that it names; for a promise, every how many seconds the page changes."""
    signals: int
    """1 where this is news, 0 where not; the store adds them up until the next visit."""


class SourceRow(NamedTuple):
    """One reading of a site's source of hints."""

    site: int
    kind: str
    seen: float
    """When it was read; 0 when not all of it could be."""
    signals: int
    ignored: int
    problem: str


class SourceReport(NamedTuple):
    """A site's source of hints with the site's origin, for reports."""

    site: int
    origin: str
    kind: str
    seen: float
    signals: int
    ignored: int
    problem: str


class PushRow(NamedTuple):
    """A received push that no cycle has processed yet."""

    key: int
    kind: str
    source: str
    at: float
    url: str


class OutboxState(IntEnum):
    """What became of an alert."""

    WAITING = 0
    SENT = 1
    GIVEN_UP = 2
    HELD = 3
    """Held back until later visits confirm the change."""
    DROPPED = 4
    """A later visit found the page as before."""


class OutboxRow(NamedTuple):
    """An alert that is to be sent."""

    key: str
    """The same for each attempt, so that receivers can tell repetitions."""
    alert: str
    page: int
    state: int
    remaining: int
    """Visits for which it is still held back."""
    before: bytes | None
    """The digest of the page before the change."""
    due: float
    created: float
    body: str


class FeedRow(NamedTuple):
    """A feed of a site, and what to ask it with."""

    site: int
    url: str
    seen: float
    etag: str
    modified: str


class VersionRow(NamedTuple):
    """One version of a page, and where its body lies."""

    id: int
    page: int
    at: float
    changed: int
    divergence: float | None
    significant: int | None
    new_links: int
    searchable: int
    size: int
    warc: int
    start: int
    length: int
    payload: bytes
    digest: bytes
    title: str
    mime: str
    encoding: str


class SiteRow(NamedTuple):
    """A server: what it said about robots, and how far its validators are believed."""

    id: int
    origin: str
    robots_status: int
    robots_body: bytes
    robots_at: float
    robots_held: float
    sitemap_at: float
    held_until: float
    lm_good: int
    lm_bad: int
    etag_good: int
    etag_bad: int
    habits: str


class CycleRow(NamedTuple):
    """One run of `crawl` or `cycle`."""

    id: int
    kind: str
    policy: str
    budget: int
    seed: int
    started: float
    finished: float | None
    first_visit: int
    known: int
    limits: str | None = None
    """What it may spend (see `choose.allowance`); None as long as that is not decided."""


@dataclass(slots=True)
class Batch:
    """What is recorded together: all of it or nothing."""

    pages: list[NewPage] = field(default_factory=list)
    visits: list[VisitRow] = field(default_factory=list)
    states: list[PageState] = field(default_factory=list)
    versions: list[VersionRow] = field(default_factory=list)
    links: list[tuple[int, bytes]] = field(default_factory=list)
    hints: list[HintRow] = field(default_factory=list)
    sources: list[SourceRow] = field(default_factory=list)
    feeds: list[FeedRow] = field(default_factory=list)
    listed: list[tuple[int, int]] = field(default_factory=list)
    """(whether its sitemap names it, page)."""
    sites: list[SiteRow] = field(default_factory=list)
    records: list[tuple[bytes, float]] = field(default_factory=list)
    """WARC records that belong to no version: revisits, redirects."""
    documents: list[Document] = field(default_factory=list)
    removals: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        told = self.hints or self.sources or self.feeds
        return bool(self.pages or self.visits or self.states or self.listed or told or self.sites)
