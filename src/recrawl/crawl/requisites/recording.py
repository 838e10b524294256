"""What the answers of requisites mean for the store and the archive. When they are requested is decided by the machine.

A requisite that has not changed gives a revisit record, as a page does. So does one with the bytes of another URL: the
bytes are stored once. A redirect makes its target a requisite too. What a stylesheet needs are requisites of the same
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.requisites.registry import Registry, lines
from recrawl.crawl.visits.machine import REDIRECTS, RecordRequisite, RequisiteRead, validators_of
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.recorder import Recorder
from recrawl.discover.requisites import absolute
from recrawl.fetch.fetcher import Fetcher
from recrawl.model import Answer, Failure, RequisiteLevel, sendable
from recrawl.record import warc
from recrawl.record.rows import OutgoingRequisite, RequisiteRow, RequisiteVersion
from recrawl.record.store import Store

_MAX_TYPE = 200


class RequisiteRecorder:
    """The requisites of one run, as rows and records."""

    def __init__(
        self, store: Store, registry: Registry, recorder: Recorder, client: Fetcher, options: CrawlOptions
    ) -> None:
        self._store, self._registry, self._recorder = store, registry, recorder
        self._client, self._options = client, options
        self._next_version = store.next_id("requisite_versions")

    # -- pages -------------------------------------------------------------------------------------------------

    def page_read(self, page: int, level: int, reading: Reading) -> None:
        """A page was parsed: record what it needs."""
        if level:
            self._registry.page_read(page, RequisiteLevel(level), reading, self._recorder.batch)

    def page_visited(self, packed: bytes) -> None:
        """A page is as it was: note which of its requisites are due."""
        self._registry.page_visited(packed, self._recorder.batch)

    def take(self, handed: Sequence[OutgoingRequisite]) -> None:
        """Record requisites that other shards of a cluster need."""
        self._registry.take(handed, self._recorder.batch)
        self._recorder.commit()

    # -- which are requested -----------------------------------------------------------------------------------

    def due(self, most: int) -> list[RequisiteRow]:
        """Those that wait for their first request, at most so many, and those that are due for another one."""
        self._recorder.commit()
        due, self._registry.due = list(self._registry.due), {}
        return [*self._store.requisites.waiting(most), *self._store.requisites.get_many(due)]

    def wanted(self, url: str) -> RequisiteRow | None:
        """The requisite of a URL that the page in the browser asks for; None if it cannot be requested."""
        clean = absolute(url, url)
        if clean is None:
            return None
        found = self._registry.register([], [clean], 0, RequisiteLevel.ALL, self._recorder.batch)
        return self.row(found[0]) if found else None

    def row(self, number: int) -> RequisiteRow:
        """The row of a requisite."""
        return self._registry.rows([number])[0]

    def is_stored(self, thing: RequisiteRead) -> bool:
        """Whether its bytes are those of the stored version."""
        stored = self._store.requisites.version(thing.row.version)
        return stored is not None and stored.payload == thing.payload and bool(stored.length)

    # -- answers -----------------------------------------------------------------------------------------------

    def record(self, what: RecordRequisite) -> tuple[RequisiteRow, list[RequisiteRow]]:
        """Record what an answer means: the new row, and the requisites that it leads to and that are due."""
        row, answer = what.thing.row, what.answer
        if what.failure or answer is None:
            at = self._options.clock() if answer is None else answer.at
            return self._failed(row, what.failure, at), []
        if what.same:
            return self._unchanged(row, answer)
        if answer.status in REDIRECTS:
            return self._redirected(row, answer)
        reading = what.reading
        styles, files = ("", "") if reading is None else (reading.styles, reading.files)
        return self._version(what.thing, answer, styles, files)

    def _version(
        self, thing: RequisiteRead, answer: Answer, styles: str, files: str
    ) -> tuple[RequisiteRow, list[RequisiteRow]]:
        """Record a new version; its bytes are stored unless another version has the same ones."""
        row, payload = thing.row, thing.payload
        batch = self._recorder.batch
        if any(other.payload == payload for other, _ in batch.requisites.versions):
            self._recorder.commit()  # its place in the archive is not known before
        number, self._next_version = self._next_version, self._next_version + 1
        kind = answer.header("content-type")
        version = RequisiteVersion(
            id=number,
            requisite=row.id,
            at=answer.at,
            record=number,
            size=len(answer.body),
            warc=-1,
            start=0,
            length=0,
            payload=payload,
            mime=kind[:_MAX_TYPE] if kind.isprintable() else "",
            styles=styles,
            files=files,
        )
        same, records = self._store.requisites.with_payload(payload), b""
        if same is not None:
            version = version._replace(record=same.id, warc=same.warc, start=same.start, length=same.length)
            self._revisit(row, answer, same)
        else:
            request = self._client.request_head(row.url, validators_of(row), identity=thing.identity)
            head = (row.url, answer.at, answer.ip, answer.status, answer.headers, answer.body, payload, request)
            records = warc.response(*head)
        self._recorder.batch.requisites.versions.append((version, records))
        fresh = self._succeeded(row._replace(version=number, target=-1), answer)
        return fresh, self._needed(row, lines(styles), lines(files))

    def _unchanged(self, row: RequisiteRow, answer: Answer) -> tuple[RequisiteRow, list[RequisiteRow]]:
        version = self._store.requisites.version(row.version)
        assert version is not None
        self._revisit(row, answer, version)
        fresh = self._succeeded(row._replace(target=-1), answer)
        return fresh, self._needed(row, lines(version.styles), lines(version.files))

    def _revisit(self, row: RequisiteRow, answer: Answer, version: RequisiteVersion) -> None:
        """Add the record of an answer that repeats the bytes of a version."""
        holder = version if version.record == version.id else self._store.requisites.version(version.record)
        assert holder is not None
        url = self._store.requisites.get_many([holder.requisite])[0].url
        original = warc.Original(url, holder.at, holder.payload)
        record = warc.revisit(row.url, answer.at, answer.ip, original, answer.status, answer.headers)
        self._recorder.batch.records.append((record, answer.at))

    def _redirected(self, row: RequisiteRow, answer: Answer) -> tuple[RequisiteRow, list[RequisiteRow]]:
        target = absolute(answer.header("location"), row.url)
        batch, style = self._recorder.batch, bool(row.style)
        urls = [target] if target and target != row.url else []
        found = self._registry.register(
            urls if style else [], [] if style else urls, row.depth + 1, RequisiteLevel(row.level), batch
        )
        if not found:
            return self._failed(row, Failure.REDIRECT_BAD.value, answer.at), []
        return self._succeeded(row._replace(target=found[0]), answer), self._due_of(found)

    def _succeeded(self, row: RequisiteRow, answer: Answer) -> RequisiteRow:
        fresh = row._replace(checked=answer.at, failures=0, failure=None)
        if answer.status == 200:
            etag, modified = sendable(answer.header("etag")), sendable(answer.header("last-modified"))
            fresh = fresh._replace(etag=etag, modified=modified)
        self._registry.update(fresh, self._recorder.batch)
        return fresh

    def _failed(self, row: RequisiteRow, failure: str, at: float) -> RequisiteRow:
        fresh = row._replace(checked=at, failures=row.failures + 1, failure=failure)
        self._registry.update(fresh, self._recorder.batch)
        return fresh

    def _needed(self, row: RequisiteRow, styles: list[str], files: list[str]) -> list[RequisiteRow]:
        """What a stylesheet needs and is due."""
        if not (styles or files):
            return []
        batch, level = self._recorder.batch, RequisiteLevel(row.level)
        return self._due_of(self._registry.register(styles, files, row.depth + 1, level, batch))

    def _due_of(self, numbers: Iterable[int]) -> list[RequisiteRow]:
        rows = self._registry.rows(list(numbers))
        due = set(self._registry.due_among([row.id for row in rows if row.checked is not None], self._recorder.batch))
        return [row for row in rows if row.checked is None or row.id in due]
