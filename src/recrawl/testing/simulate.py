"""The whole crawler in a simulator: one seed decides the web, the servers, the faults and the end.

    simulate(seed) -> Simulation

The machine of visits (`recrawl.crawl.visits.machine`), the lanes, the policies, the loop, the way a cycle is resumed
and the rows are the real ones. Clock, network, reader processes, browser, logins, store and disk are simulated: time
passes only when the machine has nothing to do, and everything random is a function of the seed and of what it is
drawn for. Servers answer with every failure, and with statuses, redirects and delays of all kinds. Faults come at any
event: the process is killed, answers are lost or late, the disk is full, a commit is refused, the clock jumps, a page
kills its reader process, the lease is lost. Whoever resumes has only what was committed.

Three judges watch: `VisitMachine.validate` after every event; the servers, which know their own rules and pauses; and
the record at the end, where each chosen page must have exactly one visit. `WrongCrawl` says what broke, with the story.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from recrawl import loop
from recrawl.book import Book
from recrawl.choose import make_policy
from recrawl.choose.protocol import Choice, Policy
from recrawl.columns import DAY
from recrawl.compare.validators import ValidatorTrust
from recrawl.crawl.options import CrawlOptions, SiteOptions
from recrawl.crawl.render.messages import Rendered
from recrawl.crawl.state import deliveries
from recrawl.crawl.tally import RowNumbers
from recrawl.crawl.visits import machine
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.results import VisitRows, policy_outcome
from recrawl.crawl.visits.servers import Server, noise_table
from recrawl.discover.redirect_habits import RedirectHabits
from recrawl.discover.scope import Scope, Scopes
from recrawl.fetch import lanes
from recrawl.fetch.lanes import parse_retry_after
from recrawl.learn.copies.absent import AbsentAddresses
from recrawl.model import NOTHING, SILENT, Answer, Failure, Outcomes, Picks, RequisiteLevel, State, Unvisited
from recrawl.record.rows import FeedRow, PageRow, PageState, RequisiteRow, unvisited

START = 1_700_000_000.0
_STEPS = 60_000
"""Events after which a run counts as one without end."""
_LONGEST = 60.0
"""Seconds until the client gives up a request."""
_BROKEN = (
    *(Failure.DNS, Failure.CONNECT, Failure.TLS, Failure.TIMEOUT, Failure.CUT_OFF, Failure.BAD_RESPONSE),
    *(Failure.BAD_ENCODING, Failure.TOO_LARGE, Failure.BAD_URL, Failure.CONTENT_TYPE),
)
"""What a server that misbehaves comes to (docs/reference/failures.md)."""
_STATUSES = (204, 206, 300, 304, 400, 401, 403, 404, 410, 418, 429, 429, 500, 502, 503, 503, 999)
_UNREADABLE = ("parse-timeout", "parse-crash", "parse-memory", "too-deep")
_ENDS = ("kill", "disk full", "commit refused", "killed after the commit", "lease lost")


class WrongCrawl(AssertionError):
    """The crawl of a seed has broken a rule; the message has the seed and the story."""


class Killed(Exception):
    """The simulated process has ended here."""


@dataclass(frozen=True, slots=True)
class Code:
    """The modules that are simulated: the real ones, or mutants of them."""

    machine: ModuleType = machine
    lanes: ModuleType = lanes
    loop: ModuleType = loop


@dataclass(slots=True)
class Simulation:
    """What a seed came to."""

    seed: int
    events: int = 0
    crashes: int = 0
    visits: int = 0
    requests: int = 0
    commits: int = 0
    seconds: float = 0.0
    """Simulated time."""
    failures: Counter[str] = field(default_factory=Counter)
    """Visits by failure; '' for those without one."""
    phases: Counter[str] = field(default_factory=Counter)
    """Steps by kind and phase."""


def draw(*parts: object) -> float:
    """A number from 0 to 1 that these parts decide.

    >>> draw(1, "a") == draw(1, "a"), draw(1, "a") == draw(2, "a")
    (True, False)
    """
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=7).digest()) / (1 << 56)


def simulate(seed: int, *, code: Code | None = None, checks: bool = True, crashes: int = 3) -> Simulation:
    """Crawl the web of a seed, or refresh it in a cycle, with at most so many crashes.

    Raises `WrongCrawl` if a rule is broken. `checks` validates the machine after every event.
    """
    return _worked(_Run(seed, code or Code(), checks=checks, crashes=crashes)).found


def resume_exactly(seed: int, *, code: Code | None = None, checks: bool = True, crashes: int = 3) -> Simulation:
    """Refresh the web of a seed twice, undisturbed and with crashes: the policy must choose the same pages.

    The web is a steady one: what a page answers depends on nothing but the page, and no answer takes more than ten
    seconds. How fast servers answer differs between the two.
    """
    code = code or Code()
    undisturbed = _worked(_Run(seed, code, checks=checks, crashes=0, steady=True))
    disturbed = _worked(_Run(seed, code, checks=checks, crashes=crashes, steady=True))
    one, other = undisturbed.choices, disturbed.choices
    if one != other:
        number = next(
            (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
        )
        raise WrongCrawl(f"seed {seed}: batch {number} is another after {disturbed.found.crashes} crashes")
    return disturbed.found


def _worked(run: _Run) -> _Run:
    """A run after its end; what breaks in it is told with the story."""
    try:
        run.work()
    except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise WrongCrawl(f"seed {run.seed}: {type(error).__name__}: {error}\n{run.story()}") from error
    return run


# -- the web -------------------------------------------------------------------------------------------------------


class _Host:
    """A server: its manners, its rules, and what it has seen."""

    def __init__(self, seed: int, number: int, *, pages: int, steady: int | None = None) -> None:
        """A `steady` one answers each page in one way; its speed is drawn with that number."""
        self.origin, self.number, self.pages = f"https://s{number}.example", number, pages
        self._seed, self._steady = seed, steady
        roll = self._roll
        kind = roll("kind")
        self.trouble = 0.0 if kind < 0.35 else 0.25 if kind < 0.8 else 0.7
        self.dead = kind > 0.95
        self.slow = roll("slow") < 0.15
        self.delay = (0.0, 0.0, 3.0, 20.0)[int(roll("delay") * 4)]
        robots = roll("robots")
        self.robots = "rules" if robots < 0.6 else "none" if robots < 0.75 else "moved" if robots < 0.85 else "late"
        self.hidden = roll("hidden") < 0.5
        self.login = roll("login") < 0.1
        self.renders = roll("renders") < 0.08
        self.sitemaps = roll("sitemaps") < 0.3
        self.feed = roll("feed") < 0.2
        self.shared = roll("shared") < 0.1
        self.styles = roll("styles") < 0.3
        self.limit = int(roll("most") * pages) + 1 if roll("limit") < 0.15 else None
        self.at_once = 1
        if steady is not None:
            self.robots = "rules" if self.robots == "late" else self.robots
            self.login = self.shared = False
        self.asked: Counter[str] = Counter()
        self.sessions = 0.0
        """The end of the session."""
        self.logins = 0
        self.forget()

    def _roll(self, *parts: object) -> float:
        return draw(self._seed, self.number, *parts)

    def forget(self) -> None:
        """A new process asks: it does not know how long the one before has paused."""
        self.open = 0
        self.last = self.until = -math.inf
        self.known_rules = False
        self.per_page: Counter[str] = Counter()

    # -- judging -----------------------------------------------------------------------------------------------

    def ask(self, path: str, now: float, pause: float, *, visit: bool) -> None:
        """A request has come, for a visit of a page or for something else: was it allowed?"""
        chain = path.startswith("/robots")
        if self.open >= self.at_once:
            raise WrongCrawl(f"{self.open + 1} requests at once to {self.origin}: {path}")
        pause = max(pause, self.delay if self.known_rules and self.robots != "none" else 0.0)
        if not chain and now - self.last < pause - 1e-6:
            raise WrongCrawl(f"{now - self.last:.3f} s of pause before {self.origin}{path}, not {pause}")
        if not chain and now < self.until - 1e-6:
            raise WrongCrawl(f"{self.origin}{path} is asked {self.until - now:.1f} s before Retry-After is over")
        if self.known_rules and self.robots != "none" and self.hidden and path.startswith("/p7"):
            raise WrongCrawl(f"robots.txt of {self.origin} forbids {path}")
        if not chain and not self.known_rules and self.robots in ("rules", "moved") and not self.dead and self.hidden:
            forbidden = path.startswith("/p7")
            if forbidden:
                raise WrongCrawl(f"{path} is asked before robots.txt was read, which forbids it")
        self.per_page[path] += visit
        if path.startswith("/p") and self.per_page[path] > 14:
            raise WrongCrawl(f"{self.origin}{path} is asked {self.per_page[path]} times")
        self.open, self.last = self.open + 1, now

    def answered(self, answer: Answer, path: str, now: float) -> None:
        """The answer has been received."""
        self.open, self.last = self.open - 1, now
        if (path == "/robots.txt" and answer.status == 200) or path == "/robots-moved.txt":
            self.known_rules = True
        wait = parse_retry_after(answer.header("retry-after"), now)
        if answer.status in (429, 503) and wait is not None and not path.startswith("/robots"):
            self.until = max(self.until, now + wait)

    # -- answering ---------------------------------------------------------------------------------------------

    def answer(self, url: str, request: Any, now: float, at: float) -> tuple[float, Answer]:
        """Seconds until the answer, and the answer."""
        path = url[len(self.origin) :]
        self.asked[path] += 1
        time, roll = self.asked[path], self._roll
        if self._steady is not None:
            return 8.0 * roll(self._steady, path, time, "took") ** 4, self._steady_answer(url, path, request, at)
        seconds = (0.01 + 0.5 * roll(path, time, "took")) * (60 if self.slow and roll(path, "drag") < 0.2 else 1)
        fate = roll(path, time, "lost")
        if self.dead or fate < 0.01:
            failure = Failure.CONNECT if self.dead else Failure.TIMEOUT
            return (0.1 if self.dead else _LONGEST), Answer.failed(url, failure, "simulated", at=at)
        seconds = min(seconds + (30.0 if fate < 0.03 else 0.0), _LONGEST - 1)
        if path == "/robots.txt":
            return seconds, self._robots(url, time, at)
        if path == "/robots-moved.txt":
            return seconds, self._rules(url, at)
        if path.startswith("/hop") or roll(path, "chain") < 0.02:
            hop = int("".join(filter(str.isdigit, path)) or 0) + 1
            return seconds, Answer.made(url, 302, [("Location", f"/hop{hop}")], at=at)
        if roll(path, "refused") < 0.03 and path.startswith("/p"):
            return seconds, Answer.made(url, (429, 503)[path.endswith("1")], at=at)
        if roll(path, time, "trouble") < self.trouble:
            return seconds, self._broken(url, path, time, request, at)
        if self.login and now >= self.sessions and path.startswith("/p"):
            return seconds, Answer.made(url, 302, [("Location", f"{self.origin}/login")], at=at)
        return seconds, self._whole(url, path, request, at)

    def _steady_answer(self, url: str, path: str, request: Any, at: float) -> Answer:
        """Nothing that stops the requests to a server: else their order would decide what pages are."""
        if self.dead:
            return Answer.failed(url, Failure.CONNECT, "simulated", at=at)
        if path == "/robots.txt":
            return self._robots(url, 99, at)
        if path == "/robots-moved.txt":
            return self._rules(url, at)
        if self._roll(path, "trouble") < self.trouble:
            answer = self._broken(url, path, 1, request, at)
            if answer.failure not in SILENT and answer.status not in (429, 503):
                return answer
        return self._whole(url, path, request, at)

    def _robots(self, url: str, time: int, at: float) -> Answer:
        if self.robots == "none":
            return Answer.made(url, 404, at=at)
        if self.robots == "moved":
            return Answer.made(url, 301, [("Location", "/robots-moved.txt")], at=at)
        if self.robots == "late" and time < 2 + 4 * self._roll("late"):
            return Answer.made(url, 503, at=at)
        return self._rules(url, at)

    def _rules(self, url: str, at: float) -> Answer:
        lines = ["User-agent: *", *(["Disallow: /p7"] if self.hidden else [])]
        lines += [f"Crawl-delay: {self.delay:g}"] if self.delay else []
        lines += [f"Sitemap: {self.origin}/map0.xml"] if self.sitemaps else []
        return Answer.made(url, 200, body="\n".join(lines).encode(), at=at)

    def _broken(self, url: str, path: str, time: int, request: Any, at: float) -> Answer:
        which = self._roll(path, time, "which")
        if which < 0.4:
            failure = _BROKEN[int(self._roll(path, time, "failure") * len(_BROKEN))]
            if not (failure is Failure.BAD_ENCODING and request.identity):
                return Answer.failed(url, failure, "simulated", at=at)
        if which < 0.6:
            target = self._roll(path, time, "target")
            place = f"/p{int(target * self.pages)}" if target < 0.7 else "/loop" if target < 0.8 else "::"
            if 0.8 < target < 0.87:
                place = "/p7"
            if target > 0.9:
                place = "https://s0.example/p1" if target < 0.95 else "https://elsewhere.example/"
            status = (301, 302, 303, 307, 308)[int(self._roll(path, time, "hop") * 5)]
            return Answer.made(url, status, [("Location", place)], at=at)
        status = _STATUSES[int(self._roll(path, time, "status") * len(_STATUSES))]
        asks = self._roll(path, time, "asks")
        headers = [("Retry-After", str(int(asks * 200)))] if status in (429, 503) and asks < 0.6 else []
        if status in (429, 503) and asks > 0.97:
            headers = [("Retry-After", "7200")]
        return Answer.made(url, status, headers, at=at)

    def version(self, path: str, at: float) -> int:
        """The version of a page, of those that follow one another."""
        at = at if self._steady is None else min(at, START)
        return int((at - START) / (DAY * (0.2 + 9 * self._roll(path, "rate"))))

    def _whole(self, url: str, path: str, request: Any, at: float) -> Answer:
        tag = f'"{self.version(path, at)}"'
        same = request.validators is not None and request.validators.etag == tag
        tags = [("ETag", tag)] if self._roll(path, "tags") < 0.7 else []
        if same and tags and not self.shared:
            return Answer.made(url, 304, tags, at=at, received=150)
        if path.endswith((".css", ".xml")):
            return Answer.made(url, 200, tags, f"{path} {tag}".encode(), at=at)
        kind = [("Content-Type", "text/html"), *tags]
        kind += [("X-Robots-Tag", "noindex")] if self._roll(path, "noindex") < 0.05 else []
        shared = self.shared and self._roll("wall", int((at - START) / DAY)) < 0.5
        body = b"please log in" if shared else f"<p>{path} {tag}".encode()
        return Answer.made(url, 200, kind, body, at=at, received=1000)


# -- what is durable -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Disk:
    """What a crash leaves."""

    pages: list[PageRow] = field(default_factory=list)
    visits: dict[tuple[int, int], tuple[int, int, str]] = field(default_factory=dict)
    """By cycle and page: the outcome for the policy, bytes and failure."""
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    requisites: list[RequisiteRow] = field(default_factory=list)
    sent: str = ""
    next_visit: int = 0
    next_version: int = 0


@dataclass(slots=True)
class _Batch:
    """What waits for the next commit."""

    pages: list[PageRow] = field(default_factory=list)
    visits: list[tuple[int, int, int, str, float]] = field(default_factory=list)
    states: dict[int, PageState] = field(default_factory=dict)
    requisites: dict[int, RequisiteRow] = field(default_factory=dict)
    since: float = math.inf


_KEPT = ("robots", "trust", "sitemap_at", "held_until", "refusal")


@functools.cache
def _method_of(action: str) -> str:
    """The method that does an action."""
    return "do_" + re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()


# -- the shell -------------------------------------------------------------------------------------------------------


class _Shell:
    """The simulated process: does what the machine says, with what the disk has; a `World` for the loop."""

    def __init__(self, run: _Run) -> None:
        self.run, self.disk, self.m = run, run.disk, run.code.machine
        options = self.options = run.options
        self.batch, self.found_pages = _Batch(), list[int]()
        self.servers = [self._server(host.origin, number) for number, host in enumerate(run.hosts)]
        for server in self.servers:
            server.pages = sum(row.site == server.id for row in self.disk.pages)
            states = Counter(row.state.state for row in self.disk.pages if row.site == server.id)
            server.live, server.missing = states[State.LIVE], states[State.MISSING]
        self.known = {row.url: page for page, row in enumerate(self.disk.pages)}
        self.numbers = RowNumbers(self.disk.next_visit, self.disk.next_version)
        self.rows = VisitRows(options, self.numbers, run.cycle)
        paces = {"max_delay": options.max_delay, "patience": options.patience, "per_server": options.per_server}
        ways = run.code.lanes.Lanes(delay=options.delay, **paces)
        self.machine = self.m.VisitMachine(
            options,
            ways,
            fingerprints=[noise.fingerprint for noise in noise_table(options)],
            accesses=SimpleNamespace(of=run.profile_of),
            absent=self._absent(),
            release=run.release,
            checks=run.checks,
        )
        self.events: list[tuple[float, int, Any]] = []
        self.order = 0
        self.rendered: dict[int, Any] = {}
        self.flying = self.reading = self.spent = self.rendering = 0
        self.asked_requisites: set[int] = set()
        for host in run.hosts:
            host.forget()

    def _server(self, origin: str, number: int) -> Server:
        options = self.options
        kept = self.disk.servers.get(origin, {"robots": None, "trust": ValidatorTrust(), "held_until": 0.0})
        host = self.run.hosts[number]
        level = RequisiteLevel.CSS if host.styles else RequisiteLevel.NONE
        server = Server(
            *(number, origin, None, ValidatorTrust(), RedirectHabits.load(""), options.of_site(origin), 0, 0),
            requisites=level,
            render="auto" if host.renders else "never",
        )
        for name, value in kept.items():
            setattr(server, name, value)
        return server

    def _absent(self) -> AbsentAddresses:
        """Some servers are asked for an address that cannot exist; robots.txt forbids that of some."""
        absent = AbsentAddresses()
        for host in self.run.hosts:
            if draw(self.run.seed, host.number, "absent") < 0.3:
                absent.want(host.number, [f"{host.origin}/p{'7' if host.number % 2 else ''}*"], self.run.at)
        return absent

    # -- jobs ----------------------------------------------------------------------------------------------------

    def visit(self, picks: Picks, due: Collection[int] = ()) -> Outcomes:
        """Visit the pages that the policy chose, until those that are due have an outcome."""
        chosen = picks.pages.tolist()
        self.run.given.update(chosen)
        all_awaited = picks.awaits >= 1
        awaited = 0 if all_awaited else picks.needed
        if chosen:
            rows = [
                (page, self.servers[self.disk.pages[page].site], self.disk.pages[page].state.failures > 0)
                for page in chosen
            ]
            self.need(server for _, server, _ in rows)
            self.tell(self.m.PagesChosen(rows, picks.score.tolist(), 0, awaited))
        if not all_awaited and due:
            self.tell(self.m.OutcomesDue(due, chosen[:awaited], picks.needed - loop.enough(picks)))
        if all_awaited or due:
            self.work()
        self.grown()
        seen = np.array(self.machine.take_outcomes(), np.int64).reshape(-1, 3)
        if len(np.unique(seen[:, 0])) < len(seen):
            raise WrongCrawl("a page has two outcomes")
        return Outcomes(seen[:, 0], seen[:, 1].astype(np.int8), seen[:, 2])

    def explore(self) -> None:
        """Visit every page that was never visited, as a crawl."""
        self.machine.exploring = True
        done = {page for cycle, page in self.disk.visits if cycle == self.run.cycle}
        rows = [
            (page, self.servers[row.site], row.state.failures > 0)
            for page, row in enumerate(self.disk.pages)
            if row.state.version < 0 and row.state.state == State.FOUND and page not in done
        ]
        self.need(server for _, server, _ in rows)
        self.tell(self.m.PagesChosen(rows))
        for server in self.servers:
            if self.machine.server_needed(server):
                self.tell(self.m.HintsWanted(server, ()))
        self.work()

    def requisites(self) -> None:
        """Request what pages need."""
        rows = [row for row in self.all_requisites() if row.checked is None]
        self.tell(self.m.RequisitesBegin(math.inf, self.with_servers(rows)))
        self.work()
        self.tell(self.m.RequisitesEnd())

    def need(self, servers: Any) -> None:
        for server in {server.id: server for server in servers}.values():
            if self.machine.server_needed(server):
                self.tell(self.m.ServerNeeded(server))

    def with_servers(self, rows: list[RequisiteRow]) -> list[tuple[RequisiteRow, Server]]:
        pairs = [(row, self.servers[self.run.host_of(row.url).number]) for row in rows]
        self.need(server for _, server in pairs)
        return pairs

    def all_requisites(self) -> list[RequisiteRow]:
        kept = {row.id: row for row in self.disk.requisites}
        return list((kept | self.batch.requisites).values())

    # -- the loop --------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """The event loop: time passes when nothing else can happen."""
        run, machine = self.run, self.machine
        self.tell(self.m.RunBegun())
        while machine.busy and not machine.over(run.now):
            machine.turned = True
            while machine.turned:
                self.tell(self.m.NextTurn(run.room - self.flying, self.reading * 1_000_000))
            wait = machine.wait(run.now, room=run.room - self.flying, unparsed=self.reading * 1_000_000)
            then = min(run.now + max(wait, 1e-3), self.events[0][0] if self.events else math.inf)
            if then == math.inf:
                if machine.busy:
                    raise WrongCrawl(f"nothing happens any more, and nothing ends\n{machine.stories()}")
                break
            run.now = max(run.now, then)
            while self.events and self.events[0][0] <= run.now:
                heapq.heappop(self.events)[2]()
            self.grown()

    def grown(self) -> None:
        """Tell the machine of what waits for the next commit."""
        batch, run = self.batch, self.run
        anything = bool(batch.visits or batch.pages or batch.requisites)
        if anything and batch.since == math.inf:
            batch.since = run.now
        self.tell(self.m.BatchGrew(len(batch.visits), anything))
        late = run.now - self.batch.since
        if late > self.options.commit_seconds + _LONGEST + 1 or len(self.batch.visits) > 4 * self.options.commit_visits:
            raise WrongCrawl(f"{len(self.batch.visits)} visits wait for a commit since {late:.1f} s")

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.events, (self.run.now + seconds, self.order, what))

    def tell(self, event: Any) -> None:
        """Tell the machine, and do what follows; the fault of this event comes first."""
        run = self.run
        run.step()
        self.follow(self.machine.handle(event, run.now, run.at))
        if self.found_pages:
            rows = [(page, self.servers[self.row(page).site]) for page in self.found_pages]
            self.found_pages = []
            self.need(server for _, server in rows)
            self.tell(self.m.PagesFound(rows))

    def follow(self, actions: list[Any]) -> None:
        for action in actions:
            event = getattr(self, _method_of(type(action).__name__))(action)
            if event is not None:
                self.run.found.events += 1
                self.follow(self.machine.handle(event, self.run.now, self.run.at))

    def row(self, page: int) -> PageRow:
        kept = len(self.disk.pages)
        row = self.disk.pages[page] if page < kept else self.batch.pages[page - kept]
        state = self.batch.states.get(page)
        return row if state is None else row._replace(state=state)

    # -- actions -----------------------------------------------------------------------------------------------

    def do_read_row(self, action: Any) -> Any:
        row = self.row(action.page)
        endless = action.explores and row.state.version < 0 and draw(self.run.seed, row.url, "endless") < 0.02
        return self.m.RowRead(action.page, row, needs=None, endless=endless)

    def do_send_request(self, action: Any) -> None:
        run, thing, request = self.run, action.thing, action.request
        host = run.host_of(request.url)
        if isinstance(thing, self.m.PageVisit) and (run.cycle, thing.page) in self.disk.visits:
            raise WrongCrawl(f"a visit that was recorded is made again: {thing.story}")
        asked = run.hosts[thing.server]
        if asked is host:
            visit = isinstance(thing, self.m.PageVisit)
            host.ask(request.url[len(host.origin) :], run.now, self.options.delay, visit=visit)
        run.found.requests += 1
        self.flying += 1
        if isinstance(thing, self.m.RequisiteRead) and not thing.demanded and not thing.identity:
            self.spent += 1
            if thing.row.id in self.asked_requisites:
                raise WrongCrawl(f"a requisite is requested again: {thing.story}")
            self.asked_requisites.add(thing.row.id)
            if self.spent > self.options.requisite_budget:
                raise WrongCrawl("more requests for requisites than their budget has")
        seconds, answer = host.answer(request.url, request, run.now, run.at)

        def arrive() -> None:
            self.flying -= 1
            if asked is host:
                host.answered(answer, request.url[len(host.origin) :], run.now)
            self.tell(self.m.AnswerCame(thing, answer, "x-robots-tag" in answer.fields))

        self.later(seconds, arrive)

    def do_archive_answer(self, _action: Any) -> None: ...

    def do_find_target(self, action: Any) -> Any:
        page = self.known.get(action.url, -1)
        if page < 0 and not self.run.exploring:
            return self.m.TargetKnown(action.visit, failure=Failure.REDIRECT_AWAY, detail=f"to {action.url}")
        if page < 0:
            page = self.find(action.url, action.visit.depth)
        if page < 0 or page == action.visit.page:
            return self.m.TargetKnown(action.visit, failure=Failure.REDIRECT_LOOP, detail=f"to {action.url}")
        return self.m.TargetKnown(action.visit, page, detail=f"to {action.url}")

    def do_keep_aliases(self, _action: Any) -> None: ...

    def do_parse_thing(self, action: Any) -> None:
        run, thing = self.run, action.thing
        self.reading += 1
        seconds = 0.01 + 0.1 * draw(run.seed, "parse", self.order)

        def parsed() -> None:
            self.reading -= 1
            self.tell(self.m.ThingParsed(thing, self.reading_of(thing), np.zeros(0, np.int64)))

        self.later(seconds, parsed)

    def reading_of(self, thing: Any) -> Reading:
        """What a reader process sends back; it may have died on the page."""
        roll = draw(self.run.seed, thing.name, 0 if self.run.steady else self.run.found.events)
        if isinstance(thing, self.m.PageVisit):
            assert thing.answer is not None
            if roll < 0.03 and not self.run.steady:  # a page that sends 304 is not parsed
                return Reading(0, failure=_UNREADABLE[int(roll * 133)])
            digest = hashlib.blake2b(thing.answer.body, digest_size=8).digest()
            changed = digest != thing.state.digest
            differs = roll < 0.5 if thing.html else None
            return Reading(
                0, digest=digest, changed=changed, text="x", title="t", render_differs=differs, record=b"record"
            )
        if isinstance(thing, self.m.AbsentRead):
            assert thing.answer is not None
            return Reading(0, digest=hashlib.blake2b(thing.answer.body, digest_size=8).digest(), shape=b"shape")
        return Reading(0, styles="", files="")

    def do_render_page(self, action: Any) -> None:
        run, visit = self.run, action.visit
        roll = draw(run.seed, visit.url, "render")
        self.rendering += 1
        if self.rendering > 1:
            raise WrongCrawl("two pages in the browser")

        def wants() -> None:
            if visit.phase is self.m.Phase.RENDERING:
                row = self.requisite(f"{self.servers[visit.server].origin}/shown{int(roll * 3)}.css")
                ((_, server),) = self.with_servers([row])
                self.tell(self.m.BrowserWants(self.order, row, server))

        def shown() -> None:
            self.rendering -= 1
            problem = "not rendered" if roll < 0.2 else ""
            html = "" if problem else "<p>shown"
            self.tell(self.m.PageRendered(visit, Rendered(visit.page, html=html, problem=problem)))

        self.later(0.1, wants)
        self.later(0.5 + 20 * roll, shown)

    def do_answer_browser(self, _action: Any) -> None: ...

    def do_answer_from_archive(self, _action: Any) -> None: ...

    def do_follow_wanted(self, action: Any) -> Any:
        row = next(row for row in self.all_requisites() if row.id == action.target)
        return self.m.BrowserWants(action.request, row, self.with_servers([row])[0][1], action.hops)

    def do_make_login(self, action: Any) -> None:
        host, run = self.run.hosts[action.thing.server], self.run
        host.open, host.last = host.open + 1, run.now

        def ended() -> None:
            host.open, host.last = host.open - 1, run.now
            host.logins += 1
            host.sessions = run.now + 200 * draw(run.seed, "session", host.logins)
            problem = "wrong password" if draw(run.seed, "login", host.number, host.logins) < 0.1 else ""
            self.tell(self.m.LoginEnded(action.thing, problem))

        self.later(3.0, ended)

    def do_list_feeds(self, action: Any) -> Any:
        server = action.server
        feeds = [FeedRow(server.id, f"{server.origin}/feed.xml", 0.0, "", "")] if self.run.hosts[server.id].feed else []
        return self.m.FeedsKnown(server.id, feeds)

    def do_read_sitemap(self, action: Any) -> Any:
        thing = action.thing
        host = self.run.hosts[thing.server]
        number = int("".join(filter(str.isdigit, thing.url.rpartition("/")[2])) or 0)
        children = [f"{host.origin}/map{2 * number + side}.xml" for side in (1, 2)] if number < 4 else []
        children += [f"{host.origin}/p7map5.xml"] if number == 2 else []
        if self.run.exploring:
            self.find(f"{host.origin}/p{number}", 1)
        return self.m.FileRead(thing, children, draw(self.run.seed, thing.url, "broken") < 0.1)

    def do_read_feed(self, action: Any) -> Any:
        return self.m.FileRead(action.thing)

    def do_record_listing(self, _action: Any) -> None:
        self.commit()

    def do_compare_requisite(self, action: Any) -> Any:
        return self.m.RequisiteKnown(action.thing, draw(self.run.seed, action.thing.row.url, "same") < 0.3)

    def do_record_requisite(self, action: Any) -> Any:
        row, answer = action.thing.row, action.answer
        at = self.run.at if answer is None else answer.at
        if action.failure:
            row = row._replace(checked=at, failures=row.failures + 1, failure=action.failure)
        else:
            row = row._replace(checked=at, failures=0, failure=None, version=max(row.version, 0))
        self.batch.requisites[row.id] = row
        found = []
        if action.reading is not None and row.depth < 2 and draw(self.run.seed, row.url, "imports") < 0.5:
            found = [self.requisite(f"{self.run.host_of(row.url).origin}/shared.css", row.depth + 1)]
        return self.m.RequisiteRecorded(
            action.thing, row, self.with_servers([it for it in found if it.checked is None])
        )

    def requisite(self, url: str, depth: int = 0) -> RequisiteRow:
        """The row of a requisite; a new one waits for its first request."""
        rows = self.all_requisites()
        known = next((row for row in rows if row.url == url), None)
        if known is None:
            known = RequisiteRow(len(rows), 0, 1, 1, depth, None, 0, None, -1, -1, "", "", url)
            self.batch.requisites[known.id] = known
        return known

    def do_record_scan(self, _action: Any) -> None: ...

    def do_record_visit(self, action: Any) -> Any:
        visit, finding, m = action.visit, action.finding, self.m
        server = self.servers[visit.server]
        after: State | None = State.LIVE
        done: Any
        if isinstance(finding, m.PageSame):
            done = self.rows.unchanged(visit, finding.answer)
        elif isinstance(finding, m.PageRead):
            done = self.rows.read(server, visit, finding.reading, 0, None)
            if server.requisites:
                self.requisite(f"{server.origin}/{('p7style', 'style1', 'style2')[visit.page % 3]}.css")
            if self.run.exploring:
                self.find_links(visit)
        elif isinstance(finding, m.PageMissing):
            done = self.rows.missing(server, visit, finding.answer, finding.target)
            after = State(done.state.state)
        else:
            done = self.rows.failed(visit, finding.answer, finding.failure, finding.detail, self.run.at)
            after = None
        row = done.visit
        before = visit.state
        state = done.state if isinstance(done.state, PageState) else before._replace(**done.state._asdict())
        if any(page == visit.page for page, *_ in self.batch.visits):
            raise WrongCrawl(f"a visit is recorded twice: {visit.story}")
        self.batch.visits.append((visit.page, policy_outcome(row), row.received, row.failure or "", self.run.now))
        self.batch.states[visit.page] = state
        return m.VisitRecorded(visit, policy_outcome(row), row.received, after)

    def find_links(self, visit: Any) -> None:
        """The pages that a page links to become known."""
        host = self.run.hosts[visit.server]
        for step in (1, 2, 5):
            number = int("".join(filter(str.isdigit, visit.url.rpartition("/")[2])) or 0) * step + step
            if number < host.pages:
                self.find(f"{host.origin}/p{number}", visit.depth + 1)

    def find(self, url: str, depth: int) -> int:
        page = self.known.get(url)
        if page is not None:
            return page
        host = next((host for host in self.run.hosts if url.startswith(host.origin + "/")), None)
        if host is None:
            return -1
        page = self.known[url] = len(self.disk.pages) + len(self.batch.pages)
        self.batch.pages.append(PageRow(url, host.number, depth, 0, unvisited(page)))
        self.servers[host.number].pages += 1
        self.found_pages.append(page)
        return page

    def do_leave_page(self, _action: Any) -> None: ...

    def do_warn_user(self, _action: Any) -> None: ...

    def do_keep_brakes(self, _action: Any) -> None: ...

    def do_keep_absent(self, _action: Any) -> None: ...

    def do_reindex_pages(self, _action: Any) -> None:
        self.commit()

    def do_commit_batch(self, _action: Any) -> None:
        self.commit()

    def do_commit_index(self, _action: Any) -> None: ...

    def commit(self) -> None:
        """Make the batch durable, unless a fault prevents it."""
        run, disk, batch = self.run, self.disk, self.batch
        fault = run.fault_of_commit()
        if fault in ("disk full", "commit refused", "lease lost"):
            raise Killed(fault)
        for page, outcome, received, failure, _ in batch.visits:
            if (run.cycle, page) in disk.visits:
                raise WrongCrawl(f"page {page} is recorded twice in one cycle")
            disk.visits[run.cycle, page] = outcome, received, failure
            run.found.failures[failure] += 1
        disk.pages += batch.pages
        for page, state in batch.states.items():
            disk.pages[page] = disk.pages[page]._replace(state=state)
        kept = {row.id: row for row in disk.requisites} | batch.requisites
        disk.requisites = [kept[number] for number in sorted(kept)]
        for server in self.servers:
            disk.servers[server.origin] = {name: getattr(server, name) for name in _KEPT[:4]}
        disk.next_visit, disk.next_version = self.numbers.next_visit, self.numbers.next_version
        run.found.commits += 1
        self.batch = _Batch()
        self.tell_committed()
        if fault:
            raise Killed(fault)

    def tell_committed(self) -> None:
        self.follow(self.machine.handle(self.m.BatchCommitted(), self.run.now, self.run.at))


# -- one seed ------------------------------------------------------------------------------------------------------


class _Overlapping:
    """A policy whose choices depend on every outcome it was told so far, and which awaits parts of its batches."""

    name, source, needs = "overlapping", "the simulator", frozenset[str]()

    def cycle(self, book: Book, _budget: int, rng: np.random.Generator) -> Choice:
        """Choose; see `recrawl.choose.protocol`."""
        left, heard = np.flatnonzero(book.known).tolist(), 0
        while left:
            left.sort(key=lambda page: draw(page, heard))
            size = int(rng.integers(1, 8))
            batch, left = np.array(left[:size], np.int64), left[size:]
            awaits = (0.0, 0.4, 0.9, 1.0)[int(rng.integers(4))]
            seen = yield Picks(batch, np.full(len(batch), float(heard % 997)), "its turn came", awaits=awaits)
            heard = (heard * 31 + sum((seen.pages + 1) * (seen.what + 2).astype(np.int64))) % 1_000_003


class _Watched:
    """A policy whose choices are noted."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.chosen: list[tuple[tuple[int, ...], tuple[float, ...]]] = []

    def cycle(self, book: Book, budget: int, rng: np.random.Generator) -> Choice:
        """What the policy chooses."""
        choice = self.inner.cycle(book, budget, rng)
        picks = next(choice, None)
        while picks is not None:
            self.chosen.append((tuple(picks.pages.tolist()), tuple(picks.score.tolist())))
            seen = yield picks
            try:
                picks = choice.send(seen)
            except StopIteration:
                return


class _Run:
    """The crawl of one seed, through all of its crashes."""

    def __init__(self, seed: int, code: Code, *, checks: bool, crashes: int, steady: bool = False) -> None:
        self.seed, self.code, self.checks, self.steady = seed, code, checks, steady
        self.found = Simulation(seed)

        def roll(*parts: object) -> float:
            return draw(seed, *parts)

        self.now = START
        self.skew = 0.0
        self.cycle = 1
        self.exploring = roll("mode") < 0.35 and not steady
        sites = 1 + int(roll("sites") * 5)
        speed = crashes if steady else None
        self.hosts = [
            _Host(seed, number, pages=3 + int(roll(number, "pages") * 14), steady=speed) for number in range(sites)
        ]
        for host in self.hosts:
            host.at_once = 2 if roll("at once") < 0.15 else 1
        self.room = 1 + int(roll("room") * 12)
        self.options = CrawlOptions(
            clock=lambda: self.at,
            timer=lambda: self.now,
            agent="simulated",
            scopes=Scopes([Scope(host.origin + "/") for host in self.hosts]),
            sites={host.origin[8:]: SiteOptions(limit=host.limit) for host in self.hosts},
            delay=(0.0, 1.0, 5.0)[int(roll("our delay") * 3)],
            per_server=self.hosts[0].at_once,
            robots_age=(600.0, DAY)[int(roll("robots age") * 2)],
            patience=(5.0, 120.0, 1e5)[int(roll("patience") * 3)],
            retries=int(roll("retries") * 4),
            redirects=1 + int(roll("redirects") * 4),
            requisite_budget=int(roll("requisites") * 20),
            commit_visits=(2, 8, 64)[int(roll("commit size") * 3)],
            commit_seconds=(0.5, 20.0)[int(roll("commit time") * 2)],
            feed_age=3600.0,
        )
        self.budget = 5 + int(roll("budget") * 40)
        self.bytes = 2000.0 + 20_000 * roll("bytes") if roll("byte limit") < 0.1 and not steady else math.inf
        self.site_bytes = 3000.0 if roll("site bytes") < 0.1 and not steady else math.inf
        begin, step = self.now, 0.5 * roll("spread")
        self.release: Callable[[int], float] | None = (lambda n: begin + n * step) if roll("spreads") < 0.15 else None
        self.disk = _Disk()
        for host in self.hosts:
            for number in range(1 if self.exploring else host.pages):
                self.disk.pages.append(
                    PageRow(f"{host.origin}/p{number}", host.number, 1, 0, self._state(host, number))
                )
        self.crashes_left = crashes
        self._plan_fault()
        self.shell: _Shell | None = None
        self.choices: list[Any] = []
        self.given: set[int] = set()
        """Pages that the loop has asked for: of a last batch that exceeds the budget, not all."""

    def _state(self, host: _Host, number: int) -> PageState:
        """A page that was never visited, or was before."""
        page, path = len(self.disk.pages), f"/p{number}"
        state = unvisited(page)
        if self.exploring or draw(self.seed, host.number, path, "new") < 0.2:
            return state
        at = START - DAY * 3
        body = f'<p>{path} "{host.version(path, at)}"'.encode()
        return state._replace(
            state=int(State.LIVE),
            visits=2,
            version=page,
            version_at=at,
            last_visit=at,
            last_try=at,
            payload=hashlib.sha1(body).digest(),
            digest=hashlib.blake2b(body, digest_size=8).digest(),
            noise=noise_table(self.options)[0].fingerprint,
            etag=f'"{host.version(path, at)}"',
        )

    @property
    def at(self) -> float:
        """The clock on the wall, which may jump."""
        return self.now + self.skew

    def host_of(self, url: str) -> _Host:
        """The server of a URL."""
        return next(host for host in self.hosts if url.startswith(host.origin + "/"))

    def profile_of(self, url: str) -> Any:
        """How a site is accessed."""
        host = self.host_of(url)
        if not host.login:
            return None
        has_session = self.now < host.sessions
        rule = SimpleNamespace(login_url=f"{host.origin}/login")
        return SimpleNamespace(rule=rule, jar=SimpleNamespace(lines=lambda: ["session"] if has_session else []))

    def story(self) -> str:
        """What was under way when something broke."""
        where = f"after {self.found.events} events and {self.found.crashes} crashes, at {self.now - START:.3f} s"
        return where if self.shell is None else f"{where}\n{self.shell.machine.stories()}"

    # -- faults --------------------------------------------------------------------------------------------------

    def _plan_fault(self) -> None:
        """When the next crash comes, and which."""
        turn = self.found.crashes
        self.fault = _ENDS[int(draw(self.seed, "end", turn) * len(_ENDS))] if self.crashes_left else ""
        self.fault_at = self.found.events + int(600 * draw(self.seed, "when", turn) ** 2)

    def step(self) -> None:
        """Another event: the faults that are due."""
        found = self.found
        found.events += 1
        if found.events > _STEPS:
            raise WrongCrawl("no end")
        if draw(self.seed, "jump", found.events) < 0.001:
            self.skew += (draw(self.seed, "far", found.events) - 0.3) * 2 * DAY
        if self.fault == "kill" and found.events >= self.fault_at:
            raise Killed("kill")

    def fault_of_commit(self) -> str:
        """What prevents a commit, or comes right after it."""
        return self.fault if self.fault and self.fault != "kill" and self.found.events >= self.fault_at else ""

    # -- the way of a crawl ----------------------------------------------------------------------------------------

    def work(self) -> None:
        """Crawl until the end, from crash to crash; then judge the record."""
        while True:
            try:
                self._process()
                break
            except Killed:
                self.found.crashes += 1
                self.crashes_left -= 1
                self.now += 30.0
                self._plan_fault()
        self.found.seconds = self.now - START
        self.found.visits = len(self.disk.visits)
        assert self.shell is not None
        if self.shell.machine.stories() or self.shell.machine.busy:
            raise WrongCrawl(f"the run has ended, but this has not:\n{self.shell.machine.stories()}")

    def _process(self) -> None:
        shell = self.shell = _Shell(self)
        before = {key for key in self.disk.visits if key[0] == self.cycle}
        spent = [(self.disk.pages[page].site, self.disk.visits[cycle, page][1]) for cycle, page in before]
        if self.exploring:
            shell.explore()
        else:
            totals = Counter[int]()
            for site, received in spent:
                totals[site] += received
            shell.tell(self.code.machine.BytesLimited(self.bytes, self.site_bytes, list(totals.items())))
            self._cycle(shell)
        shell.commit()
        shell.requisites()
        shell.commit()
        if self.exploring:
            self._judge_crawl(shell)

    def _cycle(self, shell: _Shell) -> None:
        """A cycle, resumed if one was interrupted, whose choices are judged at its end."""
        disk, watched = self.disk, _Watched(self._policy())
        recorded = {page: row[0] for (_, page), row in disk.visits.items()}
        received = {page: row[1] for (_, page), row in disk.visits.items()}
        sent, disk.sent = deliveries.sent_before(disk.sent, self.cycle)

        def deliver(seen: Outcomes) -> None:
            disk.sent += deliveries.line_of(self.cycle, seen)

        site = self._book().site
        world = self.code.loop.Resumed(shell, recorded, received, site=site, sent=sent, delivered=deliver)
        try:
            for seen in self.code.loop.drive(watched, world, self._book(), self.budget, self.seed):
                twice = Counter(seen.pages.tolist()).most_common(1)
                if twice and twice[0][1] > 1:
                    raise WrongCrawl(f"the policy was told of page {twice[0][0]} twice")
            world.complete()
            shell.commit()
        finally:
            same = watched.chosen[: len(self.choices)] == self.choices[: len(watched.chosen)]
            if not same:
                raise WrongCrawl("a resumed cycle has made other choices than before the crash")
            if len(watched.chosen) > len(self.choices):
                self.choices = watched.chosen
        self._judge_cycle(watched)

    def _policy(self) -> Any:
        choice = draw(self.seed, "policy")
        if choice < (0.5 if self.steady else 0.1):
            return make_policy("shock")
        return make_policy("change-frequency") if self.steady and choice < 0.6 else _Overlapping()

    def _book(self) -> Book:
        """The book as it was when the cycle began, which is how a resumed cycle loads it."""
        if not hasattr(self, "_first_book"):
            rows = self.disk.pages
            book = Book.blank(len(rows), now=START)
            book.site[:] = [row.site for row in rows]
            book.visits[:] = [row.state.visits for row in rows]
            book.last_visit[:] = [START - 3 * DAY if row.state.visits else -math.inf for row in rows]
            book.last_try[:] = book.last_visit
            book.found[:] = START - 5 * DAY
            self._first_book = book
        return copy.deepcopy(self._first_book)

    def _judge_cycle(self, watched: _Watched) -> None:
        """Every page that was chosen has one visit, and an undisturbed cycle makes the same choices."""
        chosen = [page for pages, _ in watched.chosen for page in pages]
        sent, _ = deliveries.sent_before(self.disk.sent, self.cycle)
        told = {page: what for seen in sent for page, what in zip(seen.pages.tolist(), seen.what.tolist(), strict=True)}
        # Else a cycle may end before, and what a crash has lost may not be made again.
        whole = self.bytes == math.inf and (self.site_bytes == math.inf or not self.found.crashes)
        visited = {page for cycle, page in self.disk.visits if cycle == self.cycle}
        missing = [page for page in dict.fromkeys(chosen) if page not in visited and told.get(page) != Unvisited.HELD]
        missing = [page for page in missing if page in told]
        if whole and missing:
            raise WrongCrawl(f"pages without a visit: {missing[:5]}")
        untold = [page for page in chosen if page in self.given and page not in told]
        if whole and untold:
            raise WrongCrawl(f"pages whose outcome the policy was never told: {untold[:5]}")
        if not visited <= set(chosen):
            raise WrongCrawl("a page was visited that nobody chose")
        again, undisturbed = _Watched(self._policy()), _Told(sent)
        for _ in loop.drive(again, undisturbed, self._book(), self.budget, self.seed):
            pass
        size = min(len(again.chosen), len(watched.chosen))
        if again.chosen[:size] != watched.chosen[:size] or size < len(watched.chosen):
            raise WrongCrawl("an undisturbed cycle that is told the same makes other choices")

    def _judge_crawl(self, shell: _Shell) -> None:
        """Every page that could be visited was, unless a limit or its server forbade it."""
        for page, row in enumerate(self.disk.pages):
            server, host = shell.servers[row.site], self.hosts[row.site]
            if (self.cycle, page) in self.disk.visits or host.limit is not None or host.dead or host.trouble:
                continue
            if server.refusal or server.held_until > self.now or server.robots is None or server.robots.hold_off:
                continue
            if host.login or host.slow or draw(self.seed, row.url, "endless") < 0.02 or self.found.crashes:
                continue
            if shell.machine.lanes.silent(row.site) >= 5 or shell.machine.lanes.backed_off(row.site) > self.now:
                continue
            raise WrongCrawl(f"{row.url} was never visited")


class _Told:
    """A world that answers as the record of a cycle says, batch by batch."""

    def __init__(self, sent: list[Outcomes]) -> None:
        self._sent: Iterator[Outcomes] = iter(sent)

    def visit(self, _picks: Picks) -> Outcomes:
        """The next outcomes."""
        return next(self._sent, NOTHING)
