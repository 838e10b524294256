"""One visit, step by step. The methods of `Journey` stand in the order in which a page passes them.

    enqueue    a chosen or newly found page waits in the lane of its server
    start      its turn has come: checked against robots.txt and the site's limit, then requested
    answered   the answer is here; `decide` returns Submit (parse it), Retry (request again), Unchanged or Done
    parsed     a reader process has parsed it and compared it with the stored version
    _finish    the result is counted, and kept for the policy

`Recorder` gathers the results and commits them in batches. `LiveWeb` runs the event loop that calls these methods.
robots.txt, sitemaps and feeds wait in the same lanes, as negative numbers (`SiteResources`).
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from recrawl.columns import Ints
from recrawl.crawl.hints.site_resources import SiteResources
from recrawl.crawl.login.stage import Logins
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.render.stage import RenderStage
from recrawl.crawl.requisites.fetching import FIRST_TICKET, RequisiteFetches
from recrawl.crawl.requisites.registry import Registry
from recrawl.crawl.state.frontier import lanes_for
from recrawl.crawl.state.known_pages import known_urls
from recrawl.crawl.state.limits import ByteBudget
from recrawl.crawl.state.reindex import index_pages
from recrawl.crawl.state.site_frames import SiteFrames, stored_lines
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits.decide import Decider, Retry, Submit, page_hints, update_server
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.linked_again import LinkedAgain
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.pending import PendingVisit, Prefetch, task_of
from recrawl.crawl.visits.reader_pool import readers_of
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.redirects import ARCHIVED, REDIRECTS, Redirects, recall_aliases
from recrawl.crawl.visits.results import Done, Unchanged, policy_outcome
from recrawl.crawl.visits.servers import Server, Servers
from recrawl.crawl.visits.shared_text import SharedTexts
from recrawl.fetch.access import JARS
from recrawl.fetch.fetcher import Request
from recrawl.model import Answer, Failure, State, Unvisited
from recrawl.record.rows import CycleRow
from recrawl.record.storage import Storage

_MAX_UNREACHED = 5
"""Failed connections in a row after which a server gets no more requests in this run."""


class Journey:
    """The way of all pages of one run, and everything they pass."""

    def __init__(self, repository: Storage, options: CrawlOptions, cycle: CycleRow) -> None:
        self._options, self._repository, store = options, repository, repository.store
        recall_aliases(store, options.scopes)
        self.tally, self.bytes, self.servers = RunCounts(), ByteBudget(), Servers(store, options)
        self.lanes, rank = lanes_for(store, options, cycle)
        self.logins = Logins(repository.folder / JARS, self.lanes, options, self.tally.warnings)
        self.client = options.client(self.logins.of)
        self.readers = readers_of(options)
        self._found: list[tuple[int, int]] = []
        self.discovery = Discovery(
            *(store, self.servers, options.scopes, known_urls(repository, options.rules)),
            cycle=cycle.id,
            now=cycle.started,
            traps=options.traps,
            found=self._found,
            rank=rank,
        )
        self.prefetch = Prefetch(store, self.lanes, options.clock, requisites=any(it.requisites for it in self.servers))
        self.frames = SiteFrames(store, partial(stored_lines, repository, options))
        caches = (self.discovery, self.prefetch, registry := Registry(store, options))
        self.recorder = Recorder(repository, options, self.servers, self.frames, caches=caches)
        self.resources = SiteResources(
            self.client, self.lanes, self.servers, self.discovery, self.recorder, options, self.tally.warnings
        )
        self.requisites = RequisiteFetches(self, store, registry, options)
        self.render = RenderStage(self, repository, registry, options)
        self.linked_again, self.shared_texts = LinkedAgain(store), SharedTexts(store)
        self._redirects = Redirects(self.discovery, options, store)
        self._decider = Decider(options, self.recorder.numbers, cycle.id)
        self._accepts = lru_cache(maxsize=256)(options.accepts)
        self.exploring = False
        """Whether this is a crawl: newly found pages are visited too."""
        self.started = 0
        """Requests for pages so far."""
        self.chosen: dict[int, tuple[float, int]] = {}
        """Score and reason of pages that a policy chose and that wait for their turn."""
        self.outcomes: list[tuple[int, int, int]] = []
        """For the policy: page, outcome and bytes received."""
        self._pending: dict[int, PendingVisit] = {}

    def enqueue(self, site: int, page: int, *, failing: bool = False, first: bool = False) -> None:
        """Let a page wait, `first` before the others of its server; one that failed at its last visit, behind them."""
        self.resources.prepare(self.servers[site])
        (self.lanes.push_last if failing else self.lanes.push_front if first else self.lanes.push)(site, page)

    def enqueue_found(self) -> None:
        """Count the pages that were found since the last call; a crawl visits them too."""
        self.tally.found += len(self._found)
        if self.exploring and self._found:
            for page, site in self._found:
                self.enqueue(site, page)
            for site in {site for _, site in self._found}:
                self.check_server(self.servers[site], self._options.timer())
        self._found.clear()

    def start(self, server: Server, item: int, now: float) -> None:
        """The item's turn has come: request it, or robots.txt first, or nothing if it may not be requested."""
        if self.logins.needed and self.logins.due(server):
            self.logins.start(server, item)
            return
        if FIRST_TICKET < item < 0:
            self.resources.start(server, item)
            return
        if not self._options.outside and self.resources.robots_due(server):
            self.lanes.push_front(server.id, item)
            self.resources.fetch_robots(server)
            return
        if item < 0:
            self.requisites.start(server, item, now)
            return
        visit = self._pending[item] = self._visit_of(item, server.id)
        new = self.exploring and visit.state.version < 0
        refusal = None if self._options.outside else server.refuses(visit.request_url, new=new)
        if refusal is not None:
            self.lanes.skip(server.id, now)
            self._skip(visit, refusal)
            return
        self.started += 1
        self.tally.url = visit.request_url
        server.pending_new += visit.state.version < 0 and not visit.requested
        visit.requested = True
        visit.validators = validators = self._decider.validators(server, visit)
        private, url = server.options.allow_private or self._options.allow_private, visit.request_url
        self.logins.note(server, visit)
        self.client.start(item, Request(url, validators, private, identity=visit.identity, accepts=self._accepts))

    def answered(self, ticket: int, answer: Answer) -> None:
        """A request has ended: decide what its answer means, and act on it."""
        now = self._options.timer()
        if ticket <= FIRST_TICKET:
            server = self.requisites.answered(ticket, answer, now)
            self.bytes.add(server.id, answer.received)
        elif ticket < 0:
            server = self.resources.answered(ticket, answer, now)
        else:
            visit = self._pending[ticket]
            server = self.servers[visit.server]
            self.lanes.answered(server.id, now, answer, visit.page)
            self.tally.received += answer.received
            self.bytes.add(server.id, answer.received)
            visit.received += answer.received
            visit.hides = "x-robots-tag" in answer.fields and self.recorder.hides(visit.state.version, answer)
            if answer.status in ARCHIVED:
                self.recorder.archive(answer, self.client.request_head(visit.request_url, visit.validators))
            unread = self.logins.decide(server, visit, answer, self._decider) if self.logins.needed else None
            moved = unread is None and answer.status in REDIRECTS and answer.failure is None
            redirect = self._redirects.resolve(server, visit, answer, self.recorder.batch) if moved else None
            match unread or self._decider.answered(server, visit, answer, redirect):
                case Submit() as submit:
                    visit.answer, visit.payload = answer, submit.payload
                    head = self.client.request_head(visit.request_url, visit.validators, identity=visit.identity)
                    stored = self.recorder.location(visit.state.version) if visit.state.version >= 0 else None
                    counted = self.frames.wants(server.id, visit.page, visit.url)
                    task = task_of(visit, answer, server, head, stored, submit.same_noise, counted)
                    if not self.render.takes(server, task):
                        self.readers.submit(task)
                case Retry(url, identity, login):
                    refused = url == visit.request_url and not identity and not login
                    visit.request_again(answer, url, identity=identity, login=login)
                    (self.lanes.push_last if refused else self.lanes.push_front)(server.id, visit.page)
                case Done() | Unchanged() as done:
                    if visit.state.digest and isinstance(done, Unchanged):
                        self._is_shared(visit, visit.state.digest, "")
                        self.requisites.page_unchanged(visit, server)
                    self._finish(visit, done)
        self.enqueue_found()
        self.check_server(server, now)

    def parsed(self, readings: list[Reading]) -> None:
        """Record parsed pages."""
        readings = self.requisites.parsed(readings)
        if not readings:
            return
        for reading, linked in zip(readings, self.discovery.linked(readings), strict=True):
            visit = self._pending[reading.ticket]
            self.frames.returned(visit.server, visit.page)
            visit.browsed = self.render.take(reading.ticket)
            if reading.failure:
                self._fail(visit, visit.answer, Failure(reading.failure), reading.detail)
            else:
                self._record_version(visit, reading, linked)
        self.enqueue_found()

    def _record_version(self, visit: PendingVisit, reading: Reading, linked: Ints) -> None:
        """Record a new version with its links and hints; `linked` is what `look_up` returned for the links."""
        server = self.servers[visit.server]
        assert visit.answer is not None
        if self._is_shared(visit, reading.digest, reading.title):
            self._fail(visit, visit.answer, Failure.SHARED_TEXT, f"'{reading.title}', as on other pages of the site")
            return
        self.render.learn(server, reading)
        if self._decider.repeats(server, visit, reading):
            self._finish(visit, self._decider.unchanged(server, visit, visit.answer))
            return
        update_server(server, visit, reading)
        links, new = np.zeros(0, np.int32), 0
        if reading.follow and reading.keys:
            at, batch, depth = visit.answer.at, self.recorder.batch, visit.depth + 1
            links, new = self.discovery.links(linked, reading, parent=visit.page, depth=depth, at=at, batch=batch)
            self.linked_again.note(visit, links)
        if visit.state.state == State.MOVED:
            self._redirects.returned(visit)
        if reading.feeds:
            self.resources.feeds.register(server, reading.feeds)
        self.recorder.batch.hints += page_hints(visit, reading)
        change = self.frames.judge(server.id, visit.page, reading, visit.state.counters)
        done = self._decider.parsed(server, visit, reading, new, change)
        self.frames.note(server.id, visit.page, visit.url, reading)
        self.recorder.add_version(visit, done, reading, links, server.origin)
        self.requisites.page_read(visit.page, server, reading)
        self._finish(visit, done)

    def _is_shared(self, visit: PendingVisit, digest: bytes, title: str) -> bool:
        """Whether this text is suddenly that of many pages; those recorded with it get back what search showed."""
        texts, before = self.shared_texts, visit.state.digest
        pages = texts.refuses(visit.server, visit.page, digest, before, self._options.clock, title)
        if not pages and not texts.freed:
            return False
        if former := [page for page in pages if page != visit.page] + texts.take_freed():
            self.recorder.commit()
            index_pages(self._repository, self._options, former)
        return bool(pages)

    def _fail(self, visit: PendingVisit, answer: Answer | None, failure: Failure, detail: str) -> None:
        self._finish(visit, self._decider.failed(visit, answer, failure, detail, self._options.clock()))

    def _finish(self, visit: PendingVisit, done: Done | Unchanged) -> None:
        """The visit is over: record it, unless its version was, count it, and keep its outcome for the policy."""
        row = done.visit
        if isinstance(done, Unchanged):
            self.recorder.add_unchanged(done)
        elif done.version is None:
            self.recorder.add(done)
        if visit.browsed is not None:
            self.recorder.add_screenshot(visit, visit.browsed, row, new=not isinstance(done, Unchanged))
        if visit.requested and visit.state.version < 0:
            self.servers[visit.server].pending_new -= 1
        self.tally.count(row.outcome, row.failure)
        if not self.exploring:
            self.outcomes.append((visit.page, policy_outcome(row), row.received))
        self._pending.pop(visit.page, None)

    # -- pages that are not requested --------------------------------------------------------------------------

    def check_server(self, server: Server, now: float) -> None:
        """Empty the lane of a server that cannot be reached, asks for a long pause, or has used up its bytes."""
        backed_off = self.lanes.backed_off(server.id)
        if backed_off > max(now + self._options.patience, server.held_until):
            server.held_until, server.dirty = backed_off, True
        if self.lanes.silent(server.id) >= _MAX_UNREACHED or server.held_until > now + self._options.patience:
            for item in self.lanes.abandon(server.id):
                if item >= 0:
                    self._leave(self._visit_of(item, server.id))
        elif self.bytes.closed(server.id):
            self.drop_queue(server, (int(Unvisited.HELD), 0))

    def drop_queue(self, server: Server, outcome: tuple[int, int] | None) -> None:
        """Empty a server's lane, unrecorded. Without an outcome for its pages, the policy's cycle ends."""
        for item in self.lanes.abandon(server.id):
            self.chosen.pop(item, None)
            self._pending.pop(item, None)
            if item >= 0 and outcome is not None:
                self.outcomes.append((item, *outcome))

    def _leave(self, visit: PendingVisit) -> None:
        """A page of a server that gets no more requests. If it was refused before, this counts as its failure: so the
        next run requests the others first."""
        if visit.retries:
            self._finish(visit, self._decider.refused(visit))
        else:
            self._skip(visit, Failure.HELD_OFF)

    def _skip(self, visit: PendingVisit, failure: Failure) -> None:
        """Do not request a page. A crawl may leave it for the next one; a policy needs an outcome."""
        if self.exploring and failure in (Failure.HELD_OFF, Failure.LIMIT):
            self._pending.pop(visit.page, None)
            self.tally.failures[failure.value] += 1
        else:
            self._fail(visit, None, failure, self.servers[visit.server].cause)

    def _visit_of(self, page: int, server: int) -> PendingVisit:
        """The visit of a page, from the store's row unless it is under way already."""
        if page in self._pending:
            return self._pending[page]
        return self.prefetch.visit(page, server, self.discovery.fresh.get(page), self.chosen.pop(page, (None, None)))
