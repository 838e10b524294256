"""The live web as a world that answers visits: one thread, one loop, nothing that blocks.

    lanes     say which page of which server may be asked for now
    client    downloads
    readers   parse what is new
    batch     gathers what is to be recorded, and is committed by size and by time

`visit` answers a policy's picks (a refresh cycle), `explore` downloads what was found and never visited (a crawl).
Both end when nothing is left to do, when `stop` says so, or when the time is up. What was recorded stays; what was in
flight is forgotten, and done again by whoever resumes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recrawl.compare.digest import of_payload
from recrawl.compare.validators import learn, usable
from recrawl.engine import verdicts
from recrawl.engine.chores import Chores
from recrawl.engine.discovery import Discovery, Fresh
from recrawl.engine.options import Options
from recrawl.engine.readers import Readers
from recrawl.engine.recorder import Recorder
from recrawl.engine.redirects import Redirects, recall_aliases
from recrawl.engine.servers import Server, Servers, noise_table
from recrawl.engine.tasks import ReaderConfig, Reading, Task
from recrawl.engine.verdicts import Flight
from recrawl.fetch.http import Client, Request
from recrawl.fetch.lanes import Lanes
from recrawl.model import Answer, Failure, Outcome, Outcomes, Picks, State, Validators
from recrawl.record.repository import Repository
from recrawl.record.rows import Batch, CycleRow, unvisited

_QUEUE_BYTES = 64_000_000
"""Bodies that may wait for a reader; beyond that no download is begun."""
_DEAD = 5
"""Failed connections in a row after which a server is left alone for this run."""


@dataclass(slots=True)
class Tally:
    """What a run has done so far, for progress and for the summary."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    received: int = 0
    found: int = 0
    waiting: int = 0

    @property
    def visits(self) -> int:
        """All visits, whatever came of them."""
        return sum(self.outcomes.values())


class Live:
    """The engine for one crawl or one cycle."""

    def __init__(
        self,
        repository: Repository,
        options: Options,
        cycle: CycleRow,
        *,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[Tally], None] = lambda _: None,
        until: float = float("inf"),
        release: Callable[[int], float] | None = None,
    ) -> None:
        self._options = options
        self._cycle = cycle
        self._stop = stop
        self._progress = progress
        self._until = until
        self._release = release
        self._begun = 0
        self._store = repository.store
        self.tally = Tally()
        recall_aliases(repository.store, options.scopes)
        self._servers = Servers(repository.store, options, options.agent)
        self._recorder = Recorder(repository, options, self._servers, on_commit=self._on_commit)
        self._client = Client(agent=options.agent, limits=options.limits, clock=options.clock)
        self._noises = noise_table(options)
        self._fingerprints = [noise.fingerprint for noise in self._noises]
        config = ReaderConfig(options.rules, tuple(self._noises), want_text=options.index)
        self._readers = Readers(config, processes=options.readers, seconds=options.parse_seconds)
        self._watching: set[int] = set()
        self._lanes = Lanes(
            delay=options.delay,
            per_server=options.per_server,
            overall_per_second=options.per_second,
            order="depth" if options.depth_first else "breadth",
            max_delay=options.max_delay,
        )
        self.discovery = Discovery(
            repository.store,
            self._servers,
            options.scopes,
            cycle=cycle.id,
            now=cycle.started,
            traps=options.traps,
            on_new=self._on_new,
        )
        self._chores = Chores(self._client, self._lanes, self._servers, self.discovery, self._recorder, options)
        self._redirects = Redirects(self.discovery, options, repository.store)
        self._flights: dict[int, Flight] = {}
        self._wanted: dict[int, tuple[float, int]] = {}
        self._seen: dict[int, int] = {}
        self._exploring = False

    # -- the two jobs --------------------------------------------------------------------------------

    def visit(self, picks: Picks) -> Outcomes:
        """Visit the pages that a policy chose."""
        why = self._store.reason(picks.reason)
        self._seen = {}
        for page, score in zip(picks.pages.tolist(), picks.score.tolist(), strict=True):
            self._wanted[page] = (score, why)
            self._enter(self._store.site_of(page), page)
        self._run()
        pages = [page for page in picks.pages.tolist() if page in self._seen]
        return Outcomes(np.array(pages, np.int64), np.array([self._seen[p] for p in pages], np.int8))

    def explore(self, done: set[int]) -> None:
        """Download every page that was found and never visited, and what is found on the way."""
        self._recorder.commit()  # seeds that were just planted
        self._exploring = True
        waiting = self._store.waiting()
        for page, site in zip(waiting["id"].tolist(), waiting["site"].tolist(), strict=True):
            if page not in done:
                self._enter(site, page)
        self._run()

    def take(self, batch: Batch) -> None:
        """Record new pages that came from elsewhere: seeds, imports."""
        self._recorder.batch.pages += batch.pages

    def site_limits(self) -> dict[int, int | None]:
        """How many pages each site may have, None for any number."""
        return {number: self._servers[number].options.limit for number in range(len(self._servers))}

    def close(self) -> None:
        """Record what is ready and let go of everything."""
        self._recorder.close()
        self._readers.close()
        self._client.close()

    # -- the loop --------------------------------------------------------------------------------------

    def _run(self) -> None:
        options = self._options
        while self._busy() and not self._stop() and options.timer() < self._until:
            self._begin_what_may_begin()
            for ticket, answer in self._client.wait(self._patience()):
                self._arrived(ticket, answer)
            now = options.timer()
            self._readers.pump(now)
            self._watch_readers()
            self._understand(self._readers.collect(now))
            self._readers.pump(now)
            self._recorder.commit_if_due(now)
            self.tally.waiting = len(self._lanes)
            self._progress(self.tally)
        self._finish_reading()
        self._recorder.commit()

    def _busy(self) -> bool:
        return bool(len(self._lanes) or self._client.busy or self._readers.pending)

    def _begin_what_may_begin(self) -> None:
        now = self._options.timer()
        while self._client.room and self._readers.pending_bytes < _QUEUE_BYTES:
            if self._release is not None and self._release(self._begun) > now:
                return
            turn = self._lanes.pop(now)
            if turn is None:
                return
            self._begin(self._servers[turn[0]], turn[1], now)

    def _patience(self) -> float:
        """How long the client may wait for something to happen."""
        now = self._options.timer()
        times = [1.0, self._until - now, self._recorder.due(now)]
        wait = self._lanes.wait(now)
        if wait is not None and self._client.room and self._readers.pending_bytes < _QUEUE_BYTES:
            times.append(wait)
            if self._release is not None:
                times[-1] = max(wait, self._release(self._begun) - now)
        deadline = self._readers.deadline(now)
        if deadline is not None:
            times.append(deadline)
        return max(0.0, min(times))

    def _finish_reading(self) -> None:
        """Downloads that have arrived are worth keeping, even when we are told to stop."""
        while self._readers.pending:
            now = self._options.timer()
            self._readers.pump(now)
            self._watch_readers()
            self._client.wait(min(0.2, self._readers.deadline(now) or 0.0))
            self._understand(self._readers.collect(self._options.timer()))

    def _watch_readers(self) -> None:
        current = {connection.fileno() for connection in self._readers.connections}
        for fd in self._watching - current:
            self._client.unwatch(fd)
        for fd in current - self._watching:
            self._client.watch(fd)
        self._watching = current

    # -- a page's way through -------------------------------------------------------------------------------

    def _enter(self, site: int, page: int) -> None:
        server = self._servers[site]
        self._chores.greet(server)
        self._lanes.push(site, page)

    def _on_new(self, page: int, fresh: Fresh) -> None:
        self.tally.found += 1
        if self._exploring:
            self._enter(fresh.site, page)

    def _on_commit(self) -> None:
        self.discovery.fresh.clear()  # from now on the store knows them

    def _begin(self, server: Server, item: int, now: float) -> None:
        if item < 0:
            self._chores.begin(server, item)
            return
        if self._chores.robots_due(server):
            self._lanes.push_front(server.id, item)
            self._chores.ask_robots(server)
            return
        flight = self._flights.get(item) or self._board(item)
        self._flights[item] = flight
        refusal = self._refusal(server, flight)
        if refusal is not None:
            self._lanes.skip(server.id, now)
            self._fail(flight, None, refusal, "")
            return
        self._begun += 1
        server.boarding += flight.state.version < 0 and not flight.boarded
        flight.boarded = True
        flight.asked = self._validators(server, flight)
        self._client.start(
            item,
            Request(
                flight.ask,
                validators=flight.asked,
                allow_private=server.options.allow_private or self._options.allow_private,
                accepts=self._options.accepts,
            ),
        )

    def _refusal(self, server: Server, flight: Flight) -> Failure | None:
        robots = server.robots
        if robots is None or robots.hold_off:
            return Failure.ROBOTS_UNREACHABLE
        if not robots.allows(flight.ask):
            return Failure.ROBOTS
        limit = server.options.limit
        if (
            self._exploring
            and limit is not None
            and flight.state.version < 0
            and server.live + server.boarding >= limit
        ):
            return Failure.LIMIT
        return None

    def _board(self, page: int) -> Flight:
        score, why = self._wanted.pop(page, (None, None))
        fresh = self.discovery.fresh.get(page)
        if fresh is not None:
            return Flight(page, fresh.url, fresh.site, fresh.depth, 0, unvisited(page), score, why, ask=fresh.url)
        url, site, depth, listed, state = self._store.page(page)
        return Flight(page, url, site, depth, listed, state, score, why, ask=url)

    def _validators(self, server: Server, flight: Flight) -> Validators | None:
        state = flight.state
        held = Validators(state.etag, state.modified)
        # A stored digest that was made with another noise filter must be made again, so the body is needed.
        if state.version < 0 or not held or flight.trail or state.noise != self._fingerprint(server):
            return None
        return usable(held, server.trust, state.quiet) or None

    def _fingerprint(self, server: Server) -> bytes:
        return self._fingerprints[server.noise]

    def _arrived(self, ticket: int, answer: Answer) -> None:
        now = self._options.timer()
        if ticket < 0:
            self._chores.arrived(ticket, answer, now)
            return
        flight = self._flights[ticket]
        server = self._servers[flight.server]
        silent = answer.failure in (Failure.CONNECT, Failure.TIMEOUT, Failure.DNS, Failure.TLS)
        self._lanes.done(
            server.id,
            now,
            status=answer.status,
            failed=silent,
            retry_after=answer.header("retry-after"),
            seconds=answer.seconds,
        )
        self.tally.received += answer.received
        self._judge(server, flight, answer)
        self._leave_if_hopeless(server, now)

    def _judge(self, server: Server, flight: Flight, answer: Answer) -> None:
        status = answer.status
        if answer.failure is not None:
            self._fail(flight, answer, answer.failure, answer.detail)
        elif status in (429, 503) and flight.attempts < self._options.retries:
            flight.attempts += 1
            self._lanes.push_front(server.id, flight.page)
        elif status == 304 and flight.asked:
            self._unchanged(server, flight, answer)
        elif status == 200:
            self._body(server, flight, answer)
        elif status in (301, 302, 303, 307, 308):
            self._redirected(server, flight, answer)
        elif status in (404, 410) and not flight.trail:
            self._missing(server, flight, answer, target=-1)
        else:
            self._fail(flight, answer, _failure_of(status), f"HTTP {status}")

    def _body(self, server: Server, flight: Flight, answer: Answer) -> None:
        flight.answer, flight.payload = answer, of_payload(answer.body)
        state = flight.state
        same_noise = state.noise == self._fingerprint(server)
        if state.version >= 0 and state.payload == flight.payload and same_noise:
            self._unchanged(server, flight, answer)
            return
        before = None
        if state.version >= 0:
            before = self._recorder.place(state.version)
        self._readers.submit(
            Task(
                ticket=flight.page,
                url=flight.url,
                at=answer.at,
                ip=answer.ip,
                status=answer.status,
                headers=answer.headers,
                request=self._client.request_head(flight.ask, flight.asked),
                body=answer.body,
                payload=flight.payload,
                noise=server.noise,
                digest=state.digest,
                before=before,
                same_noise=same_noise,
            )
        )

    def _understand(self, readings: list[Reading]) -> None:
        """Record what was read. All links are looked up at once: one by one they would cost four times as much."""
        if readings:
            links = [np.frombuffer(reading.keys, np.int64) for reading in readings]
            pages = self.discovery.look_up(np.concatenate(links))
            ends = np.cumsum([len(keys) for keys in links])[:-1]
            for reading, known in zip(readings, np.split(pages, ends), strict=True):
                self._understood(reading, known)

    def _understood(self, reading: Reading, known: NDArray[np.int64]) -> None:
        flight = self._flights[reading.ticket]
        server = self._servers[flight.server]
        answer = flight.answer
        assert answer is not None
        if reading.failure:
            self._fail(flight, answer, Failure(reading.failure), reading.detail)
            return
        self._learn_trust(server, flight, answer, text_changed=reading.changed)
        targets, new = np.zeros(0, np.int32), 0
        if reading.follow and reading.keys:
            targets, new = self.discovery.links(
                known,
                reading,
                parent=flight.page,
                depth=flight.depth + 1,
                at=answer.at,
                batch=self._recorder.batch,
            )
        if not flight.trail and server.habits.contradict(flight.url):
            server.dirty = True
        version = self._recorder.next_version()
        verdict = verdicts.read(
            flight,
            self._recorder.next_visit(),
            self._cycle.id,
            reading,
            self._fingerprint(server),
            version,
            new,
        )
        self._count_page(server, flight, State.LIVE)
        self._recorder.page_read(flight, verdict, reading, targets, server.origin)
        self._done(flight, verdict)

    def _unchanged(self, server: Server, flight: Flight, answer: Answer) -> None:
        self._learn_trust(server, flight, answer, text_changed=False)
        verdict = verdicts.unchanged(flight, self._recorder.next_visit(), self._cycle.id, answer)
        self._count_page(server, flight, State.LIVE)
        self._recorder.put(verdict)
        self._done(flight, verdict)

    def _missing(self, server: Server, flight: Flight, answer: Answer, *, target: int) -> None:
        verdict = verdicts.missing(
            flight,
            self._recorder.next_visit(),
            self._cycle.id,
            answer,
            target=target,
            vanishing=server.vanishing(),
            confirm_seconds=self._options.confirm_seconds,
        )
        self._count_page(server, flight, State(verdict.state.state))
        self._recorder.put(verdict)
        self._done(flight, verdict)

    def _redirected(self, server: Server, flight: Flight, answer: Answer) -> None:
        step = self._redirects.judge(server, flight, answer, self._recorder.batch)
        if step.failure is not None:
            self._fail(flight, answer, step.failure, step.detail)
        elif step.target >= 0:
            self._missing(server, flight, answer, target=step.target)
        else:
            flight.trail.append(flight.ask)
            flight.ask = step.follow
            self._lanes.push_front(server.id, flight.page)

    def _fail(self, flight: Flight, answer: Answer | None, failure: Failure, detail: str) -> None:
        if failure in (Failure.HELD_OFF, Failure.LIMIT, Failure.ROBOTS_UNREACHABLE) and self._exploring:
            self._flights.pop(flight.page, None)  # it stays found, for the next crawl
            self.tally.failures[failure.value] += 1
            return
        verdict = verdicts.failed(
            flight,
            self._recorder.next_visit(),
            self._cycle.id,
            self._options.clock(),
            answer,
            failure,
            detail,
        )
        self._recorder.put(verdict)
        self._done(flight, verdict)

    def _done(self, flight: Flight, verdict: verdicts.Verdict) -> None:
        outcome = Outcome(verdict.visit.outcome)
        self._servers[flight.server].boarding -= flight.boarded and flight.state.version < 0
        self.tally.outcomes[outcome] += 1
        if verdict.visit.failure:
            self.tally.failures[verdict.visit.failure] += 1
        if not self._exploring:
            self._seen[flight.page] = int(outcome)
        self._flights.pop(flight.page, None)

    # -- what is learned of a server ---------------------------------------------------------------------------

    def _learn_trust(self, server: Server, flight: Flight, answer: Answer, *, text_changed: bool) -> None:
        state = flight.state
        if state.version < 0 and not answer.header("last-modified"):
            return
        trust = learn(
            server.trust,
            before=Validators(state.etag, state.modified),
            after=Validators(answer.header("etag"), answer.header("last-modified")),
            answered_at=answer.at,
            server_date=answer.header("date"),
            text_changed=text_changed,
            status=answer.status,
        )
        if trust != server.trust:
            server.trust, server.dirty = trust, True

    def _count_page(self, server: Server, flight: Flight, after: State) -> None:
        """Keep the numbers of live and missing pages, which the brake on deletion looks at."""
        before = flight.state.state
        server.live += (after == State.LIVE) - (before == State.LIVE)
        server.missing += (after == State.MISSING) - (before == State.MISSING)

    def _leave_if_hopeless(self, server: Server, now: float) -> None:
        """A server that is dead, or wants us to stay away for long, gets no more of this run."""
        if self._lanes.silent(server.id) < _DEAD and self._lanes.held(server.id) - now <= self._options.patience:
            return
        for item in self._lanes.abandon(server.id):
            if item >= 0:
                self._fail(
                    self._flights.get(item) or self._board(item),
                    None,
                    Failure.HELD_OFF,
                    "the server does not answer or asks us to stay away",
                )


def _failure_of(status: int) -> Failure:
    if status == 429:
        return Failure.RATE_LIMITED
    if status >= 500:
        return Failure.SERVER_ERROR
    return Failure.CLIENT_ERROR if 400 <= status < 500 else Failure.STATUS
