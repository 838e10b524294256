"""What operations answer with: types from which JSON and its schema are made, and the cursors of lists.

Times are ISO 8601 in UTC. A field that may be missing in a repository of today is `None` there, never left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from recrawl.errors import UsageError
from recrawl.operations import described_fields
from recrawl.settings import Seed

Item = TypeVar("Item")
Made = TypeVar("Made")
_TIMES = frozenset({
    "at", "began", "created", "cycle_due", "due", "expires", "finished", "found", "held_until", "last_change",
    "last_try", "last_visit", "missing_since", "published", "read", "robots_at", "robots_held", "sent", "since",
    "sitemap_at", "started", "until", "updated", "version_at",
})  # fmt: skip
"""Members that are times in seconds if they are floats."""


def about(text: str) -> Meta:
    """What a field means."""
    return Meta(description=text)


class BaseAnswer(Struct, frozen=True, kw_only=True):
    """The base of all answers."""


class ListAnswer(BaseAnswer, Generic[Item], frozen=True, kw_only=True):
    """A part of a list."""

    items: list[Item]
    next: Annotated[str | None, about("Value of `after` for the next rows; null at the end.")] = None


# -- the repository ------------------------------------------------------------------------------------------------


class CycleAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A crawl or cycle with its results."""

    id: int
    kind: Annotated[str, about("crawl, cycle, import ...")]
    policy: str
    budget: int
    started: datetime
    finished: datetime | None
    visits: int | None
    unchanged: int | None
    changed: int | None
    new: int | None
    gone: int | None
    failed: int | None
    skipped: Annotated[int | None, about("Pages that our own rules skip.")]
    missing: Annotated[int | None, about("Pages that may be gone.")]
    frame_only: Annotated[int | None, about("Changes of the frame of the site alone: menus, footers, stamps.")]
    not_modified: Annotated[int | None, about("Responses with status 304.")]
    received: Annotated[int | None, about("Bytes over the wire.")]
    seconds: float | None
    expected: Annotated[float | None, about("Updates that were expected.")]
    expected_sd: float | None
    failures: Annotated[dict[str, int] | None, about("Failed visits by reason.")]
    pages: Annotated[int | None, about("Stored pages at its end.")]
    freshness: float | None
    freshness_sd: float | None
    age: Annotated[float | None, about("Median seconds since the last visit of a stored page, at its end.")]
    ages: Annotated[list[int] | None, about("Stored pages by time since their last visit, in nine classes.")]


class SchedulerAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The state of the scheduler."""

    enabled: Annotated[bool, about("False if scheduling is off for this run of the service.")]
    paused: bool
    running: bool
    due: Annotated[
        datetime | None, about("When the next turn starts: a cycle, or visits to pages with an interval of their own.")
    ]
    cycle_due: Annotated[datetime | None, about("When the next cycle starts.")]
    began: Annotated[datetime | None, about("When the running turn started.")]
    progress: Annotated[dict[str, Any] | None, about("Latest progress of the running turn.")]
    last: Annotated[dict[str, Any] | None, about("Summary of the last turn since the service started.")]
    error: Annotated[str, about("Why the last turn failed; empty if it succeeded.")]
    failures: Annotated[int, about("Failed turns in a row.")]


class StatusAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The state of the repository and of the scheduler."""

    pages: int
    stored: Annotated[int, about("Pages with a copy that counts: live, or missing and not yet gone.")]
    states: Annotated[dict[str, int], about("Pages by state.")]
    sites: int
    visits: int
    changes: int
    failing: Annotated[int, about("Pages whose last visits failed.")]
    last_visit: datetime | None
    freshness: Annotated[float | None, about("The expected share of the stored pages whose copy is current now.")]
    freshness_low: Annotated[float | None, about("90 % interval.")]
    freshness_high: float | None
    freshness_sd: float | None
    age_seconds: Annotated[
        dict[str, float], about("Seconds since the last visit of stored pages: p10, p50, p90, p100.")
    ]
    archive_bytes: int
    last_cycle: CycleAnswer | None
    problems: Annotated[list[str], about("What needs attention, in sentences.")]
    scheduler: SchedulerAnswer


class HintTrustAnswer(BaseAnswer, frozen=True, kw_only=True):
    """How far a kind of hint of a site is believed."""

    kind: str
    read: datetime | None
    signals: int
    ignored: int
    problem: str
    precision: float | None
    recall: float | None
    visits: float


class SiteCycleAnswer(BaseAnswer, frozen=True, kw_only=True):
    """What a cycle did on a site."""

    site: int
    cycle: int
    visits: int
    updates: int
    failed: int
    not_modified: int
    received: int
    seconds: float
    expected: float | None


class SiteSummaryAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A site with its totals; some are null before its first cycle."""

    id: int
    url: str
    robots_status: Annotated[int, about("HTTP status of robots.txt; 0 without an answer, -1 when never fetched.")]
    robots_at: datetime | None
    sitemap_at: datetime | None
    held_until: Annotated[datetime | None, about("Until when the server asked for a pause.")]
    site: int | None
    at: Annotated[datetime | None, about("When the totals were made.")]
    pages: int | None
    found: int | None
    live: int | None
    missing: int | None
    gone: int | None
    moved: int | None
    barred: int | None
    dropped: int | None
    visits: int | None
    changes: int | None
    failing: int | None
    bytes: int | None
    last_visit: datetime | None
    last_change: datetime | None
    rate: Annotated[float | None, about("Changes per page and day.")]
    freshness: float | None
    freshness_sd: float | None
    age: Annotated[float | None, about("Median seconds since the last visit of a stored page.")]
    hints: list[HintTrustAnswer]


class SiteDetailsAnswer(SiteSummaryAnswer, frozen=True, kw_only=True):
    """A site with its totals, its validators and its latest cycles."""

    lm_good: Annotated[int, about("How often its Last-Modified was right.")]
    lm_bad: int
    etag_good: Annotated[int, about("How often its ETag was right.")]
    etag_bad: int
    cycles: list[SiteCycleAnswer]


class PushSourceAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A source of pushes with its precision."""

    source: str
    right: Annotated[float, about("Pushed pages that had changed; older ones count less.")]
    wrong: float
    trusted: bool
    precision: float | None


class PageAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A page in a list."""

    id: int
    url: str
    site: int
    state: str
    depth: int
    visits: int
    changes: int
    failures: Annotated[int, about("Failed visits in a row.")]
    found: datetime
    last_visit: datetime | None
    last_change: datetime | None
    size: Annotated[int, about("Bytes of the newest version.")]
    title: str | None


class PageDetailsAnswer(PageAnswer, frozen=True, kw_only=True):
    """All that is known of a page."""

    parent: Annotated[int, about("The page on which it was found; -1 for a seed.")]
    parent_url: str | None
    cycle: int
    listed: Annotated[bool, about("Whether the sitemap of its site names it.")]
    quiet: Annotated[int, about("Visits in a row without a change.")]
    misses: Annotated[int, about("Answers 404 or 410 in a row.")]
    version: Annotated[int, about("The newest version; -1 for none.")]
    version_at: datetime | None
    target: int
    target_url: Annotated[str | None, about("Where a moved page redirects to.")]
    last_try: datetime | None
    missing_since: datetime | None
    etag: str | None
    modified: Annotated[str | None, about("The Last-Modified of its newest version.")]
    counters: str | None
    archived_url: Annotated[str, about("The URL that its newest version came from, if it is another one.")]
    prior: Annotated[float | None, about("How likely it was to change by its first version, from 0 to 1.")]
    origin: str


class ChangeAnswer(BaseAnswer, frozen=True, kw_only=True):
    """An update that a visit found."""

    id: int
    page: int
    at: datetime
    outcome: Annotated[str, about("new, changed or gone.")]
    version: int
    url: str
    site: int
    origin: str
    unread: bool
    title: str | None
    divergence: Annotated[float | None, about("The share of words that differ from the version before.")]
    significant: Annotated[bool | None, about("Whether it passes the chi-squared test.")]
    new_links: int | None


class SearchAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A page that matches a query."""

    page: int
    url: str
    title: str
    at: Annotated[datetime, about("When the version that is indexed was downloaded.")]
    score: float
    snippet: str
    marks: Annotated[list[list[int]], about("Where in the snippet the words of the query are: [start, end].")]
    also: Annotated[list[str], about("Other URLs with the same page.")]


class SearchListAnswer(ListAnswer[SearchAnswer], frozen=True, kw_only=True):
    """A part of the pages that match a query."""

    unanswered: Annotated[list[int], about("Shards of a cluster that did not answer in time.")] = []


class PolicyAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A policy."""

    name: str
    what: str
    parameters: Annotated[dict[str, str], about("Parameters with their defaults.")]
    needs: list[str]
    source: str


# -- a page --------------------------------------------------------------------------------------------------------


class VersionAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A version of a page."""

    id: int
    at: datetime
    divergence: float | None
    new_links: int | None
    size: int
    title: str | None
    mime: str
    encoding: str
    digest: Annotated[str, about("MD5 of the text without noise, in hexadecimal.")]
    language: str | None
    description: str | None
    image: str | None
    published: datetime | None
    updated: datetime | None
    changed: Annotated[bool, about("False when the markup alone differs from the version before.")]
    significant: bool | None
    rendered: bool


class VersionTextAnswer(VersionAnswer, frozen=True, kw_only=True):
    """A version of a page with its text."""

    url: str
    text: str
    cut: Annotated[bool, about("Whether the text is shortened.")]
    problem: Annotated[str, about("Why there is no text; empty if there is.")]


class VersionDifferenceAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The difference between two versions."""

    url: str
    old: VersionAnswer
    new: VersionAnswer
    divergence: float | None
    diff: Annotated[str, about("A unified diff of the text.")]
    problem: str


class VisitAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A visit to a page."""

    at: datetime
    outcome: Annotated[str, about("unchanged, changed, new, gone or failed.")]
    status: Annotated[int, about("The HTTP status; 0 without an answer.")]
    failure: str | None
    detail: str | None
    received: int
    seconds: float
    version: int
    cycle: int
    score: Annotated[float | None, about("What the page was worth to the policy.")]
    reason: Annotated[str | None, about("Why the policy chose it.")]
    policy: str | None
    kind: str | None


class PagePlanAnswer(BaseAnswer, frozen=True, kw_only=True):
    """What the next cycle would do with a page."""

    policy: str
    budget: int
    known: int
    visitable: bool
    place: int | None
    planned: bool
    score: float | None
    reason: str | None
    last_score: float | None
    site_most: int | None
    site_planned: int | None
    failures: int
    probability: float | None


class WhyAnswer(BaseAnswer, frozen=True, kw_only=True):
    """Why a page is visited or not."""

    url: str
    state: str
    why: Annotated[list[str], about("The reasons, in sentences.")]
    plan: PagePlanAnswer | None


class PageHistoryAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The visits on which a prediction rests."""

    visits: int
    compared: int
    changes: int
    first: datetime | None
    last: datetime | None
    last_change: datetime | None
    low: float | None
    high: float | None


class PredictionAnswer(BaseAnswer, frozen=True, kw_only=True):
    """How likely a page has changed since its last visit, and on what grounds."""

    url: str
    state: str
    at: datetime
    probability: float | None
    enough_history: bool
    basis: str
    model_visits: int | None
    site_rate: float | None
    history: PageHistoryAnswer
    seconds_since_visit: float | None
    relatives: list[dict[str, Any]]
    content: dict[str, Any] | None


class RateAnswer(BaseAnswer, frozen=True, kw_only=True):
    """Changes per day."""

    url: str
    rate: float | None
    low: float | None
    high: float | None
    visits: int
    changes: int
    days: float
    pages: Annotated[int | None, about("Pages of a directory or site.")] = None
    together: Annotated[float | None, about("Changes per day of all of its pages.")] = None
    even_chance_by: Annotated[datetime | None, about("When a change is as likely as none.")] = None
    last_visit: datetime | None = None
    chance_by_now: float | None = None
    dated_changes: Annotated[int | None, about("Changes that the server's Last-Modified dated.")] = None
    estimates: Annotated[dict[str, float | None] | None, about("Changes per day by estimator.")] = None


# -- settings ------------------------------------------------------------------------------------------------------


class SettingAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A setting."""

    name: str
    value: bool | int | float | str | list[str]


class DescribedSettingAnswer(SettingAnswer, frozen=True, kw_only=True):
    """A setting with its default and meaning."""

    default: bool | int | float | str | list[str]
    help: str


@dataclass(frozen=True, kw_only=True)
class AddedSeedAnswer(Seed):
    """What adding a URL did."""

    added: Annotated[bool, about("False if it was tracked already.")]
    notes: Annotated[list[str], about("What changed and what stays, in sentences.")]


class RemovedAnswer(BaseAnswer, frozen=True, kw_only=True):
    """What was removed, by name."""

    removed: str


class RemovedSeedsAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The seeds that were removed."""

    removed: list[str]


class NamedAnchorAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The anchor of a site, named by hand; null if it is detected."""

    site: str
    url: str | None = None


class AnchorAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The page that links the newest pages of a site."""

    url: str
    score: float | None
    named: bool
    why: str


class AnchorCandidateAnswer(BaseAnswer, frozen=True, kw_only=True):
    """Another page that could be the anchor."""

    url: str
    score: float
    links_from_root: int | None
    links: int
    new: int
    changed: int


class DepthChangeAnswer(BaseAnswer, frozen=True, kw_only=True):
    """Change at a link distance from the anchor."""

    depth: Annotated[int | None, about("null: not reachable.")]
    pages: int
    visits: int
    changed: float | None
    expected: float | None
    pages_up_to: int | None
    success_up_to: float | None
    hours_up_to: float | None


class AnchorAdviceAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The recommended depth."""

    n: int
    why: str
    pages: int


class SiteAnchorAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The anchor of a site, and change by link distance from it."""

    site: str
    pages: int
    anchor: AnchorAnswer
    runners_up: list[AnchorCandidateAnswer]
    depths: list[DepthChangeAnswer]
    uniform: float | None
    recommended: AnchorAdviceAnswer


# -- marks ---------------------------------------------------------------------------------------------------------


class RequestedVisitsAnswer(BaseAnswer, frozen=True, kw_only=True):
    """Pages that will be visited."""

    pages: int
    started: Annotated[bool, about("False if a cycle is running: it is followed by the visits.")]


class SavedFilterAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A saved filter of changes."""

    name: str
    filter: dict[str, str]


# -- the service ---------------------------------------------------------------------------------------------------


class RunningAnswer(BaseAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """The crawl or cycle under way, whoever started it; without one there is `running` alone."""

    running: bool
    kind: str | None = None
    pid: int | None = None
    began: datetime | None = None
    at: datetime | None = None
    total: int | None = None
    received: int | None = None
    found: int | None = None
    rate: float | None = None
    url: str | None = None
    visits: int | None = None
    unchanged: int | None = None
    changed: int | None = None
    new: int | None = None
    gone: int | None = None
    failed: int | None = None
    skipped: int | None = None
    missing: int | None = None
    share: float | None = None
    seconds_left: float | None = None


class OutboxAnswer(BaseAnswer, frozen=True, kw_only=True):
    """An update that an alert rule found, and its delivery."""

    id: int
    alert: str
    key: Annotated[str, about("Names the update to the receiver, so that it can drop doubles.")]
    state: str
    tries: int
    due: datetime | None
    created: datetime
    sent: datetime | None
    error: str | None
    body: dict[str, Any]


class SinkAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A system that gets every change."""

    name: str
    kind: str
    site: Annotated[str, about("Only changes of this site; all if empty.")]
    max_body: Annotated[str, about("A change with a larger body is sent without its text; empty: the kind's limit.")]
    delivered: Annotated[int, about("The last change up to which all were delivered, parked or dropped; -1: none.")]
    waiting: int
    parked: int
    problem: Annotated[str, about("Why the last delivery failed; empty if none waits that did.")]


class ParkedAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A change that was not delivered and is not tried again by itself."""

    number: int
    receiver: Annotated[str, about("Name of the sink or alert.")]
    kind: Literal["sink", "alert"]
    page: int
    url: str
    outcome: str
    tries: int
    since: datetime
    error: str


class SettledAnswer(BaseAnswer, frozen=True, kw_only=True):
    """How many parked changes are to be sent again, or were dropped."""

    changes: int


class SubscriptionAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A WebSub subscription."""

    name: str
    topic: str
    hub: str
    state: str
    created: datetime | None = None
    expires: datetime | None = None
    due: Annotated[datetime | None, about("When it is renewed.")] = None
    tries: Annotated[int, about("Failed renewals in a row.")] = 0
    error: str = ""
    callback: str = ""


class UploadedFileAnswer(BaseAnswer, frozen=True, kw_only=True):
    """An uploaded file; `bytes` is null for a folder."""

    name: str
    bytes: int | None
    at: datetime | None = None


class JobAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A long command."""

    number: int
    name: str
    state: Annotated[str, about("running, done, failed or cancelled.")]
    asked: Annotated[dict[str, Any], about("The request.")]
    told: Annotated[str, about("The latest message of its progress.")]
    began: datetime
    finished: datetime | None
    file: Annotated[str, about("The name of its output file; empty if it makes none.")]
    error: str


class JobResultAnswer(JobAnswer, frozen=True, kw_only=True):
    """A long command with its result."""

    result: Annotated[Any, about("What the command printed with --json; null until it is done.")] = None


class NodeAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A machine of a cluster."""

    name: str
    host: str
    draining: bool
    seen: Annotated[float, about("Seconds since it was seen.")]
    shards: list[int]


class ShardAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A shard of a cluster."""

    shard: int
    worker: Annotated[str, about("Who owns it; empty if nobody does.")]
    node: str
    lease: Annotated[float | None, about("Seconds until its lease ends, unless it is renewed.")]
    wanted: Annotated[str, about("The node on which it shall run, if it was moved by hand.")]
    state: Annotated[str, about("ready, running, idle, done, failed; empty without a run.")]
    visits: Annotated[int, about("In the run under way.")]
    lag: Annotated[float | None, about("Seconds since its last report in the run under way.")]
    links: Annotated[int, about("Links of other shards that wait for it.")]
    problem: str


class ClusterRunAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The run of a cluster that is under way."""

    id: int
    kind: str
    policy: str
    budget: int | None
    visits: int


class ClusterAnswer(BaseAnswer, frozen=True, kw_only=True):
    """A cluster: its machines and shards."""

    store: str
    shards: list[ShardAnswer]
    nodes: list[NodeAnswer]
    coordinator: Annotated[str, about("Who leads; empty if nobody does.")]
    run: ClusterRunAnswer | None


class ComparisonAnswer(BaseAnswer, frozen=True, kw_only=True):
    """The latest comparison of policies on the repository's history."""

    state: Annotated[str, about("none, or that of its job.")]
    number: int | None = None
    told: str = ""
    error: str = ""
    question: Annotated[dict[str, Any] | None, about("The policies, budgets and cycle that were asked for.")] = None
    rows: Annotated[list[dict[str, Any]], about("One result for each policy and budget.")] = []


def bad_cursor(cursor: str) -> UsageError:
    """The error for an invalid `after`."""
    return UsageError(f"invalid cursor '{cursor}'; use `next` of the previous response, or omit it")


def number_after(cursor: str, *, default: int = -1) -> int:
    """The number in a cursor; the default if it is empty.

    >>> number_after(""), number_after("7")
    (-1, 7)
    """
    if not cursor:
        return default
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise bad_cursor(cursor)
    return int(cursor)


@cache
def shape(kind: Any) -> Any:
    """The type of the JSON of a result: that of its fields, without secrets."""
    if get_origin(kind) in (list, tuple):
        return list[shape(get_args(kind)[0])]  # type: ignore[misc]
    if not is_dataclass(kind) and not hasattr(kind, "_fields"):
        return kind
    parents: list[Any] = [one for one in kind.__mro__[::-1] if one is kind or is_dataclass(one)]
    hints, texts = get_type_hints(kind), {name: text for one in parents for name, _, text in described_fields(one)}
    secret = {item.name for item in fields(kind) if item.metadata.get("secret")} if is_dataclass(kind) else set()
    texts |= dict.fromkeys(secret, "Whether it has one.")
    members = [(name, bool if name in secret else shape(hint)) for name, hint in hints.items()]
    told = [(name, Annotated[hint, about(texts[name])] if texts.get(name) else hint) for name, hint in members]
    return msgspec.defstruct(
        kind.__name__, told, bases=(BaseAnswer,), kw_only=True, frozen=True, namespace={"__doc__": kind.__doc__}
    )


def shaped(value: Any) -> Any:
    """A result as its `shape`: of a secret, whether there is one."""
    if is_dataclass(value):
        values = {item.name: getattr(value, item.name) for item in fields(value)}
        secret = {item.name for item in fields(value) if item.metadata.get("secret")}
        return {name: bool(item) if name in secret else shaped(item) for name, item in values.items()}
    if hasattr(value, "_asdict"):
        return {name: shaped(item) for name, item in value._asdict().items()}
    return [shaped(item) for item in value] if isinstance(value, (list, tuple)) else value


def made(kind: type[Made], value: Any) -> Made:
    """A value of the store as an answer."""
    return msgspec.convert(plain(value), kind, strict=False, from_attributes=True)


def listing(kind: type[Made], items: Iterable[Any], following: object = None) -> ListAnswer[Made]:
    """A part of a list, and the cursor of the next part."""
    return ListAnswer(items=[made(kind, item) for item in items], next=None if following is None else str(following))


def plain(value: Any, name: str = "") -> Any:
    """A value as JSON knows it: times as ISO 8601, bytes as hexadecimal digits, infinity as null."""
    if isinstance(value, dict):
        return {key: plain(item, str(key)) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        if name in _TIMES:
            return _iso(value)
        return value if math.isfinite(value) else None
    return value


def _iso(at: float) -> str | None:
    """A time of the years 1970 to 9999; nothing for the marks of never."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds") if 0 < at < 253_402_300_800 else None
