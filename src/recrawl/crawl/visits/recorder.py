"""What is to be recorded, gathered into batches: committed by size and by time, the index by time alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.hints.claims import claims, promises
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.servers import Servers
from recrawl.crawl.visits.verdicts import Flight, VisitResult
from recrawl.model import State
from recrawl.record.index import Document
from recrawl.record.rows import Batch, FeedRow, SourceRow, VersionRow
from recrawl.record.storage import Storage

_NEVER = float("inf")


class Recorder:
    """Gathers verdicts; `commit` makes them last."""

    def __init__(
        self, repository: Storage, options: CrawlOptions, servers: Servers, *, on_commit: Callable[[], None]
    ) -> None:
        """`on_commit` is called when `batch` is in the store, and just before it is emptied."""
        self._repository = repository
        self._options = options
        self._servers = servers
        self._on_commit = on_commit
        self.batch = Batch()
        self._bodies: list[tuple[VersionRow, bytes]] = []
        self._visit = repository.store.next_id("visits")
        self._committed = self._visit - 1
        self._version = repository.store.next_id("versions")
        self._commit_by = _NEVER
        self._index_by = _NEVER

    def next_visit(self) -> int:
        """A number for a visit."""
        self._visit += 1
        return self._visit - 1

    def next_version(self) -> int:
        """A number for a version."""
        self._version += 1
        return self._version - 1

    def place(self, version: int) -> tuple[str, int, int] | None:
        """Where a version's body lies: file, start, length."""
        row = self._repository.store.version(version)
        if row is None:
            return None
        archive = self._repository.archive
        return str(archive.folder / archive.names[row.warc]), row.start, row.length

    def listed_pages(self, site: int) -> set[int]:
        """Pages of a site that its sitemap named when it was last read."""
        return self._repository.store.listed_pages(site)

    def claim(
        self, site: int, kind: str, dates: Mapping[int, float], seen: float, *, whole: bool = True, bad: int = 0
    ) -> SourceRow:
        """Gather what a source says of pages, all of which are in the store; what came of it."""
        rows, source = claims(self._repository.store, site, kind, dates, seen, whole=whole, bad=bad)
        self.batch.hints += rows
        self.batch.sources.append(source)
        return source

    def promise(self, kind: str, periods: Mapping[int, float], seen: float) -> None:
        """Gather every how many seconds pages promise to change."""
        if periods:
            self.batch.hints += promises(self._repository.store, kind, periods, seen)

    def feeds(self, site: int) -> list[FeedRow]:
        """The feeds of a site that are known."""
        sql = "SELECT site, url, seen, etag, modified FROM feeds WHERE site = ?"
        return [FeedRow._make(row) for row in self._repository.store.db.execute(sql, (site,))]

    def put(self, verdict: VisitResult) -> None:
        """Gather a visit that brought no new version."""
        self.batch.visits.append(verdict.visit)
        self.batch.states.append(verdict.state)
        if verdict.record:
            self.batch.records.append((verdict.record, verdict.visit.at))
        if verdict.state.state in (State.GONE, State.MOVED) and verdict.state.version >= 0:
            self.batch.removals.append(verdict.state.id)
            self.batch.listed.append((0, verdict.state.id))

    def page_read(
        self, flight: Flight, verdict: VisitResult, reading: Reading, targets: NDArray[np.int32], origin: str
    ) -> None:
        """Gather a visit that brought a new version."""
        assert verdict.version is not None
        self.batch.visits.append(verdict.visit)
        self.batch.states.append(verdict.state)
        self.batch.links.append((flight.page, targets.tobytes()))
        self._bodies.append((verdict.version, reading.record))
        if self._options.index and verdict.version.changed:
            if reading.searchable:
                document = Document(
                    flight.page,
                    flight.url,
                    origin,
                    reading.title,
                    reading.text,
                    verdict.version.at,
                    new=flight.state.version < 0,
                )
                self.batch.documents.append(document)
            else:
                self.batch.removals.append(flight.page)

    def commit_if_due(self, now: float) -> None:
        """Commit when the batch is large or old enough, and the index when it is its time."""
        if self._commit_by == _NEVER and self.batch:
            self._commit_by = now + self._options.commit_seconds
        if len(self.batch.visits) >= self._options.commit_visits or now >= self._commit_by:
            self.commit()
            if self._index_by == _NEVER and self._options.index:
                self._index_by = now + self._options.index_seconds
        if now >= self._index_by:
            self._commit_index()

    def due(self, now: float) -> float:
        """Seconds until something has to be committed."""
        return max(0.0, min(self._commit_by, self._index_by) - now)

    def commit(self) -> None:
        """Record everything gathered."""
        self.batch.sites = self._servers.take_dirty()
        if self.batch:
            self._repository.commit(self.batch, self._bodies)
            self._committed = self._visit - 1
            self._on_commit()
            self.batch, self._bodies = Batch(), []
        self._commit_by = _NEVER

    def close(self) -> None:
        """Record everything, and let searches see it."""
        self.commit()
        self._commit_index()

    def _commit_index(self) -> None:
        self._index_by = _NEVER
        if self._options.index:
            self._repository.commit_index(self._committed)
