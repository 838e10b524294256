"""Rows of the store: named tuples whose field names are the column names, and the batch that is committed at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

if TYPE_CHECKING:
    from recrawl.record.index import Document


class RequisiteRow(NamedTuple):
    """A file that pages need to be shown as they looked: a stylesheet, an image, a font, a script."""

    id: int
    key: int
    style: int
    """Whether it is a stylesheet."""
    level: int
    """Which requisites the pages keep that need it (`discover.requisites.Level`): decides on what it needs itself."""
    depth: int
    """Stylesheets and redirects between a page and this one."""
    checked: float | None
    """The last request; None if it waits for the first."""
    failures: int
    """Requests in a row without an answer that could be kept."""
    failure: str | None
    version: int
    """The newest version; -1 without one."""
    target: int
    """The requisite that it redirects to; -1 without one."""
    etag: str
    modified: str
    url: str


class RequisiteVersion(NamedTuple):
    """The contents of a requisite at one time and their place in the archive."""

    id: int
    requisite: int
    at: float
    record: int
    """The version whose record holds the bytes: this one, or an earlier one of any requisite with the same bytes."""
    size: int
    warc: int
    start: int
    length: int
    payload: bytes
    mime: str
    styles: str
    """URLs that a stylesheet imports, one per line."""
    files: str
    """URLs that a stylesheet shows, one per line."""


class OutgoingRequisite(NamedTuple):
    """A requisite that this shard of a cluster needs and another one owns, who requests it."""

    shard: int
    key: int
    url: str
    style: int
    level: int
    depth: int


class HostRow(NamedTuple):
    """A server that is asked for requisites alone; no pages of it are kept."""

    origin: str
    robots_status: int
    robots_body: bytes
    robots_at: float
    robots_held: float
    held_until: float


@dataclass(slots=True)
class RequisiteBatch:
    """Rows about requisites that are committed together."""

    rows: list[RequisiteRow] = field(default_factory=list)
    """New ones and changed ones; of several rows with one number the last counts."""
    versions: list[tuple[RequisiteVersion, bytes]] = field(default_factory=list)
    """Each with its WARC records; without records if an earlier version has the same bytes."""
    pages: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Page, level, and the numbers of its requisites as packed int32."""
    hosts: list[HostRow] = field(default_factory=list)
    outbox: list[OutgoingRequisite] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.versions or self.pages or self.hosts or self.outbox)


class OutboxState(IntEnum):
    """What became of an entry of the outbox."""

    WAITING = 0
    SENT = 1
    PARKED = 2
    """Refused, or tried too often: it waits for somebody who tries it again or drops it."""
    HELD = 3
    """Held back until later visits confirm the change."""
    REVERTED = 4
    """A later visit found the page as before."""
    DROPPED = 5
    """Parked, and dropped by somebody; or its receiver is no longer there."""


class OutboxRow(NamedTuple):
    """An entry of the outbox."""

    key: str
    """The same for each attempt, so that receivers can tell repetitions."""
    alert: str
    """The receiver: the name of an alert rule, or `sink:NAME`."""
    page: int
    state: int
    remaining: int
    """Visits for which it is still held back."""
    before: bytes | None
    """The digest of the page before the change."""
    due: float
    created: float
    body: str
    error: str = ""
    """Why it is parked."""


class ScreenshotRow(NamedTuple):
    """A screenshot of a page and its place in the archive."""

    id: int
    page: int
    version: int
    """The version that was current when it was taken."""
    at: float
    record: int
    """The screenshot whose record holds the bytes: this one, or an earlier one of any page with the same bytes."""
    width: int
    height: int
    size: int
    """Bytes of the PNG."""
    warc: int
    start: int
    length: int
    payload: bytes
    """SHA-1 of the PNG."""


Columns = dict[str, NDArray[Any]]
"""The result of a query, one array per column."""
Row = dict[str, Any]
"""One row of a query whose columns people or programs read by name."""
NO_LIMIT = -1
"""As a limit: all rows."""
NO_NUMBER = 1 << 62
"""Larger than any number of a row."""


class NewPage(NamedTuple):
    """A URL found for the first time."""

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
    """The columns of a page that a visit may change; `id` is last because the UPDATE statement needs it there."""

    state: int
    visits: int
    changes: int
    failures: int
    quiet: int
    """Consecutive 304 answers; every tenth visit sends no validators."""
    misses: int
    size: int
    version: int
    version_at: float
    """When the stored version was downloaded; revisit records refer to it."""
    target: int
    last_try: float | None
    """The last visit of any outcome; `last_visit` excludes failures."""
    last_visit: float | None
    last_change: float | None
    missing_since: float
    payload: bytes | None
    digest: bytes | None
    noise: bytes | None
    etag: str
    modified: str
    counters: bytes | None
    """Its own history: lines that tick, and lines that come and go (see `compare.content.own_history`)."""
    archived_url: str
    """The URL of the stored version's record, if redirects led there; empty if it is the page's own."""
    prior: float | None
    """How often it is likely to change, from its first download (see `compare.change_prior`); None if not computed."""
    sketch: bytes | None
    """Of its content, by which copies are known (see `learn.copies.sketch`); empty for little content, None if not
    computed."""
    claim: int
    """The key of the URL that it claims as its canonical address; 0 for none."""
    same_as: int | None
    """The key of the URL of the page that it is a copy of; 0 if it was a copy once, None if it never was."""
    id: int


def unvisited(page: int) -> PageState:
    """The state of a page that was found but never visited."""
    return PageState(
        *(0,) * 7, -1, 0.0, -1, *(None,) * 3, 0.0, *(None,) * 3, "", "", None, "", None, None, 0, None, page
    )


class UnchangedPage(NamedTuple):
    """The columns of a page that a visit changes which finds it as it was; only for pages that were live before, and
    whose last visit had not failed. The short row costs a third of the whole one, and leaves the indices alone."""

    visits: int
    quiet: int
    last_try: float
    last_visit: float
    etag: str
    modified: str
    id: int


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
    """Hints about the page since the previous visit, packed (see `crawl.hints.hint_codec`)."""
    copy: int = 0
    """1 if what it found is told of another page: this one is a copy of it."""


class HintRow(NamedTuple):
    """The current claim of a source about a page."""

    page: int
    kind: str
    seen: float
    value: float
    """The claimed date; for a promise, the period of changes in seconds."""
    signals: int
    """1 if the claim is new, otherwise 0; the store adds them up until the next visit."""


class SourceRow(NamedTuple):
    """One reading of a site's source of hints."""

    site: int
    kind: str
    seen: float
    """When it was read; 0 if it could not be read completely."""
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


class FeedRow(NamedTuple):
    """A feed of a site with its validators."""

    site: int
    url: str
    seen: float
    etag: str
    modified: str


class VersionRow(NamedTuple):
    """One version of a page and the place of its body in the archive."""

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
    content: int | None = None
    """Whether the content differs from the version before, not only the frame of the site; None if not judged."""
    content_share: float | None = None
    significance: float | None = None
    rendered: int = 0
    """Whether text and links are those of the page after its scripts had run."""
    language: str = ""
    """What the page states about itself, from here on: its language tag, a description, its picture, two dates."""
    description: str = ""
    image: str = ""
    published: float | None = None
    updated: float | None = None


class SiteRow(NamedTuple):
    """A server: its robots.txt, and counts of right and wrong validators."""

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
    """Its limits (see `choose.budget.allowance`); None until they are decided."""


class OutgoingLink(NamedTuple):
    """A URL that this shard of a cluster has found and another one owns."""

    shard: int
    key: int
    url: str
    depth: int
    alias: str = ""
    """The site of a seed that has moved to the URL's site; empty if it has not."""


@dataclass(slots=True)
class Batch:
    """Rows that are committed together."""

    pages: list[NewPage] = field(default_factory=list)
    visits: list[VisitRow] = field(default_factory=list)
    states: list[PageState] = field(default_factory=list)
    unchanged: list[UnchangedPage] = field(default_factory=list)
    versions: list[VersionRow] = field(default_factory=list)
    links: list[tuple[int, bytes]] = field(default_factory=list)
    hints: list[HintRow] = field(default_factory=list)
    sources: list[SourceRow] = field(default_factory=list)
    feeds: list[FeedRow] = field(default_factory=list)
    listed: list[tuple[int, int]] = field(default_factory=list)
    """Pairs (listed, page): 1 if the sitemap lists the page, 2 if it no longer does, 0 if the page is gone or moved."""
    sites: list[SiteRow] = field(default_factory=list)
    frames: list[tuple[int, bytes]] = field(default_factory=list)
    """The packed frame of each site that has changed."""
    records: list[tuple[bytes, float]] = field(default_factory=list)
    """WARC records without a version: revisits, redirects, 404s, robots.txt."""
    requisites: RequisiteBatch = field(default_factory=RequisiteBatch)
    screenshots: list[tuple[ScreenshotRow, bytes]] = field(default_factory=list)
    """Each with its WARC record; without one if an earlier screenshot has the same bytes."""
    outbox: list[OutgoingLink] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    removals: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        hints = self.hints or self.sources or self.feeds
        others = self.sites or self.records or self.requisites or self.screenshots or self.outbox
        return bool(self.pages or self.visits or self.states or self.listed or hints or others)
