"""Requests of pages that are being rendered: answered from the archive, or by a request as for any requisite."""

from __future__ import annotations

from recrawl.columns import DAY
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.render.messages import Supplied
from recrawl.crawl.requisites.fetching import RequisiteFetches
from recrawl.crawl.requisites.registry import Registry
from recrawl.crawl.visits.recorder import Recorder
from recrawl.discover.requisites import absolute
from recrawl.model import Answer, RequisiteLevel
from recrawl.record.archive import Place
from recrawl.record.requisite_rows import RequisiteRow
from recrawl.record.storage import Storage
from recrawl.record.warc import read_body

_MAX_REDIRECTS = 6


class Demands:
    """The requests of the page that is being rendered, and their answers."""

    def __init__(
        self, storage: Storage, registry: Registry, fetches: RequisiteFetches, recorder: Recorder, options: CrawlOptions
    ) -> None:
        self._storage, self._registry, self._fetches = storage, registry, fetches
        self._recorder, self._options = recorder, options
        self._waiting: dict[int, list[int]] = {}
        """Requests by the number of the requisite that they wait for."""
        self.supplied: list[Supplied] = []
        fetches.on_settled = self._settled

    def want(self, request: int, url: str) -> None:
        """The page asks for a URL; its answer comes to `supplied`, at once or later."""
        clean = absolute(url, url)
        if clean is None:
            self.supplied.append(Supplied(request))
            return
        numbers = self._registry.register([], [clean], 0, RequisiteLevel.ALL, self._recorder.batch)
        self._want_row(request, self._registry.rows(numbers)[0], 0)

    def _want_row(self, request: int, row: RequisiteRow, hops: int) -> None:
        age = self._options.clock() - row.checked if row.checked is not None else None
        elsewhere = not self._options.owns(row.url)  # another shard of a cluster requests it, later
        if elsewhere or (age is not None and row.failures and age < DAY):
            self.supplied.append(Supplied(request))
        elif age is not None and age < self._options.requisite_age and row.target >= 0 and hops < _MAX_REDIRECTS:
            self._want_row(request, self._registry.rows([row.target])[0], hops + 1)
        elif age is not None and age < self._options.requisite_age and row.version >= 0:
            self.supplied.append(self._stored(request, row))
        else:
            self._waiting.setdefault(row.id, []).append(request)
            self._fetches.demand(row)

    def _stored(self, request: int, row: RequisiteRow) -> Supplied:
        """The newest version of a requisite."""
        self._recorder.commit()  # it may be in the current batch
        version = self._storage.store.requisites.version(row.version)
        if version is None or not version.length:
            return Supplied(request)
        place = Place(version.warc, version.start, version.length)
        return Supplied(request, *read_body(self._storage.archive.read(place)))

    def _settled(self, row: RequisiteRow, answer: Answer | None) -> None:
        """A requisite has its answer, None if there is none: pass it to the requests that wait for it."""
        for request in self._waiting.pop(row.id, ()):
            if answer is None:
                self.supplied.append(Supplied(request))
            elif row.target >= 0:
                self._want_row(request, self._registry.rows([row.target])[0], 1)
            elif answer.status == 304:
                self.supplied.append(self._stored(request, row))
            else:
                self.supplied.append(Supplied(request, answer.status, answer.headers, answer.body))

    def take(self) -> list[Supplied]:
        """The answers since the last call."""
        taken, self.supplied = self.supplied, []
        return taken

    def forget(self) -> None:
        """The page is done: nobody waits any more."""
        self._waiting.clear()
        self.supplied.clear()
