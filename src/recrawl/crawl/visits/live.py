"""The live shell of the machine of visits, and as such the `World` of a cycle. One thread, nothing blocks.

`VisitMachine` decides; this module carries out what it says, with libcurl, reader processes, the browser and the store,
and tells it what came of that. `visit` answers a policy's picks (a refresh cycle), `explore` downloads the pages that
were found and never visited (a crawl). Both end when nothing is left to do, when `stop` returns True, or when the time
is up. Recorded visits stay; visits under way are dropped, and repeated when the cycle is resumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from recrawl.child_processes import return_freed_memory
from recrawl.columns import Int32s
from recrawl.crawl.hints import SiteFiles, pack_hints, process_pushes
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.requisites.recording import RequisiteRecorder
from recrawl.crawl.requisites.registry import Registry
from recrawl.crawl.state.copies import absent_addresses, keep_absent_addresses, known_parameters
from recrawl.crawl.state.frontier import lanes_for
from recrawl.crawl.state.known_pages import known_urls
from recrawl.crawl.state.load_book import retry_allowed
from recrawl.crawl.state.reindex import index_pages
from recrawl.crawl.state.site_frames import SiteFrames, stored_lines
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits import machine as m
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.messages import Reading, Scan
from recrawl.crawl.visits.reader_pool import absent_task, readers_of, task_of
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.redirects import Redirects, keep_aliases, recall_aliases
from recrawl.crawl.visits.results import Done, Unchanged, VisitRows, page_hints, policy_outcome
from recrawl.crawl.visits.servers import Server, Servers, noise_table
from recrawl.crawl.visits.shared_text import load_shared_texts, save_shared_texts
from recrawl.discover.urls import key
from recrawl.fetch.access import JARS, Accesses
from recrawl.fetch.fetcher import bounded_answer
from recrawl.fetch.lanes import Lanes
from recrawl.learn.copies.sketch import near
from recrawl.loop import enough
from recrawl.model import Answer, Outcome, Outcomes, Picks, State
from recrawl.record.archive import Place
from recrawl.record.rows import Batch, CycleRow, OutgoingRequisite, PageRow, unvisited
from recrawl.record.storage import Storage
from recrawl.record.store import Store
from recrawl.record.warc import read_body

if TYPE_CHECKING:
    from recrawl.crawl.login.stage import Logins
    from recrawl.crawl.render.stage import Browser
    from recrawl.crawl.visits.reader_pool import Readers


# --------------------------------------------------------------------------------------------------------------------
# Store rows of pages, read before their turn comes.
#
# Rows are read 100 pages at a time, since reading them one by one costs three times as much: code that changes rows
# other than by a visit to the page must call `forget`.


_BATCH = 100
"""Pages of one server read at once."""
_MAX_ROWS = 20_000
"""Rows kept for all servers together; beyond that, rows are read one by one."""


class Prefetch:
    """Store rows of pages in the order in which the lanes will request them."""

    def __init__(self, store: Store, lanes: Lanes, clock: Callable[[], float], *, requisites: bool = False) -> None:
        """`requisites` tells whether the run keeps those of any site."""
        self._store = store
        self._lanes = lanes
        self._clock = clock
        self._requisites = requisites
        self._rows: dict[int, PageRow] = {}
        self._hints: dict[int, int] = {}
        self._needs: dict[int, tuple[int, bytes]] = {}

    def take(self, page: int, server: int) -> tuple[PageRow, int]:
        """The row and the packed hints of a page; also reads those of the pages queued behind it."""
        row = self._rows.pop(page, None)
        if row is None:
            upcoming = self._lanes.upcoming(server, _BATCH) if len(self._rows) < _MAX_ROWS else []
            pages = [page, *(item for item in upcoming if isinstance(item, int))]
            self._rows.update(self._store.pages.get_many(pages))
            self._hints.update(pack_hints(self._store, pages, self._clock()))
            if self._requisites:
                self._needs.update(self._store.requisites.of_pages(pages))
            row = self._rows.pop(page)
        return row, self._hints.pop(page, 0)

    def needs(self, page: int) -> tuple[int, bytes] | None:
        """Level and packed numbers of the requisites of a page whose row was taken."""
        return self._needs.pop(page, None)

    def forget(self) -> None:
        """Drop all rows: the store has changed."""
        self._rows.clear()
        self._hints.clear()
        self._needs.clear()

    def committed(self, batch: Batch) -> None:
        """Drop rows that a commit made outdated: a sitemap changes rows of pages that were not visited."""
        if batch.listed:
            self.forget()


# --------------------------------------------------------------------------------------------------------------------
# Pages that were gone or had moved, and to which a page has begun to link: they may be back.


class LinkedAgain:
    """Collects such pages during a run; they become visitable between two cycles.

    A link that was there before says nothing: pages keep links to what is gone for years.
    """

    def __init__(self, store: Store) -> None:
        self._links = store.links
        self._absent = store.pages.absent()["id"]
        self.pages: set[int] = set()

    def note(self, visit: PageVisit, links: Int32s) -> None:
        """A page was read that links to these pages."""
        if not len(self._absent) or not len(links):
            return
        place = np.minimum(np.searchsorted(self._absent, links), len(self._absent) - 1)
        absent = set(links[self._absent[place] == links].tolist())
        if absent and visit.state.state not in (State.GONE, State.MOVED):  # else all its links are there again
            packed = self._links.of_pages([visit.page]).get(visit.page, b"")
            absent -= set(np.frombuffer(packed, "<i4").tolist())
        self.pages |= absent


# --------------------------------------------------------------------------------------------------------------------
# Visits to copies: what they find is told of the page that they are copies of, and told once.
#
# A page is a copy from the end of the run that has shown it (`crawl.state.copies`), or from its first visit if that
# finds what another new page of its site shows, or the page that it claims as its canonical address. A copy that no
# longer agrees with its page is a page of its own again, at once: what was found is told of it.


_MOST_TEXTS = 50_000
"""Texts and sketches of new pages that are kept; the oldest is forgotten."""


class _Shown(NamedTuple):
    """What a page shows."""

    digest: bytes
    sketch: bytes

    def agrees(self, other: _Shown) -> bool:
        """Whether both pages show nearly the same."""
        return self.digest == other.digest or near(self.sketch, other.sketch)


class CopyWatch:
    """The copies among the pages of a run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first: dict[tuple[int, bytes], int] = {}
        """From the sites, texts and sketches of new pages to the key of the first URL with each."""
        self._unstored: dict[int, _Shown] = {}
        """What pages show since the last commit, by the key of their URL."""

    def committed(self, _batch: Batch) -> None:
        """Forget what the store has now."""
        self._unstored.clear()

    def told(self, visit: PageVisit, reading: Reading, done: Done) -> Done:
        """The result of a visit that has read a page, marked if it is told of another page."""
        own, shown = key(visit.url), _Shown(reading.digest, reading.sketch or visit.state.sketch or b"")
        self._unstored[own] = shown
        outcome = done.visit.outcome
        if visit.state.same_as:
            if self._agrees(shown, visit.state.same_as):
                return _copy(done, visit.state.same_as)
            return done._replace(state=done.state._replace(same_as=0))
        if outcome != Outcome.NEW or not reading.sketch:
            return done
        claimed = done.state.claim
        if claimed and claimed != own and self._agrees(shown, claimed):
            return _copy(done, claimed)
        texts = [(visit.server, shows) for shows in (reading.digest, reading.sketch)]
        first = next((self._first[shows] for shows in texts if shows in self._first), own)
        for shows in texts:
            self._first.setdefault(shows, first)
            if len(self._first) > _MOST_TEXTS:
                self._first.pop(next(iter(self._first)))
        return done if first == own else _copy(done, first)

    def _agrees(self, shown: _Shown, other: int) -> bool:
        """Whether a page shows what the page of another URL does, if that is stored."""
        known = self._unstored.get(other)
        if known is None and (page := self._store.pages.number(other)) is not None:
            state = self._store.pages.get(page).state
            known = _Shown(state.digest, state.sketch or b"") if state.digest else None
        return known is not None and shown.agrees(known)


def _copy(done: Done, same_as: int) -> Done:
    return done._replace(visit=done.visit._replace(copy=1), state=done.state._replace(same_as=same_as))


# --------------------------------------------------------------------------------------------------------------------


_LOOK_SECONDS = 1.0
"""Time between two looks for pages from elsewhere."""


class More(Protocol):
    """Adds pages from elsewhere to a crawl; `idle`: nothing is left to visit, so it waits for some.

    False if there will be no more.
    """

    def __call__(self, *, idle: bool) -> bool: ...


class LiveCrawl:
    """One crawl or cycle on the live web."""

    def __init__(
        self,
        repository: Storage,
        options: CrawlOptions,
        cycle: CycleRow,
        *,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[RunCounts], None] = lambda _: None,
        until: float = math.inf,
        release: Callable[[int], float] | None = None,
    ) -> None:
        self._repository, self._options, self._cycle = repository, options, cycle
        self._stop, self._progress, self._until = stop, progress, until
        store = self._store = repository.store
        recall_aliases(store, options.scopes)
        self.tally, self.servers = RunCounts(), Servers(store, options)
        lanes, rank = lanes_for(store, options, cycle)
        self._accesses = Accesses(options.access, repository.folder / JARS)
        self._client, self._readers = options.client(self._accesses.of), readers_of(options)
        self._found: list[tuple[int, int]] = []
        self.discovery = Discovery(
            *(store, self.servers, options.scopes, known_urls(repository, options.rules)),
            cycle=cycle.id,
            now=cycle.started,
            traps=options.traps,
            parameters=known_parameters(store, options.keep_parameters),
            found=self._found,
            rank=rank,
        )
        keeps = any(server.requisites for server in self.servers)
        self._prefetch = Prefetch(store, lanes, options.clock, requisites=keeps)
        self._frames = SiteFrames(store, partial(stored_lines, repository, options))
        registry = Registry(store, options)
        self._copies = CopyWatch(store)
        caches = (self.discovery, self._prefetch, self._copies, registry, self)
        self.recorder = Recorder(repository, options, self.servers, self._frames, self.tally, caches=caches)
        self._rows = VisitRows(options, self.recorder.numbers, cycle.id)
        self._files = SiteFiles(self.discovery, self.recorder, options, self.tally.warnings)
        self._requisites = RequisiteRecorder(store, registry, self.recorder, self._client, options)
        self._redirects = Redirects(self.discovery, options, store)
        self.linked_again = LinkedAgain(store)
        self._logins: Logins | None = None
        self._browser: Browser | None = None
        if any(rule.login_url for rule in options.access):
            from recrawl.crawl.login.stage import Logins  # lazy: most runs log in nowhere

            self._logins = Logins(self._accesses, options)
        if options.browses:
            from recrawl.crawl.render.stage import Browser  # lazy: most runs load no page in a browser

            self._browser = Browser(store, self.servers, options)
        self.machine = m.VisitMachine(
            options,
            lanes,
            fingerprints=[noise.fingerprint for noise in noise_table(options)],
            shared_texts=load_shared_texts(store),
            absent=absent_addresses(store),
            accesses=self._accesses if self._logins is not None else None,
            release=release,
            checks=options.checks,
        )
        self._requests: dict[int, m.Thing] = {}
        self._reads: dict[int, m.Thing] = {}
        self._last = 0
        self._watched: set[int] = set()
        self._more: More | None = None
        self._look_at = 0.0
        self._do: dict[type[m.MachineAction], Callable[[Any], m.MachineEvent | None]] = {
            m.ReadRow: self._read_row,
            m.SendRequest: self._send_request,
            m.ArchiveAnswer: self._archive_answer,
            m.FindTarget: self._find_target,
            m.KeepAliases: self._keep_aliases,
            m.ParseThing: self._parse_thing,
            m.RenderPage: self._render_page,
            m.AnswerBrowser: self._answer_browser,
            m.AnswerFromArchive: self._answer_from_archive,
            m.FollowWanted: self._follow_wanted,
            m.MakeLogin: self._make_login,
            m.ListFeeds: self._list_feeds,
            m.ReadSitemap: self._read_sitemap,
            m.ReadFeed: self._read_feed,
            m.RecordListing: self._record_listing,
            m.CompareRequisite: self._compare_requisite,
            m.RecordRequisite: self._record_requisite,
            m.RecordScan: self._record_scan,
            m.RecordVisit: self._record_visit,
            m.LeavePage: self._leave_page,
            m.WarnUser: self._warn_user,
            m.KeepBrakes: self._keep_brakes,
            m.KeepAbsent: self._keep_absent,
            m.ReindexPages: self._reindex_pages,
            m.CommitBatch: self._commit_batch,
            m.CommitIndex: self._commit_index,
        }

    # -- the jobs ----------------------------------------------------------------------------------------------

    def visit(self, picks: Picks, due: Collection[int] = ()) -> Outcomes:
        """Visit the pages that a policy chose, until those that are due have an outcome; the others stay queued."""
        if not self.machine.started:
            return_freed_memory()  # by the plan
        chosen, all_awaited = picks.pages.tolist(), picks.awaits >= 1
        awaited = 0 if all_awaited else picks.needed
        if chosen:
            why = self._store.visits.reason(picks.reason)
            lanes = self._store.pages.lanes_of(chosen)
            rows = [(page, self.servers[lanes[page][0]], lanes[page][1] > 0) for page in chosen]
            self._choose(rows, picks.score.tolist(), why, awaited)
        if not all_awaited and due:
            self._tell(m.OutcomesDue(due, chosen[:awaited], picks.needed - enough(picks)))
        if all_awaited or due:
            self._run()
        self.commit_if_due()
        seen = np.array(self.machine.take_outcomes(), np.int64).reshape(-1, 3)
        return Outcomes(seen[:, 0], seen[:, 1].astype(np.int8), seen[:, 2])

    def explore(
        self, done: set[int], also: set[int], *, skip_recent_failures: bool = False, more: More | None = None
    ) -> None:
        """Download every page that was found and never visited, including those found on the way, and those of `also`;
        pages of `done` were visited before the crawl was interrupted. `more` adds pages from elsewhere meanwhile."""
        self.machine.exploring = True
        waiting = self._store.pages.never_downloaded()
        if skip_recent_failures:
            ready = retry_allowed(waiting["failures"], waiting["last_try"], self._cycle.started)
            waiting = {name: column[ready] for name, column in waiting.items()}
        servers, rows = self.servers, []
        for page, site in self._store.pages.sites_of(also - done).items():
            rows.append((page, servers[site], False))
        for page, site, failures in zip(*(waiting[name].tolist() for name in ("id", "site", "failures")), strict=True):
            if page not in done:
                rows.append((page, servers[site], failures > 0))
        self._choose(rows)
        self._queue_hints(sleeping=True)
        self._more = more
        self._run()
        self.commit()  # others may wait for the links that were found
        while more is not None and not self._stop() and more(idle=True):
            self._run()
            self.commit()
        self._more = None

    def refresh_hints(self, *, sleeping: bool = False) -> None:
        """Read the hints about change before pages are chosen: queued pushes, sitemaps and feeds that are due.

        `sleeping` reads only those of sites without a live page, where no visit leads.
        """
        if not sleeping:
            now = self._options.clock()
            self.tally.warnings += process_pushes(self._store, self.discovery, self.recorder, now)
            self._take_found()
        self._queue_hints(sleeping=sleeping, before_cycle=True)
        self._run()
        self.commit()

    def recheck_robots(self) -> None:
        """Fetch robots.txt where it has expired, and release the pages that it no longer disallows.

        Runs between cycles, because it changes which pages the next one may choose.
        """
        disallowed = self._store.pages.barred()
        for site in disallowed:
            self._tell(m.RobotsWanted(self.servers[site]))
        self._run()
        self.commit()
        for site, pages in disallowed.items():
            robots = self.servers[site].robots
            free = [(page, had) for page, url, had in pages if robots is not None and robots.allows(url)]
            self._store.pages.set_states(State.LIVE, [page for page, had in free if had])
            self._store.pages.set_states(State.FOUND, [page for page, had in free if not had])

    def fetch_requisites(self) -> None:
        """Request the files that pages need to be shown as they looked, within a budget of their own."""
        rows = self._with_servers(self._requisites.due(self.machine.requisites_left))
        self._tell(m.RequisitesBegin(self._options.requisite_bytes or math.inf, rows))
        self._run()
        self.commit()
        self._tell(m.RequisitesEnd())

    def take_requisites(self, handed: Iterable[OutgoingRequisite]) -> None:
        """Record requisites that other shards of a cluster need."""
        self._requisites.take(list(handed))

    def limit_bytes(self, limit: float, site_limit: float, before: list[tuple[int, int]]) -> None:
        """Set what the cycle may receive; see `machine.BytesLimited`."""
        self._tell(m.BytesLimited(limit, site_limit, before))

    def commit(self) -> None:
        """Record what is ready: whoever reads the store next needs it."""
        self.recorder.commit()

    def commit_if_due(self) -> None:
        """Record what is ready if it is much, or has waited long."""
        self._tell(m.BatchGrew(self.recorder.results, bool(self.recorder.batch)))

    def record_pages(self, batch: Batch) -> None:
        """Record new pages from elsewhere: seeds, pages that have come into scope."""
        self.recorder.batch.pages += batch.pages
        self.recorder.batch.outbox += batch.outbox
        self.recorder.commit()
        self._take_found()

    def committed(self, _batch: Batch) -> None:
        """A batch was committed."""
        self._tell(m.BatchCommitted())

    def stop_readers(self) -> None:
        """Stop the reader processes, whose memory others can use; a page that comes after all starts new ones."""
        if not self._readers.pending:
            self._watch_stages()
            self._readers.close()

    def close(self) -> None:
        """Commit what is ready and release everything."""
        try:
            self.recorder.close()
            save_shared_texts(self._store, self.machine.shared_texts)
            self.discovery.save()
            if self._browser is not None:
                self._browser.close()
            if self._logins is not None:
                self._logins.close()
            self._accesses.save()
        finally:
            self._readers.close()
            self._client.close()

    def _queue_hints(self, *, sleeping: bool, before_cycle: bool = False) -> None:
        for server in self.servers:
            if not (sleeping and server.live) and self.machine.server_needed(server):
                feeds = self._files.feeds(server.id) if server.live else ()
                self._tell(m.HintsWanted(server, feeds, before_cycle))

    def _choose(
        self,
        rows: list[tuple[int, Server, bool]],
        scores: list[float] | None = None,
        why: int = -1,
        awaited: int = 0,
    ) -> None:
        self._need(server for _, server, _ in rows)
        self._tell(m.PagesChosen(rows, scores or (), why, awaited))

    def _need(self, servers: Iterable[Server]) -> None:
        """Tell the machine of servers before something of them is visited."""
        for server in {server.id: server for server in servers}.values():
            if self.machine.server_needed(server):
                self._tell(m.ServerNeeded(server))

    # -- the loop ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Work until nothing is left, `stop` returns True, the time is up, or the awaited pages have an outcome;
        then requests under way go on in the next run."""
        self._prefetch.forget()
        self._tell(m.RunBegun())
        while self.machine.busy and not self._stop() and (now := self._options.timer()) < self._until:
            if self.machine.over(now):
                break
            self._turn()
        else:
            self._finish_parsing()

    def _turn(self) -> None:
        """Send requests, wait for something to happen, and act on it."""
        self._send_requests()
        answers = self._client.wait(self._wait_seconds())
        now, at = self._options.timer(), self._options.clock()
        for number, answer in answers:
            self._answered(number, answer, now, at)
        if self._staged:
            self._advance_stages(self._options.timer())
        self.commit_if_due()
        now = self._options.timer()
        if self._more is not None and now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._more(idle=False)
        self.tally.waiting = len(self.machine.lanes)
        self._progress(self.tally)

    def _send_requests(self) -> None:
        """Send every request whose turn has come."""
        now, at = self._options.timer(), self._options.clock()
        machine, client, readers = self.machine, self._client, self._readers
        machine.turned = True
        while machine.turned and not self._stop():
            self._follow(machine.handle(m.NextTurn(client.room, readers.pending_bytes), now, at), now, at)

    def _answered(self, number: int, answer: Answer, now: float, at: float) -> None:
        """A request has ended."""
        thing = self._requests.pop(number)
        answer = bounded_answer(answer, at)
        hides = False
        if isinstance(thing, m.PageVisit):
            self.tally.received += answer.received
            hides = "x-robots-tag" in answer.fields and self.recorder.hides(thing.state.version, answer)
        elif isinstance(thing, m.RequisiteRead):
            self.tally.requisites += 1
            self.tally.requisite_bytes += answer.received
        self._follow(self.machine.handle(m.AnswerCame(thing, answer, hides), now, at), now, at)
        if self._found:
            self._take_found()

    def _advance_stages(self, now: float) -> None:
        """Go on with what waits for other processes: logins, the browser, the readers."""
        if self._logins is not None:
            for ended in self._logins.collect(now):
                self._tell(ended)
        if self._browser is not None:
            for found in self._browser.collect(now):
                if isinstance(found[0], m.PageVisit):
                    self._tell(m.PageRendered(*found))
                else:
                    self._browser_wants(*found)
        self._readers.pump(now)
        self._take_readings(now)
        self._readers.pump(now)
        self._watch_stages()

    def _take_readings(self, now: float) -> None:
        """Pass on what the readers have read. Links are looked up together: one by one costs four times as much."""
        readings = self._readers.collect(now)
        for reading, linked in zip(readings, self.discovery.linked(readings), strict=True) if readings else ():
            thing = self._reads.pop(reading.ticket)
            if isinstance(thing, m.PageVisit):
                self._frames.returned(thing.server, thing.page)
            self._tell(m.ThingParsed(thing, reading, linked))

    @property
    def _stages(self) -> list[Readers | Browser | Logins]:
        return [stage for stage in (self._readers, self._browser, self._logins) if stage is not None]

    @property
    def _staged(self) -> int:
        """Pages and logins that wait for other processes."""
        return sum(stage.pending for stage in self._stages)

    def _wait_seconds(self) -> float:
        """How long the client may wait for network traffic or another process."""
        now = self._options.timer()
        waits = self.machine.wait(now, room=self._client.room, unparsed=self._readers.pending_bytes)
        least = min(1.0, self._until - now, waits)
        if self._staged:
            deadlines = [stage.deadline(now) for stage in self._stages]
            least = min([least, *(deadline for deadline in deadlines if deadline is not None)])
        return max(0.0, least)

    def _finish_parsing(self) -> None:
        """Record the downloads that have arrived, even after a stop."""
        while self._readers.pending:
            now = self._options.timer()
            self._readers.pump(now)
            self._watch_stages()
            self._client.wait(min(0.2, self._readers.deadline(now) or 0.0))
            self._take_readings(self._options.timer())

    def _watch_stages(self) -> None:
        """Let the client's wait end when another process has answered; one without work is not waited for."""
        current = {one.fileno() for stage in self._stages if stage.pending for one in stage.connections}
        for fd in self._watched - current:
            self._client.unwatch(fd)
        for fd in current - self._watched:
            self._client.watch(fd)
        self._watched = current

    # -- the machine -------------------------------------------------------------------------------------------

    def _tell(self, event: m.MachineEvent) -> None:
        """Tell the machine what has happened, and do what follows from it."""
        now, at = self._options.timer(), self._options.clock()
        self._follow(self.machine.handle(event, now, at), now, at)
        if self._found:
            self._take_found()

    def _follow(self, actions: list[m.MachineAction], now: float, at: float) -> None:
        for action in actions:
            event = self._do[type(action)](action)
            if event is not None:
                self._follow(self.machine.handle(event, now, at), now, at)

    def _take_found(self) -> None:
        """Count the pages that were found since the last call; a crawl visits them too."""
        found, servers = self._found.copy(), self.servers
        self._found.clear()
        self.tally.found += len(found)
        if found and self.machine.exploring:
            rows = [(page, servers[site]) for page, site in found]
            self._need(server for _, server in rows)
            self._tell(m.PagesFound(rows))

    def _number(self) -> int:
        self._last += 1
        return self._last

    # -- actions: pages ----------------------------------------------------------------------------------------

    def _read_row(self, action: m.ReadRow) -> m.RowRead:
        page = action.page
        fresh = self.discovery.fresh.get(page)
        if fresh is not None:
            row, hints, needs = PageRow(fresh.url, fresh.site, fresh.depth, 0, unvisited(page)), 0, None
        else:
            row, hints = self._prefetch.take(page, action.server)
            needs = self._prefetch.needs(page)
        new = action.explores and row.state.version < 0
        return m.RowRead(page, row, hints, needs, new and self.discovery.needs_no_request(page, row.url))

    def _send_request(self, action: m.SendRequest) -> None:
        thing, number = action.thing, self._number()
        self._requests[number] = thing
        if isinstance(thing, m.PageVisit):
            self.tally.url = thing.request_url
        self._client.start(number, action.request)

    def _archive_answer(self, action: m.ArchiveAnswer) -> None:
        request = self._client.request_head(action.url, action.validators, identity=action.identity)
        self.recorder.archive(action.answer, request, truncated=action.truncated)

    def _find_target(self, action: m.FindTarget) -> m.TargetKnown:
        return self._redirects.find(action, self.servers[action.visit.server], self.recorder.batch)

    def _keep_aliases(self, _action: m.KeepAliases) -> None:
        keep_aliases(self._store, self._options.scopes)

    def _parse_thing(self, action: m.ParseThing) -> m.ThingParsed | None:
        thing, number = action.thing, self._number()
        task: Any
        if isinstance(thing, m.PageVisit):
            head = self._client.request_head(thing.request_url, thing.validators, identity=thing.identity)
            stored = self.recorder.location(thing.state.version) if thing.state.version >= 0 else None
            counted = self._frames.wants(thing.server, thing.page, thing.url)
            task = task_of(thing, self.servers[thing.server], head, stored, ticket=number, counted=counted)
        elif isinstance(thing, m.AbsentRead):
            assert thing.answer is not None
            task = absent_task(thing, thing.answer, self.servers[thing.server], ticket=number)
        elif isinstance(thing, m.RequisiteRead):
            assert thing.answer is not None
            task = Scan(number, thing.row.url, thing.answer.headers, thing.answer.body)
        else:
            stored = self.recorder.location(thing.version)
            if stored is None:
                return m.ThingParsed(thing, None)
            task = Scan(number, thing.url, stored=stored, requisites=thing.level)
        self._reads[number] = thing
        self._readers.submit(task)
        return None

    def _record_visit(self, action: m.RecordVisit) -> m.VisitRecorded:
        visit, finding = action.visit, action.finding
        server = self.servers[visit.server]
        done: Done | Unchanged
        after: State | None = State.LIVE
        if isinstance(finding, m.PageSame):
            done = self._rows.unchanged(visit, finding.answer)
            self.recorder.add_unchanged(done)
            needs = visit.needs
            if not finding.parsed and server.requisites and needs is not None and needs[0] >= server.requisites:
                self._requisites.page_visited(needs[1])
        elif isinstance(finding, m.PageRead):
            done = self._record_version(server, visit, finding)
        else:
            if isinstance(finding, m.PageMissing):
                done = self._rows.missing(server, visit, finding.answer, finding.target, finding.detail)
                after = State(done.state.state)
                if finding.record:
                    self.recorder.batch.records.append((finding.record, finding.answer.at))
            else:
                at = self._options.clock()
                done, after = self._rows.failed(visit, finding.answer, finding.failure, finding.detail, at), None
            self.recorder.add(done)
        row = done.visit
        if visit.browsed is not None:
            self.recorder.add_screenshot(visit, visit.browsed, row, new=not isinstance(done, Unchanged))
        self.tally.count(row.outcome, row.failure)
        return m.VisitRecorded(visit, policy_outcome(row), row.received, after)

    def _record_version(self, server: Server, visit: m.PageVisit, finding: m.PageRead) -> Done:
        """Record a new version with its links and hints."""
        reading, answer = finding.reading, visit.answer
        assert answer is not None
        links: Int32s = np.zeros(0, np.int32)
        new = 0
        if reading.follow and reading.keys:
            batch, depth = self.recorder.batch, visit.depth + 1
            url = visit.url if self._options.index or visit.state.digest is None else ""  # else it came without text
            links, new = self.discovery.links(
                finding.linked, reading, parent=visit.page, url=url, depth=depth, at=answer.at, batch=batch
            )
            self.linked_again.note(visit, links)
        if visit.state.state == State.MOVED:
            self._redirects.returned(visit)
        if reading.feeds:
            self._files.name_feeds(server, reading.feeds)
        self.recorder.batch.hints += page_hints(visit, reading)
        change = self._frames.judge(server.id, visit.page, reading, visit.state.counters)
        done = self._copies.told(visit, reading, self._rows.read(server, visit, reading, new, change))
        self._frames.note(server.id, visit.page, visit.url, reading)
        self.recorder.add_version(visit, done, reading, links, server.origin)
        self._requisites.page_read(visit.page, server.requisites, reading)
        return done

    def _leave_page(self, action: m.LeavePage) -> None:
        self.tally.left[action.cause] += 1

    def _warn_user(self, action: m.WarnUser) -> None:
        self.tally.warnings.append(action.text)

    def _keep_brakes(self, _action: m.KeepBrakes) -> None:
        save_shared_texts(self._store, self.machine.shared_texts)

    def _keep_absent(self, _action: m.KeepAbsent) -> None:
        keep_absent_addresses(self._store, self.machine.absent)

    def _reindex_pages(self, action: m.ReindexPages) -> None:
        self.recorder.commit()
        index_pages(self._repository, self._options, list(action.pages))

    def _commit_batch(self, _action: m.CommitBatch) -> None:
        self.recorder.commit()

    def _commit_index(self, _action: m.CommitIndex) -> None:
        self.recorder.commit_index()

    # -- actions: files of sites, logins -----------------------------------------------------------------------

    def _list_feeds(self, action: m.ListFeeds) -> m.FeedsKnown:
        return m.FeedsKnown(action.server.id, self._files.feeds(action.server.id))

    def _read_sitemap(self, action: m.ReadSitemap) -> m.FileRead:
        thing = action.thing
        children, broken = self._files.read_sitemap(self.servers[thing.server], thing.url, action.answer)
        return m.FileRead(thing, children, broken)

    def _read_feed(self, action: m.ReadFeed) -> m.FileRead:
        self._files.read_feed(self.servers[action.thing.server], action.thing.url, action.answer)
        return m.FileRead(action.thing)

    def _record_listing(self, action: m.RecordListing) -> None:
        self._files.record_listing(action.server, complete=action.complete)

    def _make_login(self, action: m.MakeLogin) -> None:
        assert self._logins is not None
        self._logins.start(action.thing, private=action.private)

    # -- actions: requisites and the browser -------------------------------------------------------------------

    def _with_servers(self, rows: Iterable[Any]) -> list[tuple[Any, Server]]:
        """Rows of requisites with their servers, of which the machine knows then."""
        pairs = [(row, self.servers.of_requisite_url(row.url)) for row in rows]
        self._need(server for _, server in pairs)
        return pairs

    def _compare_requisite(self, action: m.CompareRequisite) -> m.RequisiteKnown:
        return m.RequisiteKnown(action.thing, self._requisites.is_stored(action.thing))

    def _record_requisite(self, action: m.RecordRequisite) -> m.RequisiteRecorded:
        row, found = self._requisites.record(action)
        return m.RequisiteRecorded(action.thing, row, self._with_servers(found))

    def _record_scan(self, action: m.RecordScan) -> None:
        self._requisites.page_read(action.page, action.level, action.reading)

    def _render_page(self, action: m.RenderPage) -> None:
        assert self._browser is not None
        self._browser.load(action.visit, picture=action.picture)

    def _browser_wants(self, request: int, url: str) -> None:
        """The page in the browser makes a request."""
        row = self._requisites.wanted(url)
        if row is None:
            self._answer_browser(m.AnswerBrowser(request))
            return
        ((_, server),) = self._with_servers([row])
        self._tell(m.BrowserWants(request, row, server))

    def _answer_browser(self, action: m.AnswerBrowser) -> None:
        assert self._browser is not None
        self._browser.supply(action.request, action.answer)

    def _answer_from_archive(self, action: m.AnswerFromArchive) -> None:
        """Answer with the newest version of a requisite."""
        assert self._browser is not None
        self.recorder.commit()  # it may be in the current batch
        version = self._store.requisites.version(action.version)
        if version is None or not version.length:
            self._browser.supply(action.request, None)
            return
        place = Place(version.warc, version.start, version.length)
        self._browser.supply_stored(action.request, read_body(self._repository.archive.read(place)))

    def _follow_wanted(self, action: m.FollowWanted) -> m.BrowserWants:
        ((row, server),) = self._with_servers([self._requisites.row(action.target)])
        return m.BrowserWants(action.request, row, server, action.hops)
