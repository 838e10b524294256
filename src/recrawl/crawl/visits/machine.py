"""A visit is a state machine: what may happen to everything that is under way, in one place.

    machine.handle(event, now, at) -> actions

Facts come in as events: a turn has come, a row of the store, an answer, a parsed page, a login that has ended. What
must be done goes out as actions: read this row, send this request, parse, render, record. `VisitMachine` holds all
that decides between them, and has no store, no network, no clock and no process: `now` (seconds that pace requests)
and `at` (the time that is recorded) come with each event. Shells carry the actions out and report what came of them:
the live one (`recrawl.crawl.visits.live`), also on the workers of a cluster, and the simulated one
(`recrawl.testing.simulate`).

What is under way is a *thing* of one of eight kinds, each in a `Phase`:

    PageVisit       a page, from its turn until its visit is recorded
    RobotsRead      the robots.txt of a server, before anything else is requested from it
    SitemapRead     one sitemap, or index of sitemaps
    FeedRead        one feed
    AbsentRead      an address that cannot exist: what the server answers is no page
    RequisiteRead   a stylesheet, image, font or script that pages need
    StoredScan      a stored page that is searched for its requisites
    SiteLogin       a login; nothing is requested from its server meanwhile

`TRANSITIONS` lists every step from one phase to another, and what causes it; any other one raises
`ImpossibleTransition` with the *story* of the thing, its last steps. A page that waits for its first turn is no thing
yet: it is a number in the lane of its server (`recrawl.fetch.lanes`), so that millions can wait. `validate` checks all
invariants; it runs after every event if `checks` are on (tests, the simulator, RECRAWL_CHECK=1).

The file reads in this order: things, transitions, events, actions; then the machine: choosing, turns, answers of
pages, the browser and the readers, recording, servers that get no more requests, robots.txt, sitemaps and feeds,
addresses that cannot exist, logins, requisites, invariants.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from msgspec import Struct

from recrawl.columns import DAY, Ints
from recrawl.compare.digest import of_payload, of_text
from recrawl.compare.validators import learn, usable
from recrawl.crawl.visits.shared_text import SharedTexts
from recrawl.discover.urls import canonical, origin
from recrawl.fetch.fetcher import Request
from recrawl.fetch.lanes import MAX_RETRY_AFTER, parse_retry_after
from recrawl.fetch.robots import Robots, failure_text
from recrawl.learn.copies.absent import AbsentAddresses, AbsentAnswer, absent_address
from recrawl.model import SILENT, Answer, Failure, State, Unvisited, Validators
from recrawl.times import elapsed

if TYPE_CHECKING:
    from recrawl.crawl.options import CrawlOptions
    from recrawl.crawl.render.messages import Rendered
    from recrawl.crawl.visits.messages import Reading
    from recrawl.crawl.visits.servers import Server
    from recrawl.fetch.access import Accesses
    from recrawl.fetch.lanes import Lanes
    from recrawl.record.rows import FeedRow, PageRow, PageState, RequisiteRow

REDIRECTS = (301, 302, 303, 307, 308)
PERMANENT = (301, 308)
ARCHIVED = frozenset({*REDIRECTS, 404, 410})
"""Statuses of answers that are archived although they are no version of the page."""

FEED_BYTES = 4_000_000
_ROBOTS_BYTES = 512_000  # RFC 9309: a crawler need not read more
_SITEMAP_BYTES = 52_428_800
_MAX_UNPARSED = 64_000_000
"""Bytes of bodies that may wait for a reader process; beyond that no request is sent."""
_MAX_UNREACHED = 5
"""Failed connections in a row after which a server gets no more requests in this run."""
_LONG, _SOON, _LOOKED_AT = 10.0, 0.05, 10_000
"""Seconds after which a policy chooses without the outcome of a page that was requested; the least time between two
looks for such pages; and how far they look into the lanes of their servers."""
_MAX_LOGINS = 3
_MAX_HOPS = 5
"""Redirects of a robots.txt or a sitemap."""
_MAX_DEMAND_HOPS = 6
_MAX_SITEMAPS = 500
_MAX_BEFORE_CYCLE = 50
"""Sitemaps of a server that are read before a cycle chooses its pages: until then, all other servers wait."""
_MAX_NESTING = 3
_STORY = 16
"""Steps that a thing remembers."""
_ERROR_PAGES = ("text/html", "application/xhtml+xml")
"""Media types of a requisite that is an error page without the status of an error."""
_TOO_LARGE = ("audio/", "video/")
"""Media types of requisites that are too large for what they show."""


# -- things --------------------------------------------------------------------------------------------------------


class Phase(Enum):
    """Where a thing is."""

    __hash__ = object.__hash__  # of the name, it would be the dearest part of a step

    WAITING = "waits in the lane of its server"
    ASKED = "requested"
    REDIRECTED = "its target is looked up"
    COMPARED = "compared with the stored bytes"
    RENDERING = "with the browser"
    PARSING = "with a reader process"
    RECORDING = "its rows are made"
    ENDED = "ended"


Step = tuple[float, type["MachineEvent"] | None, Phase]
"""When, the kind of the event that caused it, and the phase it led to."""


class Thing:
    """What is under way. `server` is the number of its server."""

    __slots__ = ()
    server: int
    phase: Phase | None
    steps: list[Step]
    """Its last steps."""

    @property
    def story(self) -> str:
        """The last steps, one per line."""
        lines = [
            f"{now:16.3f}  {'?' if event is None else event.__name__:18} -> {phase.name}"
            for now, event, phase in self.steps
        ]
        return "\n".join([f"{type(self).__name__} {self.name}", *lines])

    @property
    def name(self) -> str:
        """What it is called in its story."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class PageVisit(Thing):
    """One visit of a page, from its turn until it is recorded."""

    page: int
    url: str
    server: int
    depth: int
    listed: int
    state: PageState
    score: float | None
    why: int | None
    """Number of the policy's reason in the store."""
    request_url: str
    """The URL requested now; differs from `url` while redirects are followed."""
    hints: int = 0
    """Hints about the page since its last visit, packed (see `hint_codec`)."""
    needs: tuple[int, bytes] | None = None
    """Level and packed numbers of its requisites; None if they were never looked for, or are not kept."""
    validators: Validators | None = None
    """Sent with the current request."""
    identity: bool = False
    """Whether the body is requested without compression, after one that could not be decoded."""
    retries: int = 0
    session: int = 0
    """Logins of the run when the page was requested."""
    logins: int = 0
    """Logins that this visit has asked for."""
    requested: bool = False
    """Whether a request was sent at all."""
    redirects: list[str] = field(default_factory=list)
    """URLs that redirected in this visit, in order."""
    hides: bool = False
    """Whether the headers of the answer exclude the page from searches that find it so far."""
    answer: Answer | None = None
    payload: bytes = b""
    """SHA-1 of the answer's body."""
    same_noise: bool = True
    """Whether the stored digest was made with the current noise filter."""
    browsed: Rendered | None = None
    """What became of the page in the browser, if it was loaded there."""
    html: str = ""
    """The page after its scripts have run; empty if it was not rendered."""
    refreshes: Reading | None = None
    """What was read of it, if it sends browsers on at once."""
    received: int = 0
    """Bytes over the wire so far, including redirects and retries."""
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its number and URL."""
        return f"{self.page} {self.url}"


@dataclass(slots=True, eq=False)
class RobotsRead(Thing):
    """The robots.txt of a server."""

    server: int
    url: str
    redirects: int = 0
    identity: bool = False
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its URL."""
        return self.url


@dataclass(slots=True, eq=False)
class SitemapRead(Thing):
    """One sitemap of a server."""

    server: int
    url: str
    level: int = 0
    named: bool = False
    """Whether robots.txt names it, which allows it."""
    redirects: int = 0
    identity: bool = False
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its URL."""
        return self.url


@dataclass(slots=True, eq=False)
class FeedRead(Thing):
    """One feed of a server."""

    server: int
    url: str
    validators: Validators | None = None
    identity: bool = False
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its URL."""
        return self.url


@dataclass(slots=True, eq=False)
class AbsentRead(Thing):
    """An address of a server that cannot exist."""

    server: int
    template: str
    url: str
    identity: bool = False
    answer: Answer | None = None
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its URL."""
        return self.url


@dataclass(slots=True, eq=False)
class RequisiteRead(Thing):
    """One file that pages need to be shown as they looked."""

    server: int
    row: RequisiteRow
    demanded: bool = False
    """Whether the page in the browser needs it: outside the budget of the run, and of any media type."""
    identity: bool = False
    answer: Answer | None = None
    payload: bytes = b""
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its number and URL."""
        return f"{self.row.id} {self.row.url}"


@dataclass(slots=True, eq=False)
class StoredScan(Thing):
    """A stored page that is searched for the requisites that it needs."""

    server: int
    page: int
    level: int
    url: str
    version: int
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The number of its page."""
        return str(self.page)


@dataclass(slots=True, eq=False)
class SiteLogin(Thing):
    """A login of a site."""

    server: int
    origin: str
    phase: Phase | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The origin of its server."""
        return self.origin


TRANSITIONS: dict[type[Thing], dict[tuple[Phase | None, Phase], str]] = {
    PageVisit: {
        (None, Phase.WAITING): "its turn has come, and its row is read",
        (Phase.WAITING, Phase.ASKED): "it may be requested",
        (Phase.ASKED, Phase.WAITING): "429 or 503, a redirect to follow, a login, a broken encoding",
        (Phase.ASKED, Phase.REDIRECTED): "a redirect to what may be another page",
        (Phase.ASKED, Phase.RENDERING): "a new version that a browser loads",
        (Phase.ASKED, Phase.PARSING): "a new version",
        (Phase.ASKED, Phase.RECORDING): "304, the same bytes, 404, a failure",
        (Phase.REDIRECTED, Phase.RECORDING): "it has moved, or the redirect leads nowhere",
        (Phase.RENDERING, Phase.PARSING): "the browser is done",
        (Phase.PARSING, Phase.RECORDING): "parsed, or the reason why not",
        (Phase.PARSING, Phase.REDIRECTED): "it sends browsers on at once",
        (Phase.WAITING, Phase.RECORDING): "robots.txt, a limit or its server forbids the request",
        (Phase.WAITING, Phase.ENDED): "left for the next crawl, or the bytes of the cycle or the site are spent",
        (Phase.RECORDING, Phase.ENDED): "recorded",
    },
    RobotsRead: {
        (None, Phase.WAITING): "it has expired, and no page waits",
        (None, Phase.ASKED): "it has expired, and the turn of something else has come",
        (Phase.WAITING, Phase.ASKED): "its turn comes",
        (Phase.ASKED, Phase.ASKED): "a redirect, a broken encoding",
        (Phase.ASKED, Phase.ENDED): "its rules are known, or that it is unreachable",
        (Phase.WAITING, Phase.ENDED): "its server gets no more requests",
    },
    SitemapRead: {
        (None, Phase.WAITING): "it is due",
        (Phase.WAITING, Phase.ASKED): "its turn comes",
        (Phase.ASKED, Phase.WAITING): "a redirect, a broken encoding",
        (Phase.ASKED, Phase.PARSING): "200",
        (Phase.ASKED, Phase.ENDED): "any other answer",
        (Phase.PARSING, Phase.ENDED): "its pages are known",
        (Phase.WAITING, Phase.ENDED): "another sitemap was not answered, or its server gets no more requests",
    },
    FeedRead: {
        (None, Phase.WAITING): "it is due",
        (Phase.WAITING, Phase.ASKED): "its turn comes",
        (Phase.ASKED, Phase.WAITING): "a broken encoding",
        (Phase.ASKED, Phase.PARSING): "any answer",
        (Phase.PARSING, Phase.ENDED): "its items are known",
        (Phase.WAITING, Phase.ENDED): "its server gets no more requests",
    },
    AbsentRead: {
        (None, Phase.WAITING): "several pages beside it show the same",
        (Phase.WAITING, Phase.ASKED): "its turn comes",
        (Phase.ASKED, Phase.WAITING): "a broken encoding",
        (Phase.ASKED, Phase.PARSING): "200",
        (Phase.ASKED, Phase.ENDED): "any other answer",
        (Phase.PARSING, Phase.ENDED): "what it shows is known",
        (Phase.WAITING, Phase.ENDED): "robots.txt forbids the request, or its server gets no more requests",
    },
    RequisiteRead: {
        (None, Phase.WAITING): "it is due, or the page in the browser needs it",
        (Phase.WAITING, Phase.ASKED): "its turn comes",
        (Phase.WAITING, Phase.RECORDING): "robots.txt or its server forbids the request",
        (Phase.WAITING, Phase.ENDED): "the budget is spent, or its server gets no more requests",
        (Phase.ASKED, Phase.WAITING): "a broken encoding",
        (Phase.ASKED, Phase.COMPARED): "200",
        (Phase.ASKED, Phase.RECORDING): "any other answer",
        (Phase.COMPARED, Phase.PARSING): "a new stylesheet",
        (Phase.COMPARED, Phase.RECORDING): "the stored bytes, or no stylesheet",
        (Phase.PARSING, Phase.RECORDING): "parsed",
        (Phase.RECORDING, Phase.ENDED): "recorded",
    },
    StoredScan: {
        (None, Phase.PARSING): "its page is unchanged, and what it needs is not known",
        (Phase.PARSING, Phase.ENDED): "parsed",
    },
    SiteLogin: {
        (None, Phase.ASKED): "there is no session, or it has expired",
        (Phase.ASKED, Phase.ENDED): "there is a session, or the login has failed",
    },
}
"""For each kind: every step from one phase to another (None: it begins), and what causes it."""


_STILL = (None, Phase.WAITING, Phase.ENDED)
_UNDER_WAY = {
    kind: {(start, end): (end not in _STILL) - (start not in _STILL) for start, end in steps}
    for kind, steps in TRANSITIONS.items()
}
"""How each step changes the number of things that something outside works on."""


class ImpossibleTransition(AssertionError):
    """A thing was to take a step that no rule knows; the message has its story."""


class BrokenInvariant(AssertionError):
    """What must always hold does not; the message has the story of the thing."""


# -- events --------------------------------------------------------------------------------------------------------


class MachineEvent(Struct, frozen=True, gc=False):
    """A fact. Structs of msgspec are frozen as dataclasses are, and cost a fifth.

    Nothing under way refers to an event or action, so the garbage collector leaves them alone.
    """


class RunBegun(MachineEvent, frozen=True):
    """The event loop begins: servers may have asked in an earlier run for a long pause."""


class ServerNeeded(MachineEvent, frozen=True):
    """Something of a server will be visited: comes before its first page or requisite of the run."""

    server: Server


class PagesChosen(MachineEvent, frozen=True):
    """Pages are to be visited: by a policy, with scores and a reason, or all that a crawl has not visited yet."""

    rows: Sequence[tuple[int, Server, bool]]
    """Each page, its server, and whether its last visit failed: then it comes behind the others."""
    scores: Sequence[float] = ()
    why: int = -1
    awaited: int = 0
    """The first so many come before what else waits, also of earlier batches."""


class OutcomesDue(MachineEvent, frozen=True):
    """The run ends when these pages have an outcome, or take very long: so may any of them but the `needed` ones, of
    which `spare` may lack."""

    pages: Collection[int]
    needed: Collection[int] = ()
    spare: int = 0


class PagesFound(MachineEvent, frozen=True):
    """Pages that were not known before; a crawl visits them."""

    rows: Sequence[tuple[int, Server]]


class HintsWanted(MachineEvent, frozen=True):
    """Read the sitemaps and feeds of a server if they are due, although none of its pages was chosen."""

    server: Server
    feeds: Sequence[FeedRow] = ()
    before_cycle: bool = False
    """Whether a cycle waits for what is read."""


class RobotsWanted(MachineEvent, frozen=True):
    """Read the robots.txt of a server if it has expired."""

    server: Server


class FeedsKnown(MachineEvent, frozen=True):
    """The feeds of a server."""

    server: int
    rows: Sequence[FeedRow]


class RequisitesBegin(MachineEvent, frozen=True):
    """From now on requisites are requested, within a budget of bytes of their own."""

    limit: float
    rows: Sequence[tuple[RequisiteRow, Server]]


class RequisitesEnd(MachineEvent, frozen=True):
    """The budget is that of pages again."""


class BytesLimited(MachineEvent, frozen=True):
    """What the cycle may receive, in total and from each site, and what it has received from each before."""

    limit: float
    site_limit: float
    before: Sequence[tuple[int, int]] = ()


class NextTurn(MachineEvent, frozen=True):
    """Another request may be sent, if one is due."""

    room: int
    """Requests that the client takes now."""
    unparsed: int
    """Bytes of bodies that wait for a reader process."""


class RowRead(MachineEvent, frozen=True):
    """The row of a page whose turn has come."""

    page: int
    row: PageRow
    hints: int = 0
    needs: tuple[int, bytes] | None = None
    endless: bool = False
    """Whether it is a new page of an endless URL space, found there."""


class AnswerCame(MachineEvent, frozen=True):
    """A request has ended; `hides` as in `PageVisit`."""

    thing: Thing
    answer: Answer
    hides: bool = False


class TargetKnown(MachineEvent, frozen=True):
    """Where a redirect leads: to a page (`target`), or to a failure."""

    visit: PageVisit
    target: int = -1
    failure: Failure | None = None
    detail: str = ""


class PageRendered(MachineEvent, frozen=True):
    """The browser is done with a page; None if it did not take it."""

    visit: PageVisit
    shown: Rendered | None


class BrowserWants(MachineEvent, frozen=True):
    """The page in the browser makes a request for this requisite; `hops` redirects led to it."""

    request: int
    row: RequisiteRow
    server: Server
    hops: int = 0


class ThingParsed(MachineEvent, frozen=True):
    """A reader process has read it, if it was there; `linked` are the known pages among its links."""

    thing: Thing
    reading: Reading | None
    linked: Ints | None = None


class FileRead(MachineEvent, frozen=True):
    """The pages of a sitemap or feed are known."""

    thing: SitemapRead | FeedRead
    children: Sequence[str] = ()
    """URLs of further sitemaps, of an index."""
    broken: bool = False


class RequisiteKnown(MachineEvent, frozen=True):
    """Whether the bytes of a requisite are those of its stored version."""

    thing: RequisiteRead
    same: bool


class RequisiteRecorded(MachineEvent, frozen=True):
    """A requisite is recorded as this row; `found` are those that it leads to and that are due."""

    thing: RequisiteRead
    row: RequisiteRow
    found: Sequence[tuple[RequisiteRow, Server]] = ()


class LoginEnded(MachineEvent, frozen=True):
    """A login has ended, with a problem or without one."""

    thing: SiteLogin
    problem: str = ""


class VisitRecorded(MachineEvent, frozen=True):
    """The rows of a visit are made."""

    visit: PageVisit
    outcome: int
    """For the policy."""
    received: int
    after: State | None = None
    """The state of the page, if the visit has told something about it."""


class BatchGrew(MachineEvent, frozen=True):
    """What waits for the next commit: results, and whether there is anything at all."""

    results: int
    anything: bool


class BatchCommitted(MachineEvent, frozen=True):
    """What was recorded is durable, for whatever reason it was committed."""


# -- findings: what a visit came to ----------------------------------------------------------------------------------


class VisitFailed(Struct, frozen=True, gc=False):
    """It says nothing about change."""

    failure: Failure
    detail: str
    answer: Answer | None = None


class PageSame(Struct, frozen=True, gc=False):
    """The page is as it was; `parsed` if that is known from its text."""

    answer: Answer
    parsed: bool = False


class PageMissing(Struct, frozen=True, gc=False):
    """404, 410, or a permanent redirect to the page `target`; a page that says so with status 200 has a `record`."""

    answer: Answer
    target: int = -1
    detail: str = ""
    record: bytes = b""


class PageRead(Struct, frozen=True, gc=False):
    """A new version."""

    reading: Reading
    linked: Ints


Finding = VisitFailed | PageSame | PageMissing | PageRead


# -- actions -------------------------------------------------------------------------------------------------------


class MachineAction(Struct, frozen=True, gc=False):
    """What must be done. Most are answered by an event."""


class ReadRow(MachineAction, frozen=True):
    """Read the row of a page: answered by `RowRead`."""

    page: int
    server: int
    explores: bool
    """Whether a new page may be left out because its URL space is endless."""


class SendRequest(MachineAction, frozen=True):
    """Answered by `AnswerCame`."""

    thing: Thing
    request: Request


class ArchiveAnswer(MachineAction, frozen=True):
    """Keep an answer that is no version of a page."""

    answer: Answer
    url: str
    validators: Validators | None = None
    identity: bool = False
    truncated: bool = False


class FindTarget(MachineAction, frozen=True):
    """Make the target of a redirect a page: answered by `TargetKnown`."""

    visit: PageVisit
    url: str
    permanent: bool
    at: float


class KeepAliases(MachineAction, frozen=True):
    """The site of a seed has moved: store it."""


class ParseThing(MachineAction, frozen=True):
    """Let a reader process read it: answered by `ThingParsed`."""

    thing: PageVisit | RequisiteRead | AbsentRead | StoredScan


class RenderPage(MachineAction, frozen=True):
    """Let the browser load a page: answered by `PageRendered`."""

    visit: PageVisit
    picture: bool


class AnswerBrowser(MachineAction, frozen=True):
    """Answer a request of the page in the browser; without an answer, it fails."""

    request: int
    answer: Answer | None = None


class AnswerFromArchive(MachineAction, frozen=True):
    """Answer a request of the page in the browser with a stored version of a requisite."""

    request: int
    version: int


class FollowWanted(MachineAction, frozen=True):
    """The browser wants a requisite that redirects to this one: answered by `BrowserWants`."""

    request: int
    target: int
    hops: int


class MakeLogin(MachineAction, frozen=True):
    """Answered by `LoginEnded`."""

    thing: SiteLogin
    private: bool


class ListFeeds(MachineAction, frozen=True):
    """Answered by `FeedsKnown`."""

    server: Server


class ReadSitemap(MachineAction, frozen=True):
    """Answered by `FileRead`."""

    thing: SitemapRead
    answer: Answer


class ReadFeed(MachineAction, frozen=True):
    """Answered by `FileRead`."""

    thing: FeedRead
    answer: Answer


class RecordListing(MachineAction, frozen=True):
    """All sitemaps of a server are read; `complete`: pages that were not listed are not listed any more."""

    server: Server
    complete: bool


class CompareRequisite(MachineAction, frozen=True):
    """Answered by `RequisiteKnown`."""

    thing: RequisiteRead


class RecordRequisite(MachineAction, frozen=True):
    """Answered by `RequisiteRecorded`. It failed, is as it was, redirects, or has a new version."""

    thing: RequisiteRead
    answer: Answer | None
    failure: str = ""
    same: bool = False
    reading: Reading | None = None


class RecordScan(MachineAction, frozen=True):
    """Record what a stored page needs."""

    page: int
    level: int
    reading: Reading


class RecordVisit(MachineAction, frozen=True):
    """Answered by `VisitRecorded`."""

    visit: PageVisit
    finding: Finding


class LeavePage(MachineAction, frozen=True):
    """A page is left for the next run."""

    cause: str


class WarnUser(MachineAction, frozen=True):
    """Tell the user."""

    text: str


class KeepBrakes(MachineAction, frozen=True):
    """The brake for a shared text was set or released: store it."""


class KeepAbsent(MachineAction, frozen=True):
    """A server has answered for an address that cannot exist: store it."""


class ReindexPages(MachineAction, frozen=True):
    """Let searches find what the store has of these pages."""

    pages: Sequence[int]


class CommitBatch(MachineAction, frozen=True):
    """Make what is recorded durable."""


class CommitIndex(MachineAction, frozen=True):
    """Make what is recorded searchable."""


# -- small rules ---------------------------------------------------------------------------------------------------


class ByteBudget:
    """Bytes received in a cycle, in total and by site, against their limits.

    The plan uses expected sizes; this counts actual bytes, including redirects and retries: once a limit is reached,
    requests under way are finished and no more are sent. Only bytes recorded with visits count, so that a resumed cycle
    continues the same count.

    >>> count = ByteBudget(1000.0, 600.0)
    >>> count.add(3, 700)
    >>> count.used_up, count.closed(3), count.closed(4)
    (False, True, False)
    """

    def __init__(
        self, limit: float = math.inf, site_limit: float = math.inf, before: Iterable[tuple[int, int]] = ()
    ) -> None:
        """`before` are the bytes by site that earlier parts of the cycle have received."""
        self._limit = limit
        self._site_limit = site_limit
        self._by_site: Counter[int] = Counter(dict(before))
        self._total = sum(self._by_site.values())

    def add(self, site: int, received: int) -> None:
        """Count the bytes of an answer."""
        self._total += received
        self._by_site[site] += received

    @property
    def used_up(self) -> bool:
        """Whether the cycle has reached its limit."""
        return self._total >= self._limit

    def closed(self, site: int) -> bool:
        """Whether this site has reached its limit."""
        return self._by_site[site] >= self._site_limit


class AwaitedPages:
    """The pages whose outcomes end a run, but for those of servers that take very long for an answer."""

    def __init__(self, due: OutcomesDue) -> None:
        self._left, self._needed, self._spare = set(due.pages), due.needed, due.spare
        self._counted = 0
        self.look = 0.0
        """When to ask again which servers are slow."""

    def over(self, outcomes: list[tuple[int, int, int]], now: float, slow: Callable[[], set[int]]) -> bool:
        """Whether the run ends; `outcomes` are those of the run so far, `slow` gives the pages of slow servers."""
        if len(outcomes) > self._counted:
            self._left.difference_update(page for page, _, _ in outcomes[self._counted :])
            self._counted = len(outcomes)
        if not self._left:
            return True
        if now < self.look:
            return False
        self.look = now + 1.0
        lacking = self._left & slow()
        return lacking == self._left and sum(page in lacking for page in self._needed) <= self._spare


class CommitTimes:
    """When what was recorded is committed: by size, by time; the index by time alone."""

    def __init__(self, options: CrawlOptions) -> None:
        self._options = options
        self._batch_by = self._index_by = math.inf

    def due(self, now: float, results: int, *, anything: bool) -> tuple[bool, bool]:
        """Whether the batch and the index are to be committed now."""
        if self._batch_by == math.inf and anything:
            self._batch_by = now + self._options.commit_seconds
        batch = results >= self._options.commit_visits or now >= self._batch_by
        if batch:
            self._batch_by = math.inf
            if self._index_by == math.inf and self._options.index:
                self._index_by = now + self._options.index_seconds
        index = now >= self._index_by
        if index:
            self._index_by = math.inf
        return batch, index

    def committed(self) -> None:
        """The batch was committed for another reason."""
        self._batch_by = math.inf

    def wait(self, now: float) -> float:
        """Seconds until one is due."""
        return max(0.0, min(self._batch_by, self._index_by) - now)


@dataclass(slots=True)
class _Sitemaps:
    """The sitemaps of one server while they are read."""

    most: int = _MAX_SITEMAPS
    requested: set[str] = field(default_factory=set)
    left: int = 0
    complete: bool = True
    """Whether all could be read so far."""
    stopped: bool = False
    """Whether one was not answered, or with a refusal: the pages come next, and the others wait for `sitemap_age`."""


@dataclass(slots=True)
class _Work:
    """What a run does with one server."""

    server: Server
    prepared: bool = False
    before_cycle: bool = False
    """Whether a cycle waits for its sitemaps."""
    sitemaps: _Sitemaps | None = None
    feeds: set[str] = field(default_factory=set)
    """Those requested in this run."""
    needs_login: bool | None = None
    """None until it is looked up."""
    logins: int = 0
    login_due: bool = False
    pausing: SiteLogin | RobotsRead | None = None
    """What its lane is on hold for."""


def sent_validators(server: Server, visit: PageVisit, noise: bytes) -> Validators | None:
    """The validators to send, so that the server may answer 304; None requests the whole page."""
    state = visit.state
    if server.reloads:
        return None
    if state.payload is None or visit.redirects or visit.hides or not (state.etag or state.modified):
        return None
    if state.noise != noise:
        return None  # the digest was made with another noise filter and must be recomputed from the body
    return usable(Validators(state.etag, state.modified), server.trust, state.quiet) or None


def learn_trust(server: Server, visit: PageVisit, answer: Answer, *, text_changed: bool) -> None:
    """Update the trust in the server's validators: did they change when the text did?"""
    if answer.status != 200:
        return  # without a body there is nothing to check them against
    after = Validators(answer.header("etag"), answer.header("last-modified"))
    if not after:
        return
    trust = learn(
        server.trust,
        before=Validators(visit.state.etag, visit.state.modified),
        after=after,
        answered_at=answer.at,
        server_date=answer.header("date"),
        text_changed=text_changed,
        status=answer.status,
    )
    if trust != server.trust:
        server.trust, server.dirty = trust, True


def learn_from_page(server: Server, visit: PageVisit, reading: Reading) -> None:
    """Update trust and redirect habits of the server from a parsed page; before its links are looked up."""
    assert visit.answer is not None
    learn_trust(server, visit, visit.answer, text_changed=reading.changed)
    if not visit.redirects and server.habits.contradict(visit.url):
        server.dirty = True


def count_state(server: Server, before: int, after: State) -> None:
    """Update the server's numbers of live and missing pages, which decide whether pages vanish together (spec C5)."""
    server.live += (after == State.LIVE) - (before == State.LIVE)
    server.missing += (after == State.MISSING) - (before == State.MISSING)


def failure_of(status: int) -> Failure:
    """The failure that a status is."""
    if status == 429:
        return Failure.RATE_LIMITED
    if status >= 500:
        return Failure.SERVER_ERROR
    return Failure.CLIENT_ERROR if 400 <= status < 500 else Failure.STATUS


def refusal_of(answer: Answer) -> str:
    """What a status says in words, and that the server asks for a browser, if its headers say so."""
    asked = answer.header("cf-mitigated").lower() == "challenge" or answer.header("x-amzn-waf-action") == "challenge"
    return f"HTTP {answer.status}" + ", a challenge for browsers" * asked


def validators_of(row: RequisiteRow) -> Validators | None:
    """The validators of the newest version of a requisite, for a conditional request."""
    return (Validators(row.etag, row.modified) or None) if row.version >= 0 else None


def _accepts_requisite(content_type: str) -> bool:
    return not content_type.strip().lower().startswith(_TOO_LARGE)


# -- the machine ---------------------------------------------------------------------------------------------------


class VisitMachine:
    """All visits of one run, and everything else that is under way for them."""

    def __init__(
        self,
        options: CrawlOptions,
        lanes: Lanes,
        *,
        fingerprints: Sequence[bytes] = (b"",),
        shared_texts: SharedTexts | None = None,
        absent: AbsentAddresses | None = None,
        accesses: Accesses | None = None,
        release: Callable[[int], float] | None = None,
        checks: bool = False,
    ) -> None:
        """`fingerprints` are those of the noise filters, by `Server.noise`; `accesses` tell which sites need a login.

        `release` gives the earliest time of the n-th request for a page. `checks` validates after every event.
        """
        self._options, self.lanes, self._fingerprints = options, lanes, fingerprints
        self.shared_texts, self.absent = shared_texts or SharedTexts(), absent or AbsentAddresses()
        self._accesses, self._release = accesses, release
        self.exploring = False
        """Whether this is a crawl: newly found pages are visited too."""
        self.turned = False
        """Whether something had its turn with the last `NextTurn`."""
        self.started = 0
        """Requests for pages so far."""
        self.outcomes: list[tuple[int, int, int]] = []
        """For the policy, not taken yet: page, outcome and bytes received."""
        self.awaited: AwaitedPages | None = None
        self.commits = CommitTimes(options)
        self._chosen: dict[int, tuple[float, int]] = {}
        """Score and reason of pages that a policy chose and that wait for their turn."""
        self._looking: dict[int, tuple[int, Failure | None]] = {}
        """Pages whose row is being read: the server, and why they will not be requested."""
        self._pages: dict[int, PageVisit] = {}
        self._others: set[Thing] = set()
        """Things that are no pages."""
        self._asked = 0
        """Things that something outside works on: requests, readers, the browser, logins."""
        self._work: dict[int, _Work] = {}
        self._to_render: dict[int, deque[PageVisit]] = {}
        """Pages that wait for the browser by server, the one whose turn is next first."""
        self._rendering: PageVisit | None = None
        self._demands: dict[int, list[int]] = {}
        """Requests of the page in the browser, by the number of the requisite that they wait for."""
        self._queued: set[int] = set()
        """All requisites that were queued in this run: each is requested once."""
        self._requisites: dict[int, RequisiteRead] = {}
        self._requisites_left = options.requisite_budget
        self._bytes = self._page_bytes = ByteBudget()
        self._kept_release = release
        self._types: dict[str, bool] = {}
        self._now, self._at = 0.0, 0.0
        self._cause: type[MachineEvent] | None = None
        self._actions: list[MachineAction] = []
        self._judge = _Judge() if checks else None

    def handle(self, event: MachineEvent, now: float, at: float) -> list[MachineAction]:
        """What must be done after an event; `now` paces requests, `at` is recorded (they differ in tests and demos)."""
        kind = type(event)
        self._now, self._at, self._cause = now, at, kind
        actions: list[MachineAction] = []
        self._actions = actions
        _HANDLERS[kind](self, event)
        if self._judge is not None:
            self.validate()
        return actions

    # -- questions of the shell --------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether anything waits or is under way."""
        return bool(self._asked or len(self.lanes))

    @property
    def rendering(self) -> int:
        """Pages that wait for the browser or are in it."""
        return sum(map(len, self._to_render.values())) + (self._rendering is not None)

    def over(self, now: float) -> bool:
        """Whether the run ends because the awaited pages have an outcome."""
        return self.awaited is not None and self.awaited.over(self.outcomes, now, lambda: self._slow_pages(now))

    def _slow_pages(self, now: float) -> set[int]:
        """The pages that wait for a server whose answer is not there after a long time."""
        asked = [it for it in self._pages.values() if it.phase is Phase.ASKED and now - it.steps[-1][0] >= _LONG]
        slow, others = {visit.server for visit in asked}, {visit.page for visit in asked}
        behind = (item for server in slow for item in self.lanes.upcoming(server, _LOOKED_AT))
        return others | {item for item in behind if isinstance(item, int)}

    def wait(self, now: float, *, room: int, unparsed: int) -> float:
        """Seconds until something is due that no event announces; room and unparsed bytes as in `NextTurn`."""
        least = self.commits.wait(now)
        if self.awaited is not None:
            least = min(least, max(self.awaited.look - now, _SOON))
        wait = self.lanes.wait(now)
        if wait is not None and room > 0 and unparsed < _MAX_UNPARSED:
            if self._release is not None:
                wait = max(wait, self._release(self.started) - now)
            least = min(least, wait)
        return max(0.0, least)

    def take_outcomes(self) -> list[tuple[int, int, int]]:
        """The outcomes since the last call, each once."""
        taken, self.outcomes, self.awaited = self.outcomes, [], None
        return taken

    def stories(self) -> str:
        """The stories of all that is under way."""
        return "\n".join(thing.story for thing in (*self._pages.values(), *self._others))

    # -- phases ------------------------------------------------------------------------------------------------

    def _move(self, thing: Thing, phase: Phase) -> None:
        """The next step of a thing."""
        before, steps = thing.phase, thing.steps
        more = _UNDER_WAY[type(thing)].get((before, phase))
        if more is None:
            raise ImpossibleTransition(
                f"{self._event}: {'nothing' if before is None else before.name} -> {phase.name}\n{thing.story}"
            )
        thing.phase = phase  # type: ignore[misc]  # it is in the slots of its kind
        steps.append((self._now, self._cause, phase))
        if len(steps) > _STORY:
            del steps[0]
        self._asked += more

    @property
    def _event(self) -> str:
        return "?" if self._cause is None else self._cause.__name__

    def _expect(self, thing: Thing, phase: Phase) -> None:
        """What an event is about must be where the event can come."""
        if thing.phase is not phase:
            raise ImpossibleTransition(f"{self._event} when not {phase.name}\n{thing.story}")

    def _begin(self, thing: Thing, phase: Phase) -> None:
        self._others.add(thing)
        self._move(thing, phase)

    def _end(self, thing: Thing) -> None:
        self._move(thing, Phase.ENDED)
        self._others.discard(thing)

    def _end_visit(self, visit: PageVisit) -> None:
        if visit.requested and visit.state.version < 0:
            self._work[visit.server].server.pending_new -= 1
        self._move(visit, Phase.ENDED)
        del self._pages[visit.page]
        if self._judge is not None:
            self._judge.ended(visit.page)

    def _send(self, thing: Thing, request: Request) -> None:
        self._move(thing, Phase.ASKED)
        self._actions.append(SendRequest(thing, request))
        if self._judge is not None:
            self._check_sent(self._judge, thing, request)

    def _wait_again(self, thing: Thing, *, last: bool = False) -> None:
        """Back to the lane: as the next one, or behind all others."""
        self._move(thing, Phase.WAITING)
        item = thing.page if isinstance(thing, PageVisit) else thing
        (self.lanes.push_last if last else self.lanes.push_front)(thing.server, item)

    # -- choosing ----------------------------------------------------------------------------------------------

    def _run_begun(self, _event: RunBegun) -> None:
        for work in list(self._work.values()):
            self._check_server(work.server)

    def _bytes_limited(self, event: BytesLimited) -> None:
        self._bytes = self._page_bytes = ByteBudget(event.limit, event.site_limit, event.before)

    def server_needed(self, server: Server) -> bool:
        """Whether the machine must be told of this server, by `ServerNeeded`."""
        return server.id not in self._work or not self._work[server.id].prepared

    def _server_needed(self, event: ServerNeeded) -> None:
        """Set the server's pace, and queue its sitemaps and feeds, before its first page in this run."""
        self._prepare(self._work_of(event.server))

    def _work_of(self, server: Server) -> _Work:
        work = self._work.get(server.id)
        if work is None:
            work = self._work[server.id] = _Work(server)
        return work

    def _prepare(self, work: _Work) -> None:
        if work.prepared:
            return
        work.prepared = True
        if self._options.outside:
            return
        self._set_pace(work.server)
        self.lanes.hold(work.server.id, work.server.held_until)
        if not self._robots_due(work.server):
            self._queue_hints(work)

    def _pages_chosen(self, event: PagesChosen) -> None:
        lanes = self.lanes
        for (page, _, _), score in zip(event.rows, event.scores, strict=False):
            self._chosen[page] = (score, event.why)
        if self._judge is not None:
            self._judge.chosen(page for page, _, _ in event.rows)
        for page, server, failing in event.rows[event.awaited :]:
            (lanes.push_last if failing else lanes.push)(server.id, page)
        for page, server, failing in reversed(event.rows[: event.awaited]):
            (lanes.push_last if failing else lanes.push_front)(server.id, page)

    def _outcomes_due(self, event: OutcomesDue) -> None:
        self.awaited = AwaitedPages(event)

    def _pages_found(self, event: PagesFound) -> None:
        if not self.exploring:
            return
        if self._judge is not None:
            self._judge.chosen(page for page, _ in event.rows)
        for page, server in event.rows:
            self.lanes.push(server.id, page)
        for server in {server.id: server for _, server in event.rows}.values():
            self._check_server(server)

    def _hints_wanted(self, event: HintsWanted) -> None:
        work, server = self._work_of(event.server), event.server
        if work.prepared or self._options.outside:
            return
        if self._sitemaps_due(work) or (server.live and self._feeds_due(work, event.feeds)):
            work.before_cycle = event.before_cycle
            self._prepare(work)
            if self._robots_due(server):
                self._queue_robots(server)

    def _robots_wanted(self, event: RobotsWanted) -> None:
        self._work_of(event.server)
        if self._robots_due(event.server):
            self._queue_robots(event.server)

    # -- turns -------------------------------------------------------------------------------------------------

    def _next_turn(self, event: NextTurn) -> None:
        """The turn of one thing may have come: request it, or what must come before it, or nothing if it must not."""
        self.turned = False
        if self._bytes.used_up and len(self.lanes):
            for work in self._work.values():
                self._drop_lane(work.server, outcome=False)
        if event.room <= 0 or event.unparsed >= _MAX_UNPARSED:
            return
        # The requests of a page in the browser cannot wait.
        if self._release is not None and not self.rendering and self._release(self.started) > self._now:
            return
        turn = self.lanes.pop(self._now)
        if turn is None:
            return
        self.turned = True
        number, item = turn
        work = self._work[number]
        if self._accesses is not None and self._login_due(work):
            self.lanes.push_front(number, item)
            self._log_in(work)
        elif isinstance(item, RobotsRead):
            self._ask_robots(work, item)
        elif not self._options.outside and self._robots_due(work.server):
            self.lanes.push_front(number, item)
            robots = RobotsRead(number, f"{work.server.origin}/robots.txt")
            self._others.add(robots)
            self._ask_robots(work, robots)
        elif isinstance(item, int):
            self._page_turn(work.server, item)
        else:
            self._file_turn(work, item)

    def _file_turn(self, work: _Work, item: object) -> None:
        """The turn of what is no page."""
        if isinstance(item, RequisiteRead):
            self._requisite_turn(work.server, item)
        elif isinstance(item, SitemapRead):
            self._sitemap_turn(work, item)
        elif isinstance(item, AbsentRead):
            self._absent_turn(work.server, item)
        else:
            assert isinstance(item, FeedRead)
            self._feed_turn(work.server, item)

    def _page_turn(self, server: Server, page: int) -> None:
        visit = self._pages.get(page)
        if visit is not None:
            self._ask_page(server, visit)
        else:
            self._looking[page] = (server.id, None)
            self._actions.append(ReadRow(page, server.id, self.exploring))

    def _row_read(self, event: RowRead) -> None:
        page, (url, _, depth, listed, state) = event.page, event.row
        number, refusal = self._looking.pop(page)
        score, why = self._chosen.pop(page, (None, None))
        visit = PageVisit(page, url, number, depth, listed, state, score, why, url, event.hints, event.needs)
        self._pages[page] = visit
        visit.phase = Phase.WAITING
        visit.steps.append((self._now, self._cause, Phase.WAITING))
        if refusal is not None:
            self._skip(visit, refusal)
        elif event.endless:
            self.lanes.skip(number, self._now)
            self._actions.append(LeavePage("endless-space"))
            self._end_visit(visit)
        else:
            self._ask_page(self._work[number].server, visit)

    def _ask_page(self, server: Server, visit: PageVisit) -> None:
        """Request the page, unless it may not be requested."""
        first = visit.state.version < 0
        if not self._options.outside:
            refusal = server.refuses(visit.request_url, new=first and self.exploring)
            if refusal is not None:
                self.lanes.skip(server.id, self._now)
                self._skip(visit, refusal)
                return
        self.started += 1
        server.pending_new += first and not visit.requested
        visit.requested = True
        visit.validators = sent_validators(server, visit, self._fingerprints[server.noise])
        visit.session = self._work[server.id].logins
        private = server.options.private
        request = Request(
            visit.request_url, visit.validators, private, identity=visit.identity, accepts=self._accepts_page
        )
        self._send(visit, request)

    def _accepts_page(self, content_type: str) -> bool:
        known = self._types.get(content_type)
        if known is None:
            if len(self._types) >= 256:
                self._types.clear()
            known = self._types[content_type] = self._options.accepts(content_type)
        return known

    def _skip(self, visit: PageVisit, failure: Failure) -> None:
        """Do not request a page. A crawl may leave it for the next one; a policy needs an outcome."""
        if self.exploring and failure in (Failure.HELD_OFF, Failure.LIMIT):
            self._actions.append(LeavePage(failure.value))
            self._end_visit(visit)
        else:
            self._finish(visit, VisitFailed(failure, self._work[visit.server].server.cause))

    # -- answers of pages --------------------------------------------------------------------------------------

    def _answer_came(self, event: AnswerCame) -> None:
        """A request has ended: decide what its answer means."""
        thing, answer = event.thing, event.answer
        if thing.phase is not Phase.ASKED:
            self._expect(thing, Phase.ASKED)
        if self._judge is not None:
            self._judge.last[thing.server] = self._now
        work = self._work[thing.server]
        if isinstance(thing, PageVisit):
            self.lanes.answered(thing.server, self._now, answer, thing.page)
            self._bytes.add(thing.server, answer.received)
            thing.received += answer.received
            thing.hides = event.hides
            if answer.status in ARCHIVED:
                self._actions.append(ArchiveAnswer(answer, thing.request_url, thing.validators))
            self._page_answered(work, thing, answer)
        elif isinstance(thing, RobotsRead):
            self._robots_answered(work, thing, answer)
        else:
            self.lanes.answered(thing.server, self._now, answer, thing)
            assert isinstance(thing, RequisiteRead | SitemapRead | FeedRead | AbsentRead)
            if isinstance(thing, RequisiteRead):
                self._bytes.add(thing.server, answer.received)
            if answer.failure is Failure.BAD_ENCODING and not thing.identity:
                thing.identity = True
                self._wait_again(thing)
            elif isinstance(thing, RequisiteRead):
                self._requisite_answered(thing, answer)
            elif isinstance(thing, SitemapRead):
                self._sitemap_answered(work, thing, answer)
            elif isinstance(thing, AbsentRead):
                self._absent_answered(thing, answer)
            else:
                self._move(thing, Phase.PARSING)
                self._actions.append(ReadFeed(thing, answer))
        self._check_server(work.server)

    def _page_answered(self, work: _Work, visit: PageVisit, answer: Answer) -> None:
        server, status = work.server, answer.status
        if work.needs_login and answer.failure is None and self._shows_login(work, visit, answer):
            if self._renews(work, visit):
                visit.answer = answer
                self._wait_again(visit)
                return
            if status < 400:  # else, with a session too, this page is not for us
                self._finish(visit, VisitFailed(Failure.LOGIN, "redirected to the login page", answer))
                return
        if answer.failure is Failure.BAD_ENCODING and not visit.identity:
            visit.answer, visit.identity = answer, True
            self._wait_again(visit)
        elif answer.failure is not None:
            self._finish(visit, VisitFailed(answer.failure, answer.detail, answer))
        elif status in (429, 503) and visit.retries < self._options.retries:
            visit.answer, visit.retries = answer, visit.retries + 1
            self._wait_again(visit, last=True)
        elif status == 304 and visit.validators and visit.hides:
            # Without validators: its version is recorded anew, not searchable.
            visit.answer, visit.retries = answer, visit.retries + 1
            self._wait_again(visit, last=True)
        elif status == 304 and (visit.validators or (self._options.outside and visit.state.payload)):
            self._page_same(server, visit, answer)
        elif status == 200:
            self._page_body(server, visit, answer)
        elif status in REDIRECTS:
            self._page_redirected(server, visit, answer)
        elif status in (404, 410) and not visit.redirects:
            self._finish(visit, PageMissing(answer))
        else:
            self._finish(visit, VisitFailed(failure_of(status), refusal_of(answer), answer))

    def _page_same(self, server: Server, visit: PageVisit, answer: Answer) -> None:
        """304, or the same bytes."""
        learn_trust(server, visit, answer, text_changed=False)
        if visit.state.digest and self._is_absent(visit, visit.state.digest):
            self._finish(visit, PageMissing(answer, detail=_SHOWS_ABSENT))
            return
        if visit.state.digest:
            self._is_shared(visit, visit.state.digest, "")
            version = visit.state.version
            if server.requisites and version >= 0 and (visit.needs is None or visit.needs[0] < server.requisites):
                url = visit.state.archived_url or visit.url
                scan = StoredScan(server.id, visit.page, server.requisites, url, version)
                self._begin(scan, Phase.PARSING)
                self._actions.append(ParseThing(scan))
        self._finish(visit, PageSame(answer))

    def _page_body(self, server: Server, visit: PageVisit, answer: Answer) -> None:
        payload = of_payload(answer.body)
        visit.same_noise = visit.state.noise == self._fingerprints[server.noise]
        if visit.state.payload == payload and visit.same_noise and not visit.hides and not server.reloads:
            self._page_same(server, visit, answer)
            return
        visit.answer, visit.payload = answer, payload
        if server.browses and _is_html(answer):
            self._move(visit, Phase.RENDERING)
            self._to_render.setdefault(visit.server, deque()).append(visit)
            self._render_next()
        else:
            self._parse(visit)

    def _page_redirected(self, server: Server, visit: PageVisit, answer: Answer) -> None:
        """A temporary redirect is followed, within limits, and its target counts as the page.

        A permanent one makes the page an old URL of another page, which is visited separately. So does a temporary one
        to another site that is kept, except for a page that is stored: it stays, and its target becomes a page too. A
        redirect to a site that is not kept is recorded and not followed, with one exception: when a seed has moved
        permanently, its site has moved with it (spec K5).
        """
        location, scopes, outside = answer.header("location"), self._options.scopes, self._options.outside
        target = canonical(location, visit.request_url, self._options.rules) if location else None
        failure, detail, visit.answer = None, f"to {target}", answer
        if target is None:
            failure, detail = Failure.REDIRECT_BAD, f"to '{location[:200]}'"
        elif target == visit.request_url or target in visit.redirects:
            failure, detail = Failure.REDIRECT_LOOP, f"back to {target}"
        if failure is not None or target is None:
            self._finish(visit, VisitFailed(failure or Failure.REDIRECT_BAD, detail, answer))
            return
        if not visit.redirects and self.absent.leads(server.id, visit.url, target):
            detail = f"it redirects to {target}, as addresses do that cannot exist"
            self._finish(visit, PageMissing(answer, detail=detail))
            return
        permanent = answer.status in PERMANENT and not visit.redirects
        if permanent and not scopes.knows(origin(target)) and scopes.is_seed(visit.url):
            scopes.adopt(visit.url, origin(target))
            self._actions.append(KeepAliases())
        if not outside and scopes.refuses(target, visit.depth) is not None:
            self._finish(visit, VisitFailed(Failure.REDIRECT_AWAY, detail, answer))
        elif permanent or (origin(target) != server.origin and len(visit.redirects) < self._options.redirects):
            self._move(visit, Phase.REDIRECTED)
            self._actions.append(FindTarget(visit, target, permanent, answer.at))
        elif len(visit.redirects) >= self._options.redirects:
            detail = f"more than {self._options.redirects} in a row"
            self._finish(visit, VisitFailed(Failure.REDIRECT_LIMIT, detail, answer))
        elif not outside and server.robots is not None and not server.robots.allows(target):
            self._finish(visit, VisitFailed(Failure.ROBOTS, f"redirected to {target}", answer))
        else:
            visit.redirects.append(visit.request_url)
            visit.request_url = target
            self._wait_again(visit)

    def _target_known(self, event: TargetKnown) -> None:
        visit, answer = event.visit, event.visit.answer
        self._expect(visit, Phase.REDIRECTED)
        assert answer is not None
        refreshes = visit.refreshes
        permanent = refreshes is not None or (answer.status in PERMANENT and not visit.redirects)
        if event.failure is not None:
            self._finish(visit, VisitFailed(event.failure, event.detail, answer))
        elif not permanent and visit.state.payload is not None:
            self._finish(visit, VisitFailed(Failure.REDIRECT_AWAY, event.detail, answer))
        elif refreshes is not None:
            detail = f"it refreshes to {refreshes.moved}"
            self._finish(visit, PageMissing(answer, event.target, detail, refreshes.record))
        else:
            self._finish(visit, PageMissing(answer, event.target))

    # -- the browser and the readers -----------------------------------------------------------------------------

    def _render_next(self) -> None:
        """Let the browser load the next page; those before it that need not be loaded any more are parsed at once.

        Servers take turns: one with many pages, or slow ones, delays others by a page each.
        """
        while self._to_render and self._rendering is None:
            number = next(iter(self._to_render))
            waiting = self._to_render.pop(number)
            visit, server = waiting.popleft(), self._work[number].server
            if waiting:
                self._to_render[number] = waiting
            if server.browses:
                self._rendering = visit
                self._actions.append(RenderPage(visit, server.screenshots != "never"))
            else:
                self._parse(visit)

    def _page_rendered(self, event: PageRendered) -> None:
        visit, shown = event.visit, event.shown
        self._expect(visit, Phase.RENDERING)
        self._rendering = None
        self._demands.clear()
        if shown is not None:
            visit.browsed = shown._replace(html="")
            visit.html = shown.html if self._work[visit.server].server.renders else ""
        self._parse(visit)
        self._render_next()

    def _parse(self, thing: PageVisit | RequisiteRead | AbsentRead) -> None:
        self._move(thing, Phase.PARSING)
        self._actions.append(ParseThing(thing))

    def _thing_parsed(self, event: ThingParsed) -> None:
        thing, reading = event.thing, event.reading
        self._expect(thing, Phase.PARSING)
        if isinstance(thing, PageVisit):
            assert reading is not None
            self._page_parsed(thing, reading, event.linked)
        elif isinstance(thing, RequisiteRead):
            self._move(thing, Phase.RECORDING)
            self._actions.append(RecordRequisite(thing, thing.answer, reading=reading))
        elif isinstance(thing, AbsentRead):
            shown = reading is not None and not reading.failure
            digest, shape = (reading.digest, reading.shape) if reading is not None and shown else (b"", b"")
            self._absent_known(thing, AbsentAnswer(self._at, digest, shape))
        else:
            assert isinstance(thing, StoredScan)
            if reading is not None:
                self._actions.append(RecordScan(thing.page, thing.level, reading))
            self._end(thing)

    def _page_parsed(self, visit: PageVisit, reading: Reading, linked: Ints | None) -> None:
        server, answer = self._work[visit.server].server, visit.answer
        assert answer is not None
        if reading.failure:
            self._finish(visit, VisitFailed(Failure(reading.failure), reading.detail, answer))
            return
        # Pages that send browsers on have little text or none: they are alike if they send them to one place.
        if self._is_shared(visit, of_text(reading.moved) if reading.moved else reading.digest, reading.title):
            detail = f"'{reading.title}', as on other pages of the site"
            self._finish(visit, VisitFailed(Failure.SHARED_TEXT, detail, answer))
            return
        if reading.moved:
            self._page_refreshes(visit, answer, reading)
            return
        if reading.missing and visit.url != f"{server.origin}/":
            detail = f"HTTP {answer.status}, but its text is that of a missing page: '{reading.title}'"
            self._finish(visit, PageMissing(answer, detail=detail, record=reading.record))
            return
        if self._is_absent(visit, reading.digest, reading.shape):
            self._finish(visit, PageMissing(answer, detail=_SHOWS_ABSENT, record=reading.record))
            return
        if reading.render_differs is not None:
            server.rendered += 1
            server.render_differed += reading.render_differs
        if self._repeats(server, visit, reading):
            learn_trust(server, visit, answer, text_changed=False)
            self._finish(visit, PageSame(answer, parsed=True))
            return
        learn_from_page(server, visit, reading)
        assert linked is not None
        self._finish(visit, PageRead(reading, linked))

    def _is_absent(self, visit: PageVisit, digest: bytes, shape: bytes = b"") -> bool:
        """Whether a page shows what its server shows for addresses that cannot exist; a home page always exists."""
        server = self._work[visit.server].server
        return self.absent.shows(server.id, digest, shape) and visit.url != f"{server.origin}/"

    def _page_refreshes(self, visit: PageVisit, answer: Answer, reading: Reading) -> None:
        """A page that sends browsers on at once: the target replaces it, as after a permanent redirect."""
        target = reading.moved
        if target == visit.request_url or target in visit.redirects:
            self._finish(visit, VisitFailed(Failure.REDIRECT_LOOP, f"back to {target}", answer))
        elif not self._options.outside and self._options.scopes.refuses(target, visit.depth) is not None:
            self._finish(visit, VisitFailed(Failure.REDIRECT_AWAY, f"to {target}", answer))
        else:
            visit.refreshes = reading
            self._move(visit, Phase.REDIRECTED)
            self._actions.append(FindTarget(visit, target, True, answer.at))

    def _repeats(self, server: Server, visit: PageVisit, reading: Reading) -> bool:
        """Whether a parsed page is as it was: a browser loads pages although their bytes are the same.

        Where that has failed, the same bytes count as the same page: its text before scripts says nothing of a change.
        """
        same = visit.state.payload == visit.payload and visit.same_noise
        failed = server.renders and visit.browsed is not None and reading.render_differs is None
        return same and not visit.hides and (failed or not (reading.changed or reading.out_links))

    def _is_shared(self, visit: PageVisit, digest: bytes, title: str) -> bool:
        """Whether this text is suddenly that of many pages; those recorded with it get back what search showed."""
        texts = self.shared_texts
        pages = texts.refuses(visit.server, visit.page, digest, visit.state.digest, self._at, title)
        if texts.toggled:
            texts.toggled = False
            self._actions.append(KeepBrakes())
        if not pages and not texts.freed:
            return False
        if former := [page for page in pages if page != visit.page] + texts.take_freed():
            self._actions.append(ReindexPages(former))
        return bool(pages)

    # -- recording -----------------------------------------------------------------------------------------------

    def _finish(self, visit: PageVisit, finding: Finding) -> None:
        """The visit is over: record what it came to."""
        self._move(visit, Phase.RECORDING)
        self._actions.append(RecordVisit(visit, finding))

    def _visit_recorded(self, event: VisitRecorded) -> None:
        visit = event.visit
        if visit.phase is not Phase.RECORDING:
            self._expect(visit, Phase.RECORDING)
        if event.after is not None:
            count_state(self._work[visit.server].server, visit.state.state, event.after)
        self._end_visit(visit)
        if not self.exploring:
            self.outcomes.append((visit.page, event.outcome, event.received))

    def _batch_grew(self, event: BatchGrew) -> None:
        batch, index = self.commits.due(self._now, event.results, anything=event.anything)
        if batch:
            self._actions.append(CommitBatch())
        if index:
            self._actions.append(CommitIndex())

    def _batch_committed(self, _event: BatchCommitted) -> None:
        self.commits.committed()

    # -- servers that get no more requests ---------------------------------------------------------------------

    def _check_server(self, server: Server) -> None:
        """Empty the lane of a server that cannot be reached, asks for a long pause, or has used up its bytes."""
        lanes, patience = self.lanes, self._options.patience
        backed_off = lanes.backed_off(server.id)
        if backed_off > max(self._now + patience, server.held_until):
            server.held_until, server.dirty = backed_off, True
        if lanes.silent(server.id) >= _MAX_UNREACHED or server.held_until > self._now + patience:
            for item in lanes.abandon(server.id):
                if isinstance(item, Thing):
                    self._drop(item)
                else:
                    assert isinstance(item, int)
                    self._leave(server, item)
        elif self._bytes.closed(server.id):
            self._drop_lane(server, outcome=True)

    def _leave(self, server: Server, page: int) -> None:
        """A page of a server that gets no more requests. If it was refused before, this counts as its failure: so the
        next run requests the others first."""
        visit = self._pages.get(page)
        if visit is None and self.exploring:
            self._actions.append(LeavePage(Failure.HELD_OFF.value))
            if self._judge is not None:
                self._judge.ended(page)
        elif visit is None:
            self._looking[page] = (server.id, Failure.HELD_OFF)
            self._actions.append(ReadRow(page, server.id, explores=False))
        elif visit.retries:
            assert visit.answer is not None
            status = visit.answer.status
            self._finish(visit, VisitFailed(failure_of(status), refusal_of(visit.answer), visit.answer))
        else:
            self._skip(visit, Failure.HELD_OFF)

    def _drop_lane(self, server: Server, *, outcome: bool) -> None:
        """Empty a server's lane, unrecorded. Without an outcome for its pages, the policy's cycle ends."""
        for item in self.lanes.abandon(server.id):
            if isinstance(item, Thing):
                self._drop(item)
                continue
            assert isinstance(item, int)
            self._chosen.pop(item, None)
            visit = self._pages.get(item)
            if visit is not None:
                self._end_visit(visit)
            elif self._judge is not None:
                self._judge.ended(item)
            if outcome:
                self.outcomes.append((item, int(Unvisited.HELD), 0))

    def _drop(self, thing: Thing) -> None:
        """What is no page and will not be requested in this run."""
        self._end(thing)
        if isinstance(thing, RequisiteRead):
            del self._requisites[thing.row.id]
            self._answer_demands(thing.row, None)

    # -- robots.txt ----------------------------------------------------------------------------------------------

    def _robots_due(self, server: Server) -> bool:
        """Whether robots.txt must be read before any other request to the server."""
        if server.refusal:
            return False
        return server.robots is None or server.robots.expired(self._at)

    def _queue_robots(self, server: Server) -> None:
        """For a server whose pages are not queued."""
        thing = RobotsRead(server.id, f"{server.origin}/robots.txt")
        self._begin(thing, Phase.WAITING)
        self.lanes.push(server.id, thing)

    def _ask_robots(self, work: _Work, thing: RobotsRead) -> None:
        """Request robots.txt, in the turn of something else; the lane is on hold meanwhile."""
        self._pause(work, thing)
        self._send(thing, self._file_request(work.server, thing, _ROBOTS_BYTES))

    def _robots_answered(self, work: _Work, thing: RobotsRead, answer: Answer) -> None:
        server = work.server
        if answer.failure is Failure.BAD_ENCODING and not thing.identity:
            thing.identity = True
            self._send(thing, self._file_request(server, thing, _ROBOTS_BYTES))
            return
        self._actions.append(ArchiveAnswer(answer, thing.url, truncated=len(answer.body) >= _ROBOTS_BYTES))
        if answer.status in REDIRECTS and thing.redirects < _MAX_HOPS:
            target = canonical(answer.header("location"), thing.url)
            if target is not None and self._options.owns(target):
                thing.url, thing.redirects = target, thing.redirects + 1
                self._send(thing, self._file_request(server, thing, _ROBOTS_BYTES))
                return
        self._end(thing)
        self._resume(work, answer.seconds)
        if answer.failure is Failure.ADDRESS:
            server.refusal = answer.detail  # our own settings: says nothing about the server's robots.txt
            return
        if answer.failure is Failure.TLS:
            self._actions.append(WarnUser(f"{origin(thing.url)}: {answer.detail}"))
        before = server.robots
        server.robots = Robots.from_answer(
            # A redirect without a usable target counts as a robots.txt that does not exist (RFC 9309 §2.3.1.2).
            404 if 300 <= answer.status < 400 else answer.status,
            answer.body if answer.failure is None else failure_text(answer.failure, answer.detail, thing.redirects),
            self._at,
            agent=self._options.agent_of(server.origin),
            max_age=self._options.robots_age,
            failure=answer.failure is not None,
            held_since=before.held_since if before else 0.0,
        )
        server.dirty = True
        self._set_pace(server)
        self._queue_hints(work)

    def _pause(self, work: _Work, thing: RobotsRead | SiteLogin) -> None:
        """The lane is on hold until it has ended."""
        if self._judge is not None:
            self._hold(thing.server not in self._judge.held, "a server on hold is asked", thing)
        self.lanes.hold(thing.server, math.inf)
        work.pausing = thing
        if self._judge is not None:
            self._judge.held.add(thing.server)

    def _resume(self, work: _Work, seconds: float) -> None:
        """What a lane was on hold for has ended."""
        work.pausing = None
        if self._judge is not None:
            self._judge.held.discard(work.server.id)
            self._judge.last[work.server.id] = self._now
        self.lanes.done(work.server.id, self._now, status=200, seconds=seconds)
        self.lanes.hold(work.server.id, work.server.held_until)

    def _set_pace(self, server: Server) -> None:
        ours = self._options.delay if server.options.delay is None else server.options.delay
        theirs = server.robots.delay if server.robots else 0.0
        self.lanes.set_delay(server.id, theirs, ours=ours)
        if self._judge is not None:
            self._judge.paced[server.id] = True

    def _file_request(
        self,
        server: Server,
        thing: RobotsRead | SitemapRead | FeedRead,
        most: int,
        validators: Validators | None = None,
    ) -> Request:
        """A permission for one server does not extend to where it redirects."""
        own = origin(thing.url) == server.origin
        private = server.options.private if own else self._options.private
        cut = isinstance(thing, RobotsRead)
        return Request(
            thing.url, validators=validators, private=private, max_bytes=most, cut=cut, identity=thing.identity
        )

    # -- sitemaps and feeds ----------------------------------------------------------------------------------------

    def _queue_hints(self, work: _Work) -> None:
        server = work.server
        if server.robots is None or server.robots.hold_off:
            return
        if self._sitemaps_due(work):
            work.sitemaps = _Sitemaps(_MAX_BEFORE_CYCLE if work.before_cycle else _MAX_SITEMAPS)
            named = server.robots.sitemaps
            for url in named or (f"{server.origin}/sitemap.xml",):
                self._queue_sitemap(work, work.sitemaps, url, 0, named=bool(named))
        if self._options.feed_age > 0:
            self._actions.append(ListFeeds(server))
        for template in self.absent.take(server.id):
            thing = AbsentRead(server.id, template, absent_address(template, self._at))
            self._begin(thing, Phase.WAITING)
            self.lanes.push_front(server.id, thing)

    def _sitemaps_due(self, work: _Work) -> bool:
        server = work.server
        if work.sitemaps is not None or not self._options.sitemaps:
            return False
        # A pause that the server asked for, a day at most, is stored as a time of reading in the future.
        age = elapsed(server.sitemap_at, self._at, ahead=MAX_RETRY_AFTER)
        return age >= self._options.sitemap_age and self._options.scopes.wants_sitemaps(server.origin)

    def _queue_sitemap(self, work: _Work, sitemaps: _Sitemaps, url: str, level: int, *, named: bool = False) -> None:
        server = work.server
        clean = canonical(url, server.origin + "/")
        if clean is None or clean in sitemaps.requested:
            return
        foreign = origin(clean) != server.origin  # another server has its own robots.txt, pace and sitemaps
        if foreign or len(sitemaps.requested) >= sitemaps.most or level > _MAX_NESTING:
            sitemaps.complete = False
            return
        sitemaps.requested.add(clean)
        sitemaps.left += 1
        thing = SitemapRead(server.id, clean, level, named)
        self._begin(thing, Phase.WAITING)
        self.lanes.push_front(server.id, thing)

    def _sitemap_turn(self, work: _Work, thing: SitemapRead) -> None:
        assert work.sitemaps is not None
        work.sitemaps.stopped |= work.server.closed  # robots.txt cannot be read any more, or a login has failed
        forbidden = not thing.named and not _allows(work.server, thing.url)
        work.sitemaps.complete &= not forbidden
        if work.sitemaps.stopped or forbidden:
            self.lanes.skip(thing.server, self._now)
            self._sitemap_ended(work, thing)
        else:
            self._send(thing, self._file_request(work.server, thing, _SITEMAP_BYTES))

    def _sitemap_answered(self, work: _Work, thing: SitemapRead, answer: Answer) -> None:
        sitemaps, server = work.sitemaps, work.server
        assert sitemaps is not None
        if answer.status in REDIRECTS:
            target = canonical(answer.header("location"), thing.url)
            if target is not None and thing.redirects < _MAX_HOPS and origin(target) == server.origin:
                thing.url, thing.redirects, thing.identity, thing.named = target, thing.redirects + 1, False, False
                self._wait_again(thing)
                return
        if answer.failure in SILENT or answer.status in (429, 503):
            pause = parse_retry_after(answer.header("retry-after"), self._now) or 0.0
            sitemaps.stopped, server.sitemap_at, server.dirty = True, self._at + pause, True
        if answer.status == 200 and answer.failure is None:
            self._move(thing, Phase.PARSING)
            self._actions.append(ReadSitemap(thing, answer))
        else:
            sitemaps.complete = False
            self._sitemap_ended(work, thing)

    def _file_read(self, event: FileRead) -> None:
        thing = event.thing
        self._expect(thing, Phase.PARSING)
        if isinstance(thing, FeedRead):
            self._end(thing)
            return
        work = self._work[thing.server]
        assert work.sitemaps is not None
        work.sitemaps.complete &= not event.broken
        for url in event.children:
            self._queue_sitemap(work, work.sitemaps, url, thing.level + 1)
        self._sitemap_ended(work, thing)

    def _sitemap_ended(self, work: _Work, thing: SitemapRead) -> None:
        """After the last one: record the pages that they list and, if all could be read, those no longer listed."""
        sitemaps, server = work.sitemaps, work.server
        assert sitemaps is not None
        self._end(thing)
        sitemaps.left -= 1
        if sitemaps.left:
            return
        if not sitemaps.stopped:
            server.sitemap_at, server.dirty = self._at, True
        self._actions.append(RecordListing(server, sitemaps.complete))

    def _feeds_due(self, work: _Work, feeds: Iterable[FeedRow]) -> list[FeedRow]:
        """Those to be read now, each at most once in a run."""
        age = self._options.feed_age
        if age <= 0:
            return []
        return [feed for feed in feeds if feed.url not in work.feeds and elapsed(feed.seen, self._at) >= age]

    def _feed_turn(self, server: Server, thing: FeedRead) -> None:
        if server.closed or not _allows(server, thing.url):
            self.lanes.skip(server.id, self._now)
            self._end(thing)
        else:
            self._send(thing, self._file_request(server, thing, FEED_BYTES, thing.validators))

    def _feeds_known(self, event: FeedsKnown) -> None:
        work = self._work[event.server]
        for feed in self._feeds_due(work, event.rows):
            work.feeds.add(feed.url)
            thing = FeedRead(event.server, feed.url, Validators(feed.etag, feed.modified) or None)
            self._begin(thing, Phase.WAITING)
            self.lanes.push_front(event.server, thing)

    # -- addresses that cannot exist -------------------------------------------------------------------------------

    def _absent_turn(self, server: Server, thing: AbsentRead) -> None:
        if server.closed or not _allows(server, thing.url):
            self.lanes.skip(server.id, self._now)
            self._end(thing)
        else:
            private, accepts = server.options.private, self._accepts_page
            self._send(thing, Request(thing.url, private=private, identity=thing.identity, accepts=accepts))

    def _absent_answered(self, thing: AbsentRead, answer: Answer) -> None:
        if answer.failure is None and answer.status == 200:
            thing.answer = answer
            self._parse(thing)
        elif answer.failure is None and answer.status in REDIRECTS:
            target = canonical(answer.header("location"), thing.url, self._options.rules)
            self._absent_known(thing, AbsentAnswer(self._at, target=target or ""))
        elif answer.status in (404, 410):
            self._absent_known(thing, AbsentAnswer(self._at))
        else:
            self._end(thing)

    def _absent_known(self, thing: AbsentRead, answer: AbsentAnswer) -> None:
        self._end(thing)
        self.absent.answered(thing.server, thing.template, answer)
        self._actions.append(KeepAbsent())

    # -- logins ----------------------------------------------------------------------------------------------------

    def _login_due(self, work: _Work) -> bool:
        """Whether the server gets no request before a login."""
        if work.needs_login is None:
            assert self._accesses is not None
            profile = self._accesses.of(work.server.origin + "/")
            work.needs_login = profile is not None and bool(profile.rule.login_url)
            has_session = profile is not None and profile.jar is not None and bool(profile.jar.lines())
            work.login_due = work.needs_login and not has_session
        return work.login_due

    def _log_in(self, work: _Work) -> None:
        """Log in, in the turn of something else; the lane is on hold meanwhile."""
        server = work.server
        work.login_due, work.logins = False, work.logins + 1
        thing = SiteLogin(server.id, server.origin)
        self._pause(work, thing)
        self._begin(thing, Phase.ASKED)
        self._actions.append(MakeLogin(thing, server.options.private))

    def _login_ended(self, event: LoginEnded) -> None:
        thing, work = event.thing, self._work[event.thing.server]
        self._expect(thing, Phase.ASKED)
        self._end(thing)
        if event.problem:
            work.server.refusal, work.server.refused_as = event.problem, Failure.LOGIN
            self._actions.append(WarnUser(f"{work.server.origin}: login failed: {event.problem}"))
        self._resume(work, 0.0)

    def _shows_login(self, work: _Work, visit: PageVisit, answer: Answer) -> bool:
        if answer.status in (401, 403):
            return True
        assert self._accesses is not None
        profile = self._accesses.of(work.server.origin + "/")
        assert profile is not None
        target = urljoin(visit.request_url, answer.header("location")).partition("?")[0].partition("#")[0]
        return 300 <= answer.status < 400 and target == profile.rule.login_url.partition("?")[0].partition("#")[0]

    def _renews(self, work: _Work, visit: PageVisit) -> bool:
        """Whether the page is requested again: after another login, or after one made since it was requested."""
        if visit.session < work.logins:
            return True
        if work.logins >= _MAX_LOGINS or visit.logins:
            return False
        visit.logins += 1
        work.login_due = True
        return True

    # -- requisites ------------------------------------------------------------------------------------------------

    def _requisites_begin(self, event: RequisitesBegin) -> None:
        """The pace of a spread cycle is one of pages: it does not apply to requisites."""
        self._bytes, self._release = ByteBudget(event.limit), None
        self._queue_requisites(event.rows)

    def _requisites_end(self, _event: RequisitesEnd) -> None:
        self._bytes, self._release = self._page_bytes, self._kept_release

    @property
    def requisites_left(self) -> int:
        """Requests for requisites that this run may still make."""
        return self._requisites_left

    def _queue_requisites(self, rows: Iterable[tuple[RequisiteRow, Server]]) -> None:
        for row, server in rows:
            if row.id not in self._queued:
                self._queue_requisite(row, server, self.lanes.push)

    def _queue_requisite(self, row: RequisiteRow, server: Server, push: Callable[[int, object], None]) -> RequisiteRead:
        self._queued.add(row.id)
        thing = self._requisites[row.id] = RequisiteRead(server.id, row)
        self._begin(thing, Phase.WAITING)
        push(server.id, thing)
        return thing

    def _requisite_turn(self, server: Server, thing: RequisiteRead) -> None:
        """Request it, unless it may not be requested or the budget is spent."""
        refusal = server.refuses(thing.row.url, new=False)
        if refusal is not None:
            self.lanes.skip(server.id, self._now)
            self._fail_requisite(thing, refusal.value, None)
        elif self._bytes.closed(server.id) or (self._requisites_left <= 0 and not thing.demanded):
            self.lanes.skip(server.id, self._now)
            self._drop(thing)
        else:
            self._requisites_left -= not thing.demanded
            validators, private = validators_of(thing.row), server.options.private
            accepts = _accepts_requisite
            self._send(thing, Request(thing.row.url, validators, private, identity=thing.identity, accepts=accepts))

    def _requisite_answered(self, thing: RequisiteRead, answer: Answer) -> None:
        url, validators, thing.answer = thing.row.url, validators_of(thing.row), answer
        if answer.failure is not None:
            self._fail_requisite(thing, answer.failure.value, answer)
        elif answer.status == 304 and thing.row.version >= 0:
            self._move(thing, Phase.RECORDING)
            self._actions.append(RecordRequisite(thing, answer, same=True))
        elif answer.status == 200:
            error = answer.header("content-type").strip().lower().startswith(_ERROR_PAGES)
            if error and not thing.demanded:
                self._fail_requisite(thing, Failure.CONTENT_TYPE.value, answer)
            else:
                thing.payload = of_payload(answer.body)
                self._move(thing, Phase.COMPARED)
                self._actions.append(CompareRequisite(thing))
        else:
            if answer.status in ARCHIVED:
                self._actions.append(ArchiveAnswer(answer, url, validators, identity=thing.identity))
            if answer.status in REDIRECTS:
                self._move(thing, Phase.RECORDING)
                self._actions.append(RecordRequisite(thing, answer))
            else:
                self._fail_requisite(thing, f"HTTP {answer.status}", answer)

    def _fail_requisite(self, thing: RequisiteRead, failure: str, answer: Answer | None) -> None:
        self._move(thing, Phase.RECORDING)
        self._actions.append(RecordRequisite(thing, answer, failure))

    def _requisite_known(self, event: RequisiteKnown) -> None:
        thing = event.thing
        self._expect(thing, Phase.COMPARED)
        if thing.row.style and not event.same:
            self._parse(thing)
        else:
            self._move(thing, Phase.RECORDING)
            self._actions.append(RecordRequisite(thing, thing.answer, same=event.same))

    def _requisite_recorded(self, event: RequisiteRecorded) -> None:
        thing, row = event.thing, event.row
        self._expect(thing, Phase.RECORDING)
        answer = None if row.failures else thing.answer
        del self._requisites[row.id]
        self._end(thing)
        self._answer_demands(row, answer)
        self._queue_requisites(event.found)

    # -- requests of the page in the browser -------------------------------------------------------------------------

    def _browser_wants(self, event: BrowserWants) -> None:
        """A requisite of the page in the browser: from the archive, or by a request as for any requisite."""
        request, row = event.request, event.row
        age = elapsed(row.checked, self._at) if row.checked is not None else math.inf
        elsewhere = not self._options.owns(row.url)  # another shard of a cluster requests it, later
        if elsewhere or (row.checked is not None and row.failures and age < DAY):
            self._actions.append(AnswerBrowser(request))
        elif age < self._options.requisite_age and row.target >= 0 and event.hops < _MAX_DEMAND_HOPS:
            self._actions.append(FollowWanted(request, row.target, event.hops + 1))
        elif age < self._options.requisite_age and row.version >= 0:
            self._actions.append(AnswerFromArchive(request, row.version))
        else:
            self._demands.setdefault(row.id, []).append(request)
            thing = self._requisites.get(row.id)
            if thing is None:
                thing = self._queue_requisite(row, event.server, self.lanes.push_front)
            thing.demanded = True

    def _answer_demands(self, row: RequisiteRow, answer: Answer | None) -> None:
        for request in self._demands.pop(row.id, ()):
            if answer is None:
                self._actions.append(AnswerBrowser(request))
            elif row.target >= 0:
                self._actions.append(FollowWanted(request, row.target, 1))
            elif answer.status == 304:
                self._actions.append(AnswerFromArchive(request, row.version))
            else:
                self._actions.append(AnswerBrowser(request, answer))

    # -- invariants ------------------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise `BrokenInvariant` if anything does not hold that always must."""
        things = [*self._pages.values(), *self._others]
        asked: Counter[int] = Counter()
        first: Counter[int] = Counter()
        paused: Counter[int] = Counter()
        for thing in things:
            self._hold(thing.phase not in (None, Phase.ENDED), "what has ended is kept", thing)
            asked[thing.server] += thing.phase is Phase.ASKED
            paused[thing.server] += thing.phase is Phase.ASKED and isinstance(thing, RobotsRead | SiteLogin)
            if isinstance(thing, PageVisit):
                first[thing.server] += thing.requested and thing.state.version < 0
                self._hold(thing.retries <= self._options.retries + 1, "too many retries", thing)
                self._hold(len(thing.redirects) <= self._options.redirects, "too many redirects", thing)
                self._hold(thing.logins <= 1, "too many logins", thing)
            elif isinstance(thing, RobotsRead | SitemapRead):
                self._hold(thing.redirects <= _MAX_HOPS, "too many redirects", thing)
        under_way = sum(thing.phase not in _STILL for thing in things)
        self._hold(self._asked == under_way, f"{under_way} things are under way, not {self._asked}")
        room = 1 if not self._options.outside else self._options.per_server
        for number, work in self._work.items():
            flying = self.lanes.in_flight_of(number)
            looked = sum(server == number and cause is None for server, cause in self._looking.values())
            self._hold(flying == asked[number] + looked, f"{flying} requests of {number}, not {asked[number]}")
            self._hold(flying <= max(room, self._options.per_server), f"{flying} requests to one server")
            self._hold(paused[number] <= 1, "robots.txt or a login is asked for twice")
            self._hold(work.logins <= _MAX_LOGINS + 1, f"{work.logins} logins of a site")
            self._hold(work.server.pending_new == first[number], f"{work.server.pending_new} first visits")
            held = self.lanes.held(number) == math.inf
            pausing = work.pausing is not None and work.pausing.phase is Phase.ASKED
            self._hold(held == pausing, "a lane waits for nothing", work.pausing)
        if len(self.lanes) < _CHECKED_LANES:
            waiting = Counter(item for number in self._work for item in self.lanes.upcoming(number, _CHECKED_LANES))
            for thing in things:
                item = thing.page if isinstance(thing, PageVisit) else thing
                times = waiting[item]
                self._hold(times == (thing.phase is Phase.WAITING), f"it is {times} times in its lane", thing)
            self._hold(max(waiting.values(), default=1) == 1, "a page waits twice")
            if self._judge is not None:
                pages = {item for item in waiting if isinstance(item, int)} | self._looking.keys() | self._pages.keys()
                lost = self._judge.open - pages
                self._hold(not lost, f"pages without an end: {sorted(lost)[:5]}")

    def _hold(self, holds: bool, what: str, thing: Thing | None = None) -> None:
        if not holds:
            raise BrokenInvariant(f"{self._event}: {what}\n{self.stories() if thing is None else thing.story}")

    def _check_sent(self, judge: _Judge, thing: Thing, request: Request) -> None:
        """A request is sent: nothing may forbid it."""
        server, options = self._work[thing.server].server, self._options
        self._hold(isinstance(thing, RobotsRead) or thing.server not in judge.held, "a server on hold is asked", thing)
        again = isinstance(thing, RobotsRead) and bool(thing.redirects or thing.identity)
        if not options.outside and not again:
            pause = options.delay if server.options.delay is None else server.options.delay
            if server.robots is not None and judge.paced.get(thing.server, False):
                pause = max(pause, min(server.robots.delay, options.max_delay))
            since = self._now - judge.last.get(thing.server, -math.inf)
            self._hold(since >= pause - 1e-6, f"a pause of {since:.3f} s, not {pause:.3f} s", thing)
            self._hold(self._now >= server.held_until, "its server has asked for a pause", thing)
        judge.last[thing.server] = self._now
        if not (options.outside or isinstance(thing, RobotsRead)):
            robots = server.robots
            self._hold(robots is not None and not robots.expired(self._at), "robots.txt was not read", thing)
            self._hold(robots is not None and not robots.hold_off, "robots.txt cannot be read", thing)
            self._hold(not server.refusal, "its server is refused", thing)
            if not (isinstance(thing, SitemapRead) and thing.named):
                self._hold(_allows(server, request.url), "robots.txt forbids it", thing)
        if isinstance(thing, PageVisit | RequisiteRead):
            self._hold(not self._bytes.used_up, "the bytes of the cycle are spent", thing)
            self._hold(not self._bytes.closed(thing.server), "the bytes of the site are spent", thing)
            if isinstance(thing, PageVisit) and self.exploring and thing.state.version < 0:
                limit = server.options.limit
                within = limit is None or server.live + server.pending_new <= limit
                self._hold(within, "the limit of its site is reached", thing)


@dataclass(slots=True)
class _Judge:
    """What is remembered for the invariants alone, which no decision may use."""

    open: set[int] = field(default_factory=set)
    """Chosen pages without an end."""
    last: dict[int, float] = field(default_factory=dict)
    """The last time that a request to a server was sent, or answered."""
    paced: dict[int, bool] = field(default_factory=dict)
    """Servers whose lane has the pause that their robots.txt asks for."""
    held: set[int] = field(default_factory=set)
    """Servers whose lane is on hold."""

    def chosen(self, pages: Iterable[int]) -> None:
        """These pages are to be visited."""
        for page in pages:
            if page in self.open:
                raise BrokenInvariant(f"page {page} is chosen twice")
            self.open.add(page)

    def ended(self, page: int) -> None:
        """The visit of a page has ended, or will not be made."""
        if page not in self.open:
            raise BrokenInvariant(f"page {page} has ended twice")
        self.open.remove(page)


_CHECKED_LANES = 2000
_SHOWS_ABSENT = "it shows what its site shows for addresses that cannot exist"


def _allows(server: Server, url: str) -> bool:
    return server.robots is None or server.robots.allows(url)


def _is_html(answer: Answer) -> bool:
    from recrawl.compare.parsing.media_types import HTML  # lazy: only pages that a browser may load need it
    from recrawl.crawl.visits.stored_text import media_type  # lazy: the same

    return media_type(answer.body, answer.headers)[1].startswith(HTML)


_HANDLERS: dict[type[MachineEvent], Callable[[VisitMachine, Any], None]] = {
    RunBegun: VisitMachine._run_begun,
    BytesLimited: VisitMachine._bytes_limited,
    ServerNeeded: VisitMachine._server_needed,
    PagesChosen: VisitMachine._pages_chosen,
    OutcomesDue: VisitMachine._outcomes_due,
    PagesFound: VisitMachine._pages_found,
    HintsWanted: VisitMachine._hints_wanted,
    RobotsWanted: VisitMachine._robots_wanted,
    NextTurn: VisitMachine._next_turn,
    RowRead: VisitMachine._row_read,
    AnswerCame: VisitMachine._answer_came,
    TargetKnown: VisitMachine._target_known,
    PageRendered: VisitMachine._page_rendered,
    BrowserWants: VisitMachine._browser_wants,
    ThingParsed: VisitMachine._thing_parsed,
    FileRead: VisitMachine._file_read,
    FeedsKnown: VisitMachine._feeds_known,
    LoginEnded: VisitMachine._login_ended,
    RequisitesBegin: VisitMachine._requisites_begin,
    RequisitesEnd: VisitMachine._requisites_end,
    RequisiteKnown: VisitMachine._requisite_known,
    RequisiteRecorded: VisitMachine._requisite_recorded,
    VisitRecorded: VisitMachine._visit_recorded,
    BatchGrew: VisitMachine._batch_grew,
    BatchCommitted: VisitMachine._batch_committed,
}
"""What handles each event."""
