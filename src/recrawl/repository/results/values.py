"""What a repository answers with: frozen dataclasses. Times are `datetime` in UTC.

`as_dict()` gives what the command line prints with `--json`: the same keys, times as ISO 8601 text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from recrawl.model import Outcome
from recrawl.record.rows import SiteRow

Row = dict[str, Any]


def utc(at: float | None) -> datetime | None:
    """A time of the store as a datetime; None for never."""
    return None if at is None or at == float("-inf") else datetime.fromtimestamp(at, UTC)


def at(time: float) -> datetime:
    """A time of the store that is always there."""
    return datetime.fromtimestamp(time, UTC)


def iso(time: datetime | None) -> str | None:
    """ISO 8601 with milliseconds, for JSON."""
    return None if time is None else time.isoformat(timespec="milliseconds")


def flag(value: int | None) -> bool | None:
    """A nullable boolean column."""
    return None if value is None else bool(value)


def _event(row: Row) -> Row:
    """A row of a visit with its time as a datetime and its outcome as a word."""
    plain = {name: value for name, value in row.items() if name not in ("at", "significant", "content")}
    return {**plain, "time": at(row["at"]), "outcome": Outcome(row["outcome"]).name.lower()}


@dataclass(frozen=True, slots=True)
class TestedAlert:
    """An alert rule whose target took a test message."""

    tested: str
    """Its name."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, by name."""

    removed: str


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tag that was put on a page or site."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Untagged:
    """A tag that was removed from a page or site."""

    removed: str
    target: str


@dataclass(frozen=True, slots=True)
class MarkedRead:
    """Changes that were marked as read or unread."""

    marked: int | Literal["all"]
    """How many."""
    read: bool


@dataclass(frozen=True, slots=True)
class SavedFilter:
    """A saved filter of changes."""

    name: str
    filter: dict[str, str]


class TagCounts(NamedTuple):
    """A tag with its number of sites and of single pages."""

    name: str
    sites: int
    pages: int


@dataclass(frozen=True, slots=True)
class Change:
    """An update that a visit found: a page created, changed or removed."""

    id: int
    """The number of the visit: `repo.changes(after=change.id)` gives what was recorded later."""
    url: str
    site: str
    time: datetime
    outcome: str
    """new, changed or gone."""
    divergence: float | None
    """The share of words that differ from the version before."""
    significant: bool | None
    """Whether the change is significant by the chi-squared test."""
    content: bool | None
    """False when only the frame of the site differs; None if it was not judged."""
    content_share: float | None
    """The share of the content's words that differ."""
    significance: float | None
    """The probability that a reader calls it news."""
    new_links: int | None
    title: str | None

    @classmethod
    def of(cls, row: Row) -> Change:
        """From a row of the store."""
        return cls(**_event(row), significant=flag(row["significant"]), content=flag(row["content"]))

    def as_dict(self) -> Row:
        """As `recrawl changes --json` prints it."""
        names = ("divergence", "significant", "content", "content_share", "significance", "new_links", "title")
        row = {"url": self.url, "at": iso(self.time), "outcome": self.outcome}
        return row | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit to a page."""

    url: str
    time: datetime
    outcome: str
    """unchanged, changed, new, gone or failed."""
    status: int
    """The HTTP status; 0 without an answer."""
    failure: str | None
    """A word of `recrawl.model.Failure`."""
    detail: str | None
    received: int
    """Bytes over the wire."""
    seconds: float
    version: int
    """The number of the stored version in the repository; -1 for none."""
    cycle: int
    score: float | None
    """What the page was worth to the policy."""
    reason: str | None
    """Why the policy chose it."""
    policy: str | None
    kind: str | None
    """crawl, cycle or import."""

    @classmethod
    def of(cls, row: Row) -> Visit:
        """From a row of the store."""
        return cls(**{name: value for name, value in _event(row).items() if name != "id"})

    def as_dict(self) -> Row:
        """As `recrawl log --visits --json` prints it."""
        row = asdict(self)
        return {"url": row.pop("url"), "at": iso(row.pop("time")), **row}


@dataclass(frozen=True, slots=True)
class Site:
    """A site with its counts. One that was added and not crawled yet has no pages and `crawled` False."""

    url: str
    pages: int = 0
    live: int = 0
    found: int = 0
    gone: int = 0
    visits: int = 0
    changes: int = 0
    last_visit: datetime | None = None
    robots_status: int = -1
    """HTTP status of robots.txt; 0 without an answer, -1 when never fetched."""
    robots_time: datetime | None = None
    sitemap_time: datetime | None = None
    hints: tuple[Row, ...] = ()
    """One row for each kind of hint: signals, precision, recall."""
    crawled: bool = True

    @classmethod
    def of(cls, row: SiteRow, counts: Row, hints: list[Row]) -> Site:
        """From a row of the store and the site's figures."""
        names = ("pages", "live", "found", "gone", "visits", "changes")
        return cls(
            url=row.origin,
            **{name: counts.get(name, 0) for name in names},
            last_visit=utc(counts.get("last_visit")),
            robots_status=row.robots_status,
            robots_time=utc(row.robots_at or None),
            sitemap_time=utc(row.sitemap_at or None),
            hints=tuple(hints),
        )

    def as_dict(self) -> Row:
        """As `recrawl sites --json` prints it."""
        times = {
            "last_visit": iso(self.last_visit),
            "robots_at": iso(self.robots_time),
            "sitemap_at": iso(self.sitemap_time),
        }
        if not self.crawled:
            return {"url": self.url, "pages": 0, **times}
        names = ("url", "pages", "live", "found", "gone", "visits", "changes")
        row = {name: getattr(self, name) for name in names} | {"last_visit": times.pop("last_visit")}
        return row | {"robots_status": self.robots_status, **times, "hints": list(self.hints)}


@dataclass(frozen=True, slots=True)
class Status:
    """Totals of a repository, the age of its pages, its last cycles."""

    pages: int
    """Known URLs in any state but dropped."""
    stored: int
    """Pages with a copy that counts: live, or missing and not yet gone."""
    states: dict[str, int]
    sites: int
    """Sites with a page."""
    visits: int
    """All visits, whatever came of them."""
    freshness: float | None
    """The expected share of the stored pages whose copy is current now."""
    freshness_low: float | None
    """90 % interval."""
    freshness_high: float | None
    freshness_sd: float | None
    """Standard deviation of the freshness."""
    versions: int
    archive_bytes: int
    last_visit: datetime | None
    searchable: int
    age_seconds: dict[str, float]
    """Seconds since the last visit of stored pages: p10, p50, p90, p100; empty without one."""
    spending: Row | None
    """What the last cycle spent, by site."""
    cycles: list[Row]
    """The last five crawls and cycles, newest first; `started` and `finished` are datetimes."""
    running: Row | None = None
    """The crawl or cycle under way, as `Repository.running` gives it."""
    problems: tuple[str, ...] = ()
    """What is wrong with the files, in sentences; `Repository.check` looks further."""
    brakes: list[Row] = field(default_factory=list)
    """Sites whose pages suddenly share one text, which is not recorded: `site`, `since` (a datetime), `title`, `pages`
    with the text of the `recent` ones."""
    requisites: int = 0
    """Known page requisites: stylesheets, images and other files."""
    screenshots: int = 0

    def as_dict(self) -> Row:
        """As `recrawl status --json` prints it."""
        cycles = [{**row, **{name: iso(row[name]) for name in ("started", "finished")}} for row in self.cycles]
        brakes = [{**row, "since": iso(row["since"])} for row in self.brakes]
        own = {"last_visit": iso(self.last_visit), "cycles": cycles, "brakes": brakes, "problems": list(self.problems)}
        return {**asdict(self), **own}


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that matches a query."""

    page: int
    url: str
    title: str
    time: datetime
    """When the version that is indexed was downloaded."""
    score: float
    snippet: str
    marks: tuple[tuple[int, int], ...]
    """Where in the snippet the words of the query are: (start, end)."""
    also: tuple[str, ...] = ()
    """Other URLs with the same page."""

    def as_dict(self) -> Row:
        """As `recrawl search --json` prints it."""
        row = asdict(self)
        row["at"] = iso(row.pop("time"))
        return {name: row[name] for name in ("page", "url", "title", "at", "score", "snippet", "marks", "also")}


class SearchHits(list[SearchHit]):
    """The pages that match a query, best first."""

    unanswered: tuple[int, ...] = ()
    """Shards of a cluster that did not answer in time: their pages are missing."""

    @property
    def problem(self) -> str:
        """A sentence about what is missing; empty if nothing is."""
        if not self.unanswered:
            return ""
        named = ", ".join(map(str, self.unanswered[:10])) + (" and others" if len(self.unanswered) > 10 else "")
        return f"not all pages were searched: shard{'s' * (len(self.unanswered) > 1)} {named} did not answer"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a page was visited or not, and what the next cycle would do with it."""

    url: str
    state: str
    sentences: tuple[str, ...]
    plan: Row | None
    """The next cycle's numbers for the page; None when it cannot be planned."""

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def as_dict(self) -> Row:
        """As `recrawl why --json` prints it."""
        return {"url": self.url, "state": self.state, "why": list(self.sentences), "plan": self.plan}
