"""Import URLs, and histories of pages as if they had been visited."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from recrawl.compare.digest import of_payload
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits import results
from recrawl.crawl.visits.discovery import Discovery
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.pending import PendingVisit
from recrawl.crawl.visits.reader_process import TaskReader
from recrawl.crawl.visits.recorder import Recorder
from recrawl.crawl.visits.results import Done
from recrawl.crawl.visits.servers import Server, Servers, noise_table
from recrawl.crawl.visits.stored_text import sniff
from recrawl.discover.urls import canonical
from recrawl.model import Answer, Failure, Outcome, State
from recrawl.record.rows import CycleRow, PageState, unvisited
from recrawl.record.storage import Storage

History = Iterable[tuple[str, list[tuple[float, bytes | None]]]]
"""URLs with the versions of the page (time, body), oldest first; None is a removal."""


class Importer:
    """Records pages without downloading them."""

    def __init__(self, repository: Storage, options: CrawlOptions) -> None:
        self._repository = repository
        self._options = options
        self._servers = Servers(repository.store, options, options.agent)
        self._noises = noise_table(options)
        self._reader = TaskReader(ReaderConfig(options.rules, tuple(self._noises), want_text=options.index))
        self._cycle = self._open()
        self._discovery = Discovery(
            repository.store,
            self._servers,
            options.scopes,
            cycle=self._cycle.id,
            now=options.clock(),
            rules=options.rules,
        )
        self._recorder = Recorder(repository, options, self._servers, caches=(self._discovery,))

    def urls(self, urls: Iterable[str]) -> tuple[int, list[str]]:
        """Add URLs regardless of scopes; returns the number of new ones and the invalid ones."""
        new, bad = 0, []
        for text in urls:
            url = canonical(text.strip(), rules=self._options.rules)
            if url is None:
                bad.append(text.strip())
                continue
            new += self._discovery.admit(url, at=self._cycle.started, batch=self._recorder.batch)[1]
        self._close()
        return new, bad

    def histories(self, histories: History, progress: Callable[[int], None] = lambda _: None) -> tuple[int, int]:
        """Record the histories of unknown pages; returns the numbers of pages and versions."""
        pages = versions = 0
        for url, states in histories:
            clean = canonical(url, rules=self._options.rules)
            if clean is None:
                continue
            page, is_new = self._discovery.admit(clean, at=states[0][0], batch=self._recorder.batch)
            if is_new:
                pages += 1
                versions += self._history(page, clean, states)
            self._recorder.commit_if_due(self._options.timer())
            progress(pages)
        self._close()
        return pages, versions

    def _history(self, page: int, url: str, states: list[tuple[float, bytes | None]]) -> int:
        server = self._servers.of_url(url)
        state, count = unvisited(page), 0
        location: tuple[str, int, int] | None = None
        for at, body in states:
            visit = PendingVisit(page, url, server.id, 0, 0, state, None, None, request_url=url)
            if body is None:
                done = self._removal(visit, at)
                self._recorder.add(done)
            else:
                done = self._version(server, visit, at, body, location)
                count += 1
                self._recorder.commit()  # the next version is compared with this one, from the archive
                location = self._recorder.location(done.state.version)
            state = done.state
        return count

    def _version(
        self, server: Server, visit: PendingVisit, at: float, body: bytes, before: tuple[str, int, int] | None
    ) -> Done:
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
            )
        )
        targets, new = self._discovery.links(
            self._discovery.look_up(np.frombuffer(reading.keys, np.int64)),
            reading,
            parent=visit.page,
            depth=1,
            at=at,
            batch=self._recorder.batch,
        )
        done = results.read(
            visit,
            self._recorder.numbers.visit(),
            self._cycle.id,
            reading,
            self._noises[server.noise].fingerprint,
            self._recorder.numbers.version(),
            new,
        )
        self._recorder.add_version(visit, done, reading, targets, server.origin)
        return done

    def _removal(self, visit: PendingVisit, at: float) -> Done:
        """A removal in an archive needs no confirmation."""
        done = results.failed(visit, self._recorder.numbers.visit(), self._cycle.id, at, None, Failure.MISSING, "")
        row = done.visit._replace(outcome=int(Outcome.GONE), failure=None)
        state: PageState = visit.state._replace(
            state=int(State.GONE),
            changes=visit.state.changes + 1,
            last_try=at,
            last_visit=at,
            last_change=at,
        )
        return Done(row, state)

    def _open(self) -> CycleRow:
        store = self._repository.store
        row = CycleRow(
            store.next_id("cycles"),
            "import",
            "",
            0,
            0,
            self._options.clock(),
            None,
            store.next_id("visits"),
            store.next_id("pages"),
        )
        store.cycles.begin(row)
        return row

    def _close(self) -> None:
        self._recorder.close()
        self._repository.store.cycles.finish(self._cycle.id, self._options.clock())
