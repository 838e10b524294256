"""Import URLs, and histories of pages as if they had been visited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from recrawl.compare.digest import of_payload
from recrawl.crawl.cycles import begin_run
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.known_pages import known_urls
from recrawl.crawl.state.site_frames import SiteFrames, stored_lines
from recrawl.crawl.tally import RunCounts
from recrawl.crawl.visits import results
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.messages import ReaderConfig, Reading, Task
from recrawl.crawl.visits.pending import PendingVisit
from recrawl.crawl.visits.reader_process import TaskReader
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.results import Done
from recrawl.crawl.visits.servers import Server, Servers, noise_table
from recrawl.crawl.visits.stored_text import sniff
from recrawl.discover.urls import canonical
from recrawl.model import Answer, Failure
from recrawl.record.rows import unvisited
from recrawl.record.storage import Storage

History = Iterable[tuple[str, list[tuple[float, bytes | None]]]]
"""URLs with the versions of the page (time, body), oldest first; None is a removal."""


class Importer:
    """Records pages without downloading them. `close` ends the import; one that was interrupted is resumed."""

    def __init__(self, repository: Storage, options: CrawlOptions) -> None:
        self.tally = RunCounts()
        """`found` counts pages that became known or got a history."""
        self._repository = repository
        self._options = options
        self._servers = Servers(repository.store, options)
        self._noises = noise_table(options)
        self._levels = options.levels
        config = ReaderConfig(options.rules, tuple(self._noises), tuple(self._levels), want_text=options.index)
        self._reader = TaskReader(config)
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
        self._recorder = Recorder(repository, options, self._servers, self._frames, caches=(self._discovery,))

    def urls(self, urls: Iterable[str]) -> list[str]:
        """Add URLs regardless of scopes; returns the invalid ones."""
        bad = []
        for text in urls:
            url = canonical(text.strip(), rules=self._options.rules)
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
        for url, states in histories:
            clean = canonical(url, rules=self._options.rules)
            if clean is None:
                continue
            page, is_new = self._discovery.admit(clean, at=states[0][0], batch=self._recorder.batch)
            if is_new or (page not in done and self._never_visited(page)):
                done.add(page)
                self.tally.found += 1
                self._history(page, clean, states)
            self._recorder.commit_if_due(self._options.timer())
            progress(self.tally)

    def close(self, *, finished: bool = True) -> None:
        """Record the rest; an import that is not finished is resumed by the next one."""
        self._recorder.close()
        if finished:
            self._repository.store.cycles.finish(self._cycle.id, self._options.clock())

    def _never_visited(self, page: int) -> bool:
        """Whether a known page is no more than a URL, such as the target of a link of an imported page."""
        return page in self._discovery.fresh or self._repository.store.pages.get(page).state == unvisited(page)

    def _history(self, page: int, url: str, states: list[tuple[float, bytes | None]]) -> None:
        server = self._servers.of_url(url)
        state = unvisited(page)
        before: bytes | None = None
        for at, body in states:
            visit = PendingVisit(page, url, server.id, 0, 0, state, None, None, request_url=url)
            if body is None:
                done = results.removed(visit, self._recorder.numbers.visit(), self._cycle.id, at)
                self._recorder.add(done)
            else:
                reading = self._read(server, visit, at, body, before)
                if reading.failure:
                    done = self._unreadable(visit, at, reading)
                else:
                    done, before = self._version(server, visit, at, reading), reading.record
            self.tally.count(done.visit.outcome, done.visit.failure)
            state = done.state

    def _read(self, server: Server, visit: PendingVisit, at: float, body: bytes, before: bytes | None) -> Reading:
        """Parse a version and compare it with the previous one, whose WARC records are `before`."""
        headers = (("Content-Type", sniff(body)),)
        visit.answer = Answer(visit.url, 200, headers, body, None, "", at, 0.0, 0, "")
        visit.payload = of_payload(body)
        reading = self._reader.read(
            Task(
                ticket=visit.page,
                url=visit.url,
                at=at,
                ip="",
                status=200,
                headers=headers,
                request=b"",
                body=body,
                payload=visit.payload,
                noise=server.noise,
                digest=visit.state.digest,
                before=before,
                same_noise=True,
                level=server.level,
                counted=self._frames.wants(server.id, visit.page, visit.url),
                prior=visit.state.prior is None,
            )
        )
        self._frames.returned(server.id, visit.page)
        return reading

    def _version(self, server: Server, visit: PendingVisit, at: float, reading: Reading) -> Done:
        targets, new = self._discovery.links(
            self._discovery.look_up(np.frombuffer(reading.keys, np.int64)),
            reading,
            parent=visit.page,
            depth=1,
            at=at,
            batch=self._recorder.batch,
        )
        change = self._frames.judge(server.id, visit.page, reading, visit.state.counters)
        self._frames.note(server.id, visit.page, visit.url, reading)
        done = results.read(
            visit,
            self._recorder.numbers.visit(),
            self._cycle.id,
            reading,
            self._noises[server.noise].fingerprint,
            self._recorder.numbers.version(),
            new,
            change,
            counts=results.counts_as_change(self._levels[server.level], reading, change),
        )
        self._recorder.add_version(visit, done, reading, targets, server.origin)
        return done

    def _unreadable(self, visit: PendingVisit, at: float, reading: Reading) -> Done:
        """A version that is not safe to parse is a failed visit, as in a crawl."""
        number, failure = self._recorder.numbers.visit(), Failure(reading.failure)
        done = results.failed(visit, number, self._cycle.id, at, visit.answer, failure, reading.detail)
        self._recorder.add(done)
        return done
