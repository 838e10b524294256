"""Gathers results into batches and commits them. When they are committed is decided by the machine (`CommitTimes`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from recrawl.columns import Int32s
from recrawl.compare.digest import of_payload
from recrawl.crawl.hints import claims, promises
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.state.site_frames import SiteFrames
from recrawl.crawl.tally import RowNumbers, RunCounts
from recrawl.crawl.visits.machine import PageVisit
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.results import Done, Unchanged
from recrawl.crawl.visits.servers import Servers
from recrawl.discover.page_headers import header_links
from recrawl.model import Answer, State
from recrawl.record import warc
from recrawl.record.archive import Place
from recrawl.record.index import Document
from recrawl.record.rows import Batch, FeedRow, ScreenshotRow, SourceRow, UnchangedPage, VersionRow, VisitRow
from recrawl.record.storage import Storage

if TYPE_CHECKING:
    from recrawl.crawl.render.messages import Rendered


class _Cache(Protocol):
    """Holds rows that the store does not have yet, or that a commit makes outdated."""

    def committed(self, batch: Batch) -> None:
        """The batch is in the store now."""


class Recorder:
    """Gathers the results of visits; `commit` makes them durable."""

    def __init__(
        self,
        repository: Storage,
        options: CrawlOptions,
        servers: Servers,
        frames: SiteFrames,
        tally: RunCounts,
        *,
        caches: Sequence[_Cache] = (),
    ) -> None:
        self._repository = repository
        self._tally = tally
        self._options = options
        self._servers = servers
        self._frames = frames
        self._caches = caches
        self.batch = Batch()
        self._bodies: list[tuple[VersionRow, bytes]] = []
        self.numbers = RowNumbers(repository.store.next_id("visits"), repository.store.next_id("versions"))
        self._next_screenshot = repository.store.next_id("screenshots")
        self._committed = self.numbers.next_visit - 1

    def location(self, version: int) -> tuple[str, int, int] | None:
        """Where the archive holds a version's body: file, start, length."""
        row = self._repository.store.versions.get(version)
        if row is None:
            return None
        path, start = self._repository.archive.locate(Place(row.warc, row.start, row.length))
        return str(path), start, row.length

    def hides(self, version: int, answer: Answer) -> bool:
        """Whether the headers of an answer exclude a page from searches that finds its stored version so far."""
        return self._searchable(version) and not header_links(answer.headers).robots.index

    def _searchable(self, version: int) -> bool:
        row = self._repository.store.versions.get(version) if version >= 0 else None
        return row is not None and bool(row.searchable)

    def listed_pages(self, site: int) -> set[int]:
        """Pages of a site that its sitemap listed when it was last read."""
        return self._repository.store.pages.listed(site)

    def claim(
        self, site: int, kind: str, dates: Mapping[int, float], seen: float, *, whole: bool = True, bad: int = 0
    ) -> SourceRow:
        """Add the dates of change that a source claims for pages of the store; returns the row of the source."""
        rows, source = claims(self._repository.store, site, kind, dates, seen, whole=whole, bad=bad)
        self.batch.hints += rows
        self.batch.sources.append(source)
        return source

    def promise(self, kind: str, values: Mapping[int, float], seen: float) -> None:
        """Add what sitemaps say of pages: the interval, in seconds, at which they change, or their priority."""
        if values:
            self.batch.hints += promises(self._repository.store, kind, values, seen)

    def feeds(self, site: int) -> list[FeedRow]:
        """The known feeds of a site."""
        return self._repository.store.hints.feeds(site)

    def archive(self, answer: Answer, request: bytes, *, truncated: bool = False) -> None:
        """Add the record of an answer that is no version of a page: a redirect, a 404, robots.txt."""
        if answer.failure is None and answer.status:
            digest = of_payload(answer.body)
            what = (answer.url, answer.at, answer.ip, answer.status, answer.headers, answer.body, digest, request)
            self.batch.records.append((warc.response(*what, truncated=truncated), answer.at))

    def add(self, done: Done) -> None:
        """Add a visit without a version: it has failed, or the page is gone."""
        self.batch.visits.append(done.visit)
        self.batch.states.append(done.state)
        if done.state.state in (State.GONE, State.MOVED) and done.state.version >= 0:
            self._unindex(done.state.id)
            self.batch.listed.append((0, done.state.id))

    def add_unchanged(self, same: Unchanged) -> None:
        """Add a visit that found the page as it was."""
        row, state, record = same
        batch = self.batch
        batch.visits.append(row)
        batch.records.append((record, row.at))
        if isinstance(state, UnchangedPage):
            batch.unchanged.append(state)
        else:
            batch.states.append(state)

    def add_version(self, visit: PageVisit, done: Done, reading: Reading, links: Int32s, origin: str) -> None:
        """Add a visit with a new version; `links` are the pages it links to."""
        assert done.version is not None
        self.batch.visits.append(done.visit)
        self.batch.states.append(done.state)
        self.batch.links.append((visit.page, links.tobytes()))
        self._bodies.append((done.version, reading.record))
        lost = visit.state.payload == b""  # then the index may lack it
        if self._options.index:
            if not reading.searchable:
                self._unindex(visit.page)
            elif done.version.changed or lost or not self._searchable(visit.state.version):
                document = Document(
                    visit.page,
                    visit.url,
                    origin,
                    reading.title,
                    reading.text,
                    done.version.at,
                    new=visit.state.version < 0,
                    language=reading.language,
                    date=reading.published if reading.updated is None else reading.updated,
                )
                self.batch.documents.append(document)

    def add_screenshot(self, visit: PageVisit, shown: Rendered, recorded: VisitRow, *, new: bool) -> None:
        """Add the screenshot of a visit, if one was taken; its bytes are stored once. `new`: with a version."""
        version = recorded.version
        if not shown.picture or version < 0:
            return
        payload, table = of_payload(shown.picture), self._repository.store.screenshots
        if any(row.payload == payload or row.page == visit.page for row, _ in self.batch.screenshots):
            self.commit()  # its place in the archive is not known before
        last, same = table.of_version(visit.page, version), table.with_payload(payload)
        if last is not None and last.payload == payload:
            return
        number, self._next_screenshot = self._next_screenshot, self._next_screenshot + 1
        row = ScreenshotRow(
            *(number, visit.page, version, recorded.at, number, shown.width, shown.height, len(shown.picture)),
            *(-1, 0, 0, payload),
        )
        if same is not None:
            row = row._replace(record=same.id, warc=same.warc, start=same.start, length=same.length)
            self.batch.screenshots.append((row, b""))
        else:
            beside = "response" if new else "revisit"
            record = warc.screenshot(visit.request_url, row.at, beside, shown.picture, payload)
            self.batch.screenshots.append((row, record))

    def _unindex(self, page: int) -> None:
        """Remove a page from the index, also what an earlier visit of this batch would add: an import has many."""
        self.batch.removals.append(page)
        self.batch.documents = [document for document in self.batch.documents if document.page != page]

    @property
    def results(self) -> int:
        """Results that wait for the next commit."""
        return len(self.batch.visits) + len(self.batch.requisites.versions)

    def commit(self) -> None:
        """Write the batch to the repository."""
        self.batch.sites = self._servers.take_dirty()
        self.batch.frames = self._frames.take_dirty()
        self.batch.requisites.hosts = self._servers.take_dirty_hosts()
        if self.batch:
            for refused in self._repository.commit(self.batch, self._bodies):
                self._tally.recount(refused.wanted.outcome, refused.wanted.failure, refused.recorded.failure)
            self._committed = self.numbers.next_visit - 1
            for cache in self._caches:
                cache.committed(self.batch)
            self.batch, self._bodies = Batch(), []

    def close(self) -> None:
        """Commit the batch and the index, unless a commit has failed: its error is on its way."""
        if not self._repository.failed:
            self.commit()
            self.commit_index()

    def commit_index(self) -> None:
        """Make what was committed searchable."""
        if self._options.index:
            self._repository.commit_index(self._committed)
