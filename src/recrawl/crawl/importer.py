"""Import URLs, and histories of pages as if they had been visited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from recrawl.compare.digest import of_payload
from recrawl.crawl.cycles import begin_run
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.known_pages import known_urls
from recrawl.crawl.state.site_frames import SiteFrames, stored_lines
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits import results
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.machine import CommitTimes, PageVisit, count_state, failure_of, learn_from_page, learn_trust
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.reader_pool import readers_of, task_of
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.reread import read_one
from recrawl.crawl.visits.results import Done, VisitRows
from recrawl.crawl.visits.servers import Server, Servers, noise_table
from recrawl.crawl.visits.stored_text import sniff
from recrawl.discover.urls import canonical, listed_url
from recrawl.fetch.fetcher import bounded_answer, limited_answer
from recrawl.model import Answer, Failure, PastAnswer, State
from recrawl.record.rows import unvisited
from recrawl.record.storage import Storage
from recrawl.record.warc import read_head

History = Iterable[tuple[str, Iterable[PastAnswer]]]
"""URLs with the answers of their servers in the past, oldest first."""


class Importer:
    """Records pages without downloading them. `close` ends the import; one that was interrupted is resumed."""

    def __init__(self, repository: Storage, options: CrawlOptions) -> None:
        self.tally = RunCounts()
        """`found` counts pages that became known or got a history."""
        self._repository = repository
        self._options = options
        self._servers = Servers(repository.store, options)
        self._readers = readers_of(replace(options, readers=1))
        self._cycle = begin_run(repository.store, options, "import", "", 0, 0)[0]
        self._discovery = Discovery(
            repository.store,
            self._servers,
            options.scopes,
            known_urls(repository, options.rules),
            cycle=self._cycle.id,
            now=options.clock(),
        )
        self._frames = SiteFrames(repository.store, partial(stored_lines, repository, options))
        self._recorder = Recorder(
            repository, options, self._servers, self._frames, self.tally, caches=(self._discovery,)
        )
        self._rows = VisitRows(options, self._recorder.numbers, self._cycle.id)
        self._fingerprints = [noise.fingerprint for noise in noise_table(options)]
        self._times = CommitTimes(options)

    def urls(self, urls: Iterable[str]) -> list[str]:
        """Add URLs regardless of scopes; returns the invalid ones."""
        bad = []
        for text in urls:
            url = listed_url(text, self._options.rules)
            if url is None:
                bad.append(text.strip())
                continue
            self.tally.found += self._discovery.admit(url, at=self._cycle.started, batch=self._recorder.batch)[1]
        return bad

    def histories(self, histories: History, progress: Callable[[RunCounts], None] = lambda _: None) -> None:
        """Record the histories of pages that were never visited.

        The history of a page is committed whole or not at all: after a crash, importing again adds what is missing.
        """
        done: set[int] = set()
        for url, told in histories:
            clean, answers = canonical(url, rules=self._options.rules), iter(told)
            first = None if clean is None else next(answers, None)
            if clean is None or first is None:
                continue
            page, is_new = self._discovery.admit(clean, at=first.at, batch=self._recorder.batch)
            if page < 0:
                continue  # it was erased
            if is_new or (page not in done and self._never_visited(page)):
                done.add(page)
                self.tally.found += 1
                self._history(page, clean, chain([first], answers))
            self._commit_if_due()
            progress(self.tally)

    def _commit_if_due(self) -> None:
        results, anything = self._recorder.results, bool(self._recorder.batch)
        batch, index = self._times.due(self._options.timer(), results, anything=anything)
        if batch:
            self._recorder.commit()
        if index:
            self._recorder.commit_index()

    def close(self, *, finished: bool = True) -> None:
        """Record the rest; an import that is not finished is resumed by the next one."""
        self._readers.close()
        self._recorder.close()
        if finished:
            self._repository.store.cycles.finish(self._cycle.id, self._options.clock())

    def _never_visited(self, page: int) -> bool:
        """Whether a known page is no more than a URL, such as the target of a link of an imported page."""
        return page in self._discovery.fresh or self._repository.store.pages.get(page).state == unvisited(page)

    def _history(self, page: int, url: str, answers: Iterable[PastAnswer]) -> None:
        """Record the answers of a page as a crawl would have: by the same decisions, as the same rows."""
        server = self._servers.of_url(url)
        state = unvisited(page)
        before: bytes | None = None
        for past in answers:
            visit = PageVisit(page, url, server.id, 0, 0, state, None, None, request_url=url)
            if past.removed:
                done = results.removed(visit, self._recorder.numbers.visit(), self._cycle.id, past.at)
                self._recorder.add(done)
            else:
                answer = limited_answer(_answer(url, past, self._options.clock()), self._options.limits.max_bytes)
                done, record = self._answered(server, visit, answer, before)
                before = record or before
            self.tally.count(done.visit.outcome, done.visit.failure)
            self.tally.versions += done.version is not None
            state = done.state

    def _answered(self, server: Server, visit: PageVisit, answer: Answer, before: bytes | None) -> tuple[Done, bytes]:
        """What an answer meant for its page, and the record of the new version; `before` is that of the last one."""
        visit.answer, status = answer, answer.status
        if answer.failure is None and status == 200:
            return self._body(server, visit, answer, before)
        if answer.failure is None and status in (404, 410):
            done = self._rows.missing(server, visit, answer, -1)
            count_state(server, visit.state.state, State(done.state.state))
        elif answer.failure is None or answer.failure is Failure.BAD_ENCODING:  # nobody can be asked again
            done = self._rows.failed(visit, answer, failure_of(status), f"HTTP {status}", answer.at)
        else:
            done = self._rows.failed(visit, answer, answer.failure, answer.detail, answer.at)
        retried = status in (429, 503) and self._options.retries > 0
        if not (retried or answer.failure is Failure.BAD_ENCODING):
            self._recorder.archive(answer, b"")
        self._recorder.add(done)
        return done, b""

    def _body(self, server: Server, visit: PageVisit, answer: Answer, before: bytes | None) -> tuple[Done, bytes]:
        """The page is as it was, or has a new version."""
        visit.payload = of_payload(answer.body)
        visit.same_noise = visit.state.noise == self._fingerprints[server.noise]
        if visit.state.payload == visit.payload and visit.same_noise and not server.reloads:
            learn_trust(server, visit, answer, text_changed=False)
            same = self._rows.unchanged(visit, answer)
            state = visit.state._replace(**same.state._asdict())
            self._recorder.add_unchanged(same._replace(state=state))
            count_state(server, visit.state.state, State.LIVE)
            return Done(same.visit, state), b""
        reading = self._read(server, visit, before)
        if reading.failure:
            done = self._rows.failed(visit, answer, Failure(reading.failure), reading.detail, answer.at)
            self._recorder.add(done)
            return done, b""
        return self._version(server, visit, answer.at, reading), reading.record

    def _read(self, server: Server, visit: PageVisit, before: bytes | None) -> Reading:
        """Parse a version and compare it with the previous one, whose WARC records are `before`.

        In a reader process, as a page of a crawl: a hostile one harms neither the import nor the others.
        """
        counted = self._frames.wants(server.id, visit.page, visit.url)
        task = task_of(visit, server, b"", None, ticket=visit.page, counted=counted)
        reading = read_one(self._readers, task._replace(before=before, requisites=0), self._options)
        self._frames.returned(server.id, visit.page)
        return reading

    def _version(self, server: Server, visit: PageVisit, at: float, reading: Reading) -> Done:
        learn_from_page(server, visit, reading)
        targets, new = np.zeros(0, np.int32), 0
        if reading.follow and reading.keys:
            linked = self._discovery.look_up(np.frombuffer(reading.keys, np.int64))
            batch = self._recorder.batch
            targets, new = self._discovery.links(linked, reading, parent=visit.page, depth=1, at=at, batch=batch)
        change = self._frames.judge(server.id, visit.page, reading, visit.state.counters)
        self._frames.note(server.id, visit.page, visit.url, reading)
        done = self._rows.read(server, visit, reading, new, change)
        count_state(server, visit.state.state, State.LIVE)
        self._recorder.add_version(visit, done, reading, targets, server.origin)
        return done


def _answer(url: str, past: PastAnswer, now: float) -> Answer:
    """An answer of the past; one of which only the body is known has been a page of the type that it looks like."""
    body = b"" if past.body is None else past.body()
    status, headers = (200, (("Content-Type", sniff(body)),)) if past.head is None else read_head(past.head, len(body))
    return bounded_answer(Answer.made(url, status, headers, body, at=past.at), now)
