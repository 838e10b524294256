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

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from recrawl.crawl.hints.pushes import heard
from recrawl.crawl.hints.site_resources import SiteResources
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.load_book import rested
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits.byte_budget import ByteBudget
from recrawl.crawl.visits.decide import Judge
from recrawl.crawl.visits.discovery import Discovery, Fresh
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.prefetch import Prefetch
from recrawl.crawl.visits.reader_pool import Readers
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.redirects import Redirects, recall_aliases
from recrawl.crawl.visits.servers import Server, Servers, noise_table
from recrawl.crawl.visits.verdicts import Flight, VisitResult, told
from recrawl.fetch.http import Client, Request
from recrawl.fetch.lanes import Lanes
from recrawl.model import Answer, Failure, Outcome, Outcomes, Picks, State, Unvisited
from recrawl.record.rows import Batch, CycleRow, unvisited
from recrawl.record.storage import Storage

_QUEUE_BYTES = 64_000_000
"""Bodies that may wait for a reader; beyond that no download is begun."""
_DEAD = 5
"""Failed connections in a row after which a server is left alone for this run."""


class LiveWeb:
    """The engine for one crawl or one cycle."""

    def __init__(
        self,
        repository: Storage,
        options: CrawlOptions,
        cycle: CycleRow,
        *,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[RunCounts], None] = lambda _: None,
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
        self.tally = RunCounts()
        self.bytes = ByteBudget()
        """What may be received; without a limit unless somebody sets one."""
        recall_aliases(repository.store, options.scopes)
        self.servers = self._servers = Servers(repository.store, options, options.agent)
        self._recorder = Recorder(repository, options, self._servers, on_commit=self._on_commit)
        self._client = Client(agent=options.agent, limits=options.limits, clock=options.clock)
        noises = noise_table(options)
        self._fingerprints = [noise.fingerprint for noise in noises]
        config = ReaderConfig(options.rules, tuple(noises), want_text=options.index)
        self._readers = Readers(config, processes=options.readers, seconds=options.parse_seconds)
        self._watching: set[int] = set()
        self._lanes = Lanes(
            delay=options.delay,
            per_server=options.per_server,
            overall_per_second=options.per_second,
            order="depth" if options.depth_first else "breadth",
            max_delay=options.max_delay,
        )
        self._ahead = Prefetch(repository.store, self._lanes, options.clock)
        self.discovery = Discovery(
            repository.store,
            self._servers,
            options.scopes,
            cycle=cycle.id,
            now=cycle.started,
            traps=options.traps,
            on_new=self._on_new,
        )
        self._accepts = lru_cache(maxsize=256)(options.accepts)
        self._flights: dict[int, Flight] = {}
        self._wanted: dict[int, tuple[float, int]] = {}
        self._seen: dict[int, tuple[int, int]] = {}
        """What was found, and what it took; by page."""
        self._exploring = False
        self._chores = SiteResources(
            self._client, self._lanes, self._servers, self.discovery, self._recorder, options, self.tally.warnings
        )
        self._judge = self._make_judge(repository)

    # -- the two jobs --------------------------------------------------------------------------------

    def visit(self, picks: Picks) -> Outcomes:
        """Visit the pages that a policy chose."""
        why = self._store.reason(picks.reason)
        self._seen = {}
        chosen = picks.pages.tolist()
        sites = self._store.sites_of(chosen)
        for page, score in zip(chosen, picks.score.tolist(), strict=True):
            self._wanted[page] = (score, why)
            self._enter(sites[page], page)
        self._run()
        pages = [page for page in chosen if page in self._seen]
        seen = np.array([self._seen[page] for page in pages], np.int64).reshape(-1, 2)
        return Outcomes(np.array(pages, np.int64), seen[:, 0].astype(np.int8), seen[:, 1])

    def explore(self, done: set[int], *, only_rested: bool = False) -> None:
        """Download every page that was found and never visited, and what is found on the way.

        `only_rested` leaves out pages that failed lately.
        """
        self._exploring = True
        waiting = self._store.waiting()
        if only_rested:
            ready = rested(waiting["failures"], waiting["last_try"], self._cycle.started)
            waiting = {name: column[ready] for name, column in waiting.items()}
        for page, site in zip(waiting["id"].tolist(), waiting["site"].tolist(), strict=True):
            if page not in done:
                self._enter(site, page)
        self._run()

    def hear(self) -> None:
        """Take in what is volunteered, before pages are chosen: pushes that wait, sitemaps and feeds that are due."""
        self.tally.warnings += heard(self._store, self.discovery, self._recorder, self._options.clock())
        for server in self._servers:
            if server.live:
                self._chores.hear(server)
        self._run()

    def reconsider(self) -> None:
        """Look again at pages that robots.txt kept us from: it is renewed where it is due, since none of them can.

        Done between cycles, because it changes which pages the next one may choose.
        """
        barred = self._store.barred()
        for site in barred:
            server = self._servers[site]
            if self._chores.robots_due(server):
                self._chores.renew_robots(server)
        self._run()
        for site, pages in barred.items():
            robots = self._servers[site].robots
            free = [(page, had) for page, url, had in pages if robots is not None and robots.allows(url)]
            self._store.set_states(State.LIVE, [page for page, had in free if had])
            self._store.set_states(State.FOUND, [page for page, had in free if not had])

    def take(self, batch: Batch) -> None:
        """Record new pages that came from elsewhere: seeds, pages that have come into scope."""
        self._recorder.batch.pages += batch.pages
        self._recorder.commit()

    def close(self) -> None:
        """Record what is ready and let go of everything."""
        self._recorder.close()
        self._readers.close()
        self._client.close()

    def _make_judge(self, repository: Storage) -> Judge:
        return Judge(
            self,
            self._options,
            self._servers,
            self._recorder,
            self.discovery,
            Redirects(self.discovery, self._options, repository.store),
            cycle=self._cycle.id,
            fingerprints=self._fingerprints,
            request_head=self._client.request_head,
        )

    # -- the loop --------------------------------------------------------------------------------------

    def _run(self) -> None:
        options = self._options
        self._ahead.forget()
        for server in self._servers:  # some may have asked in an earlier run to be left alone until later
            self._leave_if_hopeless(server, options.timer())
        while self._busy() and not self._stop() and options.timer() < self._until:
            self._begin_what_may_begin()
            for ticket, answer in self._client.wait(self._patience()):
                self._arrived(ticket, answer)
            now = options.timer()
            self._readers.pump(now)
            self._watch_readers()
            self._judge.understand(self._readers.collect(now), self._flights)
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
        if self.bytes.used_up:
            for server in self._servers:
                self._leave_out(server, None)
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
            self._judge.understand(self._readers.collect(self._options.timer()), self._flights)

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
        if self._recorder.batch.listed:  # a sitemap was read, so what was looked up ahead may no longer be so
            self._ahead.forget()

    def _begin(self, server: Server, item: int, now: float) -> None:
        if item < 0:
            self._chores.begin(server, item)
            return
        if self._chores.robots_due(server):
            self._lanes.push_front(server.id, item)
            self._chores.ask_robots(server)
            return
        flight = self._flights[item] = self._board(item, server.id)
        refusal = self._refusal(server, flight)
        if refusal is not None:
            self._lanes.skip(server.id, now)
            self._pass_over(flight, refusal)
            return
        self._begun += 1
        server.boarding += flight.state.version < 0 and not flight.boarded
        flight.boarded = True
        flight.asked = self._judge.validators(server, flight)
        self._client.start(
            item,
            Request(
                flight.ask,
                validators=flight.asked,
                allow_private=server.options.allow_private or self._options.allow_private,
                accepts=self._accepts,
            ),
        )

    def _refusal(self, server: Server, flight: Flight) -> Failure | None:
        robots = server.robots
        if server.refused:
            return Failure.ADDRESS
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

    def _board(self, page: int, server: int) -> Flight:
        if page in self._flights:
            return self._flights[page]  # it is asked for again
        score, why = self._wanted.pop(page, (None, None))
        fresh = self.discovery.fresh.get(page)
        if fresh is not None:
            return Flight(page, fresh.url, fresh.site, fresh.depth, 0, unvisited(page), score, why, ask=fresh.url)
        (url, site, depth, listed, state), hints = self._ahead.take(page, server)
        return Flight(page, url, site, depth, listed, state, score, why, ask=url, hints=hints)

    def _arrived(self, ticket: int, answer: Answer) -> None:
        now = self._options.timer()
        if ticket < 0:
            server = self._chores.arrived(ticket, answer, now)
            self._leave_if_hopeless(server, now)
            return
        flight = self._flights[ticket]
        server = self._servers[flight.server]
        self._lanes.answered(server.id, now, answer)
        self.tally.received += answer.received
        self.bytes.add(server.id, answer.received)
        flight.received += answer.received
        self._judge.arrived(server, flight, answer)
        self._leave_if_hopeless(server, now)

    def _leave_if_hopeless(self, server: Server, now: float) -> None:
        """A server that is dead, or wants us to stay away for long, gets no more of this run."""
        asked = self._lanes.backed_off(server.id)
        if asked > max(now + self._options.patience, server.held_until):
            server.held_until, server.dirty = asked, True
        if self._lanes.silent(server.id) >= _DEAD or server.held_until > now + self._options.patience:
            for item in self._lanes.abandon(server.id):
                if item >= 0:
                    self._pass_over(self._board(item, server.id), Failure.HELD_OFF)
        elif self.bytes.closed(server.id):
            self._leave_out(server, (int(Unvisited.HELD), 0))

    def _leave_out(self, server: Server, outcome: tuple[int, int] | None) -> None:
        """Forget what waits for a server, unrecorded; without anything to tell, whoever chose it takes us to stop."""
        for item in self._lanes.abandon(server.id):
            self._wanted.pop(item, None)
            self._flights.pop(item, None)
            if item >= 0 and outcome is not None:
                self._seen[item] = outcome

    def _pass_over(self, flight: Flight, failure: Failure) -> None:
        """A page that is not asked for. In a crawl it may simply stay found; a policy has to be told."""
        if self._exploring and failure in (Failure.HELD_OFF, Failure.LIMIT):
            self._flights.pop(flight.page, None)
            self.tally.failures[failure.value] += 1
        else:
            self._judge.fail(flight, None, failure, self._servers[flight.server].refused)

    # -- what the judge asks of us -------------------------------------------------------------------------

    def submit(self, task: Task) -> None:
        """Let a page be read."""
        self._readers.submit(task)

    def again(self, flight: Flight) -> None:
        """Ask for a page once more."""
        self._lanes.push_front(flight.server, flight.page)

    def feeds(self, server: Server, urls: str) -> None:
        """A page of the server names feeds."""
        self._chores.feeds.named(server, urls)

    def done(self, flight: Flight, verdict: VisitResult) -> None:
        """The page is dealt with."""
        self._servers[flight.server].boarding -= flight.boarded and flight.state.version < 0
        self.tally.outcomes[Outcome(verdict.visit.outcome)] += 1
        if verdict.visit.failure:
            self.tally.failures[verdict.visit.failure] += 1
        if not self._exploring:
            self._seen[flight.page] = (told(verdict.visit), verdict.visit.received)
        self._flights.pop(flight.page, None)
