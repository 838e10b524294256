"""The live web as a `World`: the event loop of one crawl or cycle. One thread, nothing blocks.

`visit` answers a policy's picks (a refresh cycle), `explore` downloads the pages that were found and never visited (a
crawl). Both end when nothing is left to do, when `stop` returns True, or when the time is up. Recorded visits stay;
visits under way are dropped, and repeated when the cycle is resumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import Protocol

import numpy as np

from recrawl.child_processes import return_freed_memory
from recrawl.crawl.hints.pushes import process_pushes
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.limits import ByteBudget
from recrawl.crawl.state.load_book import retry_allowed
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits.journey import Journey
from recrawl.crawl.visits.pending import Awaited
from recrawl.loop import enough
from recrawl.model import Outcomes, Picks, State
from recrawl.record.rows import Batch, CycleRow
from recrawl.record.storage import Storage

_MAX_UNPARSED = 64_000_000
"""Bytes of bodies that may wait for a reader process; beyond that no download starts."""
_LOOK_SECONDS = 1.0
"""Time between two looks for pages from elsewhere."""


class More(Protocol):
    """Adds pages from elsewhere to a crawl; `idle`: nothing is left to visit, so it waits for some.

    False if there will be no more.
    """

    def __call__(self, *, idle: bool) -> bool: ...


class LiveWeb:
    """The event loop of one crawl or cycle."""

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
        self._store = repository.store
        self.journey = Journey(repository, options, cycle)
        self._lanes, self._client = self.journey.lanes, self.journey.client
        self._readers, self._recorder = self.journey.readers, self.journey.recorder
        self._watched: set[int] = set()
        self._more: More | None = None
        self._look_at = 0.0
        self._awaited: Awaited | None = None

    # -- the jobs ----------------------------------------------------------------------------------------------

    def visit(self, picks: Picks) -> Outcomes:
        """Visit the pages that a policy chose, until those that it awaits have an outcome; the others stay queued."""
        journey = self.journey
        if not journey.started:
            return_freed_memory()  # by the plan
        chosen = picks.pages.tolist()
        awaited = [] if picks.awaits >= 1 else chosen[: picks.needed]
        if chosen:
            why = self._store.visits.reason(picks.reason)
            lanes = self._store.pages.lanes_of(chosen)
            for page, score in zip(chosen, picks.score.tolist(), strict=True):
                journey.chosen[page] = (score, why)
            for page in chosen[len(awaited) :]:
                journey.enqueue(lanes[page][0], page, failing=lanes[page][1] > 0)
            for page in reversed(awaited):  # ahead of what is not awaited, of this batch and of earlier ones
                journey.enqueue(lanes[page][0], page, failing=lanes[page][1] > 0, first=True)
        if picks.awaits >= 1:
            self._run()
        elif awaited:
            self._awaited = Awaited(set(awaited), picks.needed - enough(picks), self._options.timer())
            self._run()
            self._awaited = None
        seen = np.array(journey.outcomes, np.int64).reshape(-1, 3)
        journey.outcomes.clear()
        return Outcomes(seen[:, 0], seen[:, 1].astype(np.int8), seen[:, 2])

    def explore(
        self, done: set[int], also: set[int], *, skip_recent_failures: bool = False, more: More | None = None
    ) -> None:
        """Download every page that was found and never visited, including those found on the way, and those of `also`;
        pages of `done` were visited before the crawl was interrupted. `more` adds pages from elsewhere meanwhile."""
        self.journey.exploring = True
        waiting = self._store.pages.never_downloaded()
        if skip_recent_failures:
            ready = retry_allowed(waiting["failures"], waiting["last_try"], self._cycle.started)
            waiting = {name: column[ready] for name, column in waiting.items()}
        for page, site in self._store.pages.sites_of(also - done).items():
            self.journey.enqueue(site, page)
        for page, site, failures in zip(*(waiting[name].tolist() for name in ("id", "site", "failures")), strict=True):
            if page not in done:
                self.journey.enqueue(site, page, failing=failures > 0)
        self._queue_resources(sleeping=True)
        self._more = more
        self._run()
        while more is not None and not self._stop() and more(idle=True):
            self._run()
        self._more = None

    def refresh_hints(self, *, sleeping: bool = False) -> None:
        """Read the hints about change before pages are chosen: queued pushes, sitemaps and feeds that are due.

        `sleeping` reads only those of sites without a live page, where no visit leads.
        """
        journey = self.journey
        if not sleeping:
            now = self._options.clock()
            journey.tally.warnings += process_pushes(self._store, journey.discovery, self._recorder, now)
            journey.enqueue_found()
        self._queue_resources(sleeping=sleeping)
        self._run()

    def _queue_resources(self, *, sleeping: bool) -> None:
        for server in self.journey.servers:
            if not (sleeping and server.live):
                self.journey.resources.refresh(server)

    def recheck_robots(self) -> None:
        """Fetch robots.txt where it has expired, and release the pages that it no longer disallows.

        Runs between cycles, because it changes which pages the next one may choose.
        """
        journey = self.journey
        disallowed = self._store.pages.barred()
        for site in disallowed:
            server = journey.servers[site]
            if journey.resources.robots_due(server):
                journey.resources.queue_robots(server)
        self._run()
        for site, pages in disallowed.items():
            robots = journey.servers[site].robots
            free = [(page, had) for page, url, had in pages if robots is not None and robots.allows(url)]
            self._store.pages.set_states(State.LIVE, [page for page, had in free if had])
            self._store.pages.set_states(State.FOUND, [page for page, had in free if not had])

    def fetch_requisites(self) -> None:
        """Request the files that pages need to be shown as they looked, within their own budget, when pages are done.

        The pace of a spread cycle is one of pages: it does not apply.
        """
        journey = self.journey
        of_pages, release = journey.bytes, self._release
        journey.bytes, self._release = ByteBudget(self._options.requisite_bytes or math.inf), None
        journey.requisites.enqueue()
        self._run()
        journey.bytes, self._release = of_pages, release

    def record_pages(self, batch: Batch) -> None:
        """Record new pages from elsewhere: seeds, pages that have come into scope."""
        self._recorder.batch.pages += batch.pages
        self._recorder.batch.outbox += batch.outbox
        self._recorder.commit()
        self.journey.enqueue_found()

    def stop_readers(self) -> None:
        """Stop the reader processes, whose memory others can use; a page that comes after all starts new ones."""
        if not self._readers.pending:
            self._watch_stages()
            self._readers.close()

    def close(self) -> None:
        """Commit what is ready and release everything."""
        try:
            self._recorder.close()
            self.journey.shared_texts.save()
            self.journey.render.close()
            self.journey.logins.close()
        finally:
            self._readers.close()
            self._client.close()

    # -- the loop ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Work until the lanes are empty, `stop` returns True, the time is up, or the awaited pages have an outcome;
        then requests under way go on in the next run."""
        options, journey = self._options, self.journey
        journey.prefetch.forget()
        for server in chain(
            journey.servers, journey.servers.hosts
        ):  # one may have asked in an earlier run for a long pause
            journey.check_server(server, options.timer())
        while self._busy() and not self._stop() and (now := options.timer()) < self._until:
            if self._awaited is not None and self._awaited.over(journey.outcomes, now):
                break
            self._turn()
        else:
            self._finish_parsing()
        self._recorder.commit()

    def _turn(self) -> None:
        """Start requests, wait for something to happen, and act on it."""
        options, journey = self._options, self.journey
        self._start_requests()
        for ticket, answer in self._client.wait(self._wait_seconds()):
            journey.answered(ticket, answer)
        now = options.timer()
        if self._staged:
            self._advance_stages(now)
        self._recorder.commit_if_due(now)
        if self._more is not None and now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._more(idle=False)
        journey.tally.waiting = len(self._lanes)
        self._progress(journey.tally)

    def _advance_stages(self, now: float) -> None:
        """Go on with what waits for other processes: logins, the browser, the readers."""
        journey = self.journey
        journey.logins.work(now)
        for task in journey.render.work(now):
            self._readers.submit(task)
        self._readers.pump(now)
        journey.parsed(self._readers.collect(now))
        self._readers.pump(now)
        self._watch_stages()

    @property
    def _staged(self) -> int:
        """Pages and logins that wait for other processes."""
        return self._readers.pending + self.journey.render.pending + self.journey.logins.pending

    def _busy(self) -> bool:
        return bool(len(self._lanes) or self._client.busy or self._staged)

    def _start_requests(self) -> None:
        """Start every request whose turn has come."""
        journey, now = self.journey, self._options.timer()
        if journey.bytes.used_up:
            for server in chain(journey.servers, journey.servers.hosts):
                journey.drop_queue(server, None)
        while self._client.room and self._readers.pending_bytes < _MAX_UNPARSED and not self._stop():
            spread = self._release is not None and not journey.render.pending  # its requests cannot wait
            if spread and self._release is not None and self._release(journey.started) > now:
                return
            turn = self._lanes.pop(now)
            if turn is None:
                return
            journey.start(journey.servers[turn[0]], turn[1], now)

    def _wait_seconds(self) -> float:
        """How long the client may wait for network traffic or a reader process."""
        now = self._options.timer()
        least = min(1.0, self._until - now, self._recorder.due(now))
        if self._awaited is not None:
            least = min(least, self._awaited.until - now)
        wait = self._lanes.wait(now)
        if wait is not None and self._client.room and self._readers.pending_bytes < _MAX_UNPARSED:
            if self._release is not None:
                wait = max(wait, self._release(self.journey.started) - now)
            least = min(least, wait)
        if self._staged:
            stages = (self._readers, self.journey.render, self.journey.logins)
            deadlines = [stage.deadline(now) for stage in stages]
            least = min([least, *(deadline for deadline in deadlines if deadline is not None)])
        return max(0.0, least)

    def _finish_parsing(self) -> None:
        """Record the downloads that have arrived, even after a stop."""
        while self._readers.pending:
            now = self._options.timer()
            self._readers.pump(now)
            self._watch_stages()
            self._client.wait(min(0.2, self._readers.deadline(now) or 0.0))
            self.journey.parsed(self._readers.collect(self._options.timer()))

    def _watch_stages(self) -> None:
        """Let the client's wait end when another process has answered; one without work is not waited for."""
        stages = (self._readers, self.journey.render, self.journey.logins)
        current = {connection.fileno() for stage in stages if stage.pending for connection in stage.connections}
        for fd in self._watched - current:
            self._client.unwatch(fd)
        for fd in current - self._watched:
            self._client.watch(fd)
        self._watched = current
